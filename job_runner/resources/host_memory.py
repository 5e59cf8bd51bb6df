"""What the host says about memory: how much there is, and whether it killed for it.

From our control group, version 1 or 2, where there is one.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import psutil

_CGROUP = Path("/sys/fs/cgroup")
_SELF = Path("/proc/self/cgroup")
_DYING = 3.0
"""Seconds from a kill until the process is gone: first its memory is given back."""


@dataclass(frozen=True)
class MemoryStatus:
    """How a run stood with memory: the bytes it used at most, and those it could have had.

    `kills` is how many of its processes were killed for memory since it began; `near` whether it
    was close enough to the limit to be killed for that.
    """

    used: int
    limit: int
    kills: int = 0
    near: bool = False


def effective_limit(limit: int | None, root: Path = _CGROUP, own: Path = _SELF) -> int:
    """Return the bytes at which a run is out of memory: the least of its limit and the host's."""
    known = [psutil.virtual_memory().total, *([] if limit is None else [limit])]
    return min([*known, *_numbers(_files(root, own, "memory.max", "memory.limit_in_bytes"))])


def peak(root: Path = _CGROUP, own: Path = _SELF) -> int | None:
    """Return the most bytes that our control group ever held; None where it does not tell."""
    return next(_numbers(_files(root, own, "memory.peak", "memory.max_usage_in_bytes")), None)


def oom_kills(root: Path = _CGROUP, own: Path = _SELF) -> int:
    """Return how often this process's control group was killed in for memory; 0 if unknown."""
    for path in _files(root, own, "memory.events", "memory.oom_control"):
        with contextlib.suppress(OSError, ValueError):
            for line in path.read_text().splitlines():
                name, _, value = line.partition(" ")
                if name == "oom_kill":
                    return int(value)
    return 0


class OomKillCounter:
    """Counts the processes of a run that were killed for memory, from what its group tells.

    On a laptop a control group holds all that its user started. Where the run of kernel `pid` is
    not `alone` in its own, a kill is the run's only if one of its processes goes at that moment.
    """

    def __init__(self, pid: int) -> None:
        self.alone = _is_alone(pid)
        self._count = 0
        self._told = self._explained = oom_kills()
        self._until = 0.0

    def count(self, pids: Iterable[int]) -> int:
        """Look, and return the count; `pids` are those that the run had when it was last seen."""
        told = oom_kills()
        if told > self._told:
            self._told, self._until = told, time.monotonic() + _DYING
        if self._told > self._explained:
            if self.alone or any(map(_is_gone, pids)):
                self._count += self._told - self._explained
                self._explained = self._told
            elif time.monotonic() > self._until:
                self._explained = self._told
        return self._count


def _is_alone(kernel: int) -> bool:
    """Tell whether our control group holds nothing but us, who started us, and the kernel."""
    with contextlib.suppress(psutil.Error, OSError):
        known = {os.getpid(), *(parent.pid for parent in psutil.Process().parents())}
        for path in _files(_CGROUP, _SELF, "cgroup.procs", "cgroup.procs"):
            if path.exists():
                pids = set(map(int, path.read_text().split())) - known
                # 0 stands for one that we cannot even name.
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


def _numbers(paths: list[Path]) -> Iterator[int]:
    for path in paths:
        with contextlib.suppress(OSError, ValueError):  # `max`, where there is no limit
            yield int(path.read_text())


def _files(root: Path, own: Path, unified: str, legacy: str) -> list[Path]:
    """List where a file of version 2 or 1 may be: in our own group, and in those around it.

    In a container the path that the kernel tells may lie outside of what is mounted, and the root
    that we see is our own group.
    """
    files = []
    with contextlib.suppress(OSError):
        for line in own.read_text().splitlines():
            _, controllers, path = line.split(":", 2)
            inside = Path(path.lstrip("/"))
            if controllers == "":
                files += [root / part / unified for part in (inside, *inside.parents)]
            elif "memory" in controllers.split(","):
                folder = root / "memory"
                files += [folder / part / legacy for part in (inside, *inside.parents)]
    return list(dict.fromkeys(files))
