"""CPUs and memory of this machine, as far as this process may use them.

A container or a batch system gives away a part of the machine, and says so in the process's
affinity and control groups (versions 1 and 2). The smallest of all limits counts.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

from .proc import PROC


def usable_cpus(proc: Path = PROC) -> Decimal:
    """Return how many cores this process may use; at least one, so that something can run."""
    affinity = getattr(os, "sched_getaffinity", None)  # Linux only
    installed = Decimal(len(affinity(0)) if affinity else os.cpu_count() or 1)
    return max(Decimal(1), min([installed, *_cpu_quotas(proc)]))


def usable_memory(proc: Path = PROC) -> int:
    """Return how many bytes of memory this process may use."""
    installed = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    folders = cgroup_folders("memory", proc)
    return min([installed, *numbers(folders, "memory.max", "memory.limit_in_bytes")])


def cgroup_folders(controller: str, proc: Path = PROC) -> Iterator[Path]:
    """Yield the folders of this process's group for a controller, each followed by its parents."""
    memberships = dict(_memberships(proc))
    for version, root, mount_point in _mounts(proc):
        # Version 2 has one hierarchy, without a name in /proc/self/cgroup.
        path = memberships.get("" if version == "cgroup2" else controller)
        is_other = version == "cgroup" and controller not in mount_point.name.split(",")
        if path is None or is_other:
            continue
        # In a container the group's path may lie outside of what is mounted. Then the mount point
        # is the group.
        relative = os.path.relpath(path, root)
        folder = mount_point if relative.startswith("..") else mount_point / relative
        yield folder
        yield from (parent for parent in folder.parents if parent.is_relative_to(mount_point))


def numbers(folders: Iterator[Path], *names: str) -> Iterator[int]:
    """Yield the numbers in files of these names, folder by folder; "max" is none."""
    for folder in folders:
        for name in names:
            words = read_words(folder / name)
            if words and words[0].isdecimal():
                yield int(words[0])


def read_words(path: Path) -> list[str]:
    """Return the words of a file; none if it is missing or hidden from us."""
    return [word for line in _read_lines(path) for word in line.split()]


def _cpu_quotas(proc: Path) -> Iterator[Decimal]:
    for folder in cgroup_folders("cpu", proc):
        quota = read_words(folder / "cpu.max") or [
            *read_words(folder / "cpu.cfs_quota_us"),
            *read_words(folder / "cpu.cfs_period_us"),
        ]
        if len(quota) == 2 and all(word.isdecimal() and int(word) for word in quota):
            yield Decimal(quota[0]) / Decimal(quota[1])


def _memberships(proc: Path) -> Iterator[tuple[str, str]]:
    """Yield (controller, path) of /proc/self/cgroup; the controller of version 2 is ""."""
    for line in _read_lines(proc / "self" / "cgroup"):
        _, controllers, path = line.split(":", 2)
        for controller in controllers.split(","):
            yield controller, path


def _mounts(proc: Path) -> Iterator[tuple[str, str, Path]]:
    """Yield (version, root, mount point) of the mounted control groups, from mountinfo."""
    for line in _read_lines(proc / "self" / "mountinfo"):
        mount, _, source = line.partition(" - ")
        fields, kind = mount.split(" "), source.split(" ", 1)[0]
        if kind in ("cgroup", "cgroup2") and len(fields) > 4:
            yield kind, fields[3], Path(fields[4])


def _read_lines(path: Path) -> list[str]:
    try:
        return path.read_text().splitlines()
    except OSError:
        return []
