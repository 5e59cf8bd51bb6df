"""CPUs and memory of this machine, as far as this process may use them.

A container or a batch system gives a part of the machine away and says so in the process's
affinity and control groups (both versions); the smallest of all limits counts.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

_PROC = Path("/proc")


def cpus(proc: Path = _PROC) -> Decimal:
    """Return how many cores this process may use; at least one, so that something can run."""
    affinity = getattr(os, "sched_getaffinity", None)  # Linux only
    there = Decimal(len(affinity(0)) if affinity else os.cpu_count() or 1)
    return max(Decimal(1), min([there, *_cpu_quotas(proc)]))


def memory(proc: Path = _PROC) -> Decimal:
    """Return how many bytes of memory this process may use."""
    there = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return min([Decimal(there), *_memory_limits(proc)])


def _cpu_quotas(proc: Path) -> Iterator[Decimal]:
    for folder in _groups(proc, "cpu"):
        quota = _words(folder / "cpu.max") or [
            *_words(folder / "cpu.cfs_quota_us"),
            *_words(folder / "cpu.cfs_period_us"),
        ]
        if len(quota) == 2 and all(word.isdecimal() and int(word) for word in quota):
            yield Decimal(quota[0]) / Decimal(quota[1])


def _memory_limits(proc: Path) -> Iterator[Decimal]:
    for folder in _groups(proc, "memory"):
        limit = _words(folder / "memory.max") or _words(folder / "memory.limit_in_bytes")
        if limit and limit[0].isdecimal():
            yield Decimal(limit[0])


def _groups(proc: Path, controller: str) -> Iterator[Path]:
    """Yield the folders of this process's group for a controller, and of those above it."""
    paths = dict(_memberships(proc))
    for kind, root, point in _mounts(proc):
        # Version 2 has one hierarchy, without a name in /proc/self/cgroup.
        path = paths.get("" if kind == "cgroup2" else controller)
        if path is None or (kind == "cgroup" and controller not in point.name.split(",")):
            continue
        below = os.path.relpath(path, root)
        folder = point if below.startswith("..") else point / below
        yield folder
        yield from (parent for parent in folder.parents if parent.is_relative_to(point))


def _memberships(proc: Path) -> Iterator[tuple[str, str]]:
    """Yield (controller, path) of /proc/self/cgroup; the controller of version 2 is ""."""
    for line in _lines(proc / "self" / "cgroup"):
        _, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        for controller in controllers.split(","):
            yield controller, path


def _mounts(proc: Path) -> Iterator[tuple[str, str, Path]]:
    """Yield (kind, root, mount point) of the control groups that are mounted: proc(5)."""
    for line in _lines(proc / "self" / "mountinfo"):
        before, _, after = line.partition(" - ")
        fields, kind = before.split(" "), after.split(" ", 1)[0]
        if kind in ("cgroup", "cgroup2") and len(fields) > 4:
            yield kind, fields[3], Path(fields[4])


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text().splitlines()
    except OSError:  # no Linux, or hidden from us: then there is no limit to know of
        return []


def _words(path: Path) -> list[str]:
    return [word for line in _lines(path) for word in line.split()]
