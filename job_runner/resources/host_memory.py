"""How much memory the host has for a run, and whether the host killed processes for memory.

Both come from our control group, version 1 or 2, where there is one.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import psutil

from ..host.cgroups import cgroup_folders, numbers, read_words, usable_memory
from ..host.proc import PROC

_EXIT_TIMEOUT = 3.0
"""Seconds from a kill until the process is gone: first its memory is given back."""


@dataclass(frozen=True)
class MemoryStatus:
    """The most bytes that a run used, and the bytes that it could have had.

    `kills` counts its processes that were killed for memory since it began. `near_limit` tells
    whether it was so close to the limit that a kill is a kill for memory.
    """

    used: int
    limit: int
    kills: int = 0
    near_limit: bool = False


def effective_limit(limit: int | None, proc: Path = PROC) -> int:
    """Return the bytes at which a run is out of memory: the least of its limit and the host's."""
    usable = usable_memory(proc)
    return usable if limit is None else min(limit, usable)


def peak(proc: Path = PROC) -> int | None:
    """Return the most bytes that our control group ever used; None where it is not recorded."""
    folders = cgroup_folders("memory", proc)
    return next(numbers(folders, "memory.peak", "memory.max_usage_in_bytes"), None)


def read_oom_kills(folders: Iterable[Path]) -> int:
    """Return how many processes were killed for memory in the first of these control groups.

    0 where none of them records it.
    """
    for folder in folders:
        for name in ("memory.events", "memory.oom_control"):
            words = read_words(folder / name)
            counts = dict(zip(words[::2], words[1::2], strict=False))
            if counts.get("oom_kill", "").isdecimal():
                return int(counts["oom_kill"])
    return 0


class OomKillCounter:
    """Counts the processes of a run that were killed for memory, by the count of its group.

    On a laptop a control group holds all that its user started. Where the run of kernel `pid` is
    not `alone` in its group, a kill is the run's only if one of its processes ends at that moment.
    """

    def __init__(self, pid: int, proc: Path = PROC) -> None:
        self._folders = list(cgroup_folders("memory", proc))
        self.alone = _is_alone(pid, self._folders)
        self._count = 0
        self._recorded = self._attributed = read_oom_kills(self._folders)
        self._deadline = 0.0

    def count(self, pids: Iterable[int]) -> int:
        """Read the group's count, and return the run's; `pids` are those of the last sample."""
        recorded = read_oom_kills(self._folders)
        if recorded > self._recorded:
            self._recorded, self._deadline = recorded, time.monotonic() + _EXIT_TIMEOUT
        if self._recorded > self._attributed:
            if self.alone or any(map(_is_gone, pids)):
                self._count += self._recorded - self._attributed
                self._attributed = self._recorded
            elif time.monotonic() > self._deadline:  # it was another program's process
                self._attributed = self._recorded
        return self._count


def _is_alone(kernel: int, folders: Iterable[Path]) -> bool:
    """Tell whether our control group holds only us, our parents, and the kernel's session."""
    with contextlib.suppress(psutil.Error, OSError):
        parents = {os.getpid(), *(parent.pid for parent in psutil.Process().parents())}
        for folder in folders:
            path = folder / "cgroup.procs"
            if path.exists():
                pids = set(map(int, path.read_text().split())) - parents
                # 0 stands for a process outside of our namespace of process ids.
                return all(pid != 0 and _session(pid) in (kernel, None) for pid in pids)
    return True


def _session(pid: int) -> int | None:
    with contextlib.suppress(OSError):
        return os.getsid(pid)
    return None


def _is_gone(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() in (psutil.STATUS_ZOMBIE, psutil.STATUS_DEAD)
    except psutil.Error:
        return True
