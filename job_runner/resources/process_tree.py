"""Memory and CPU of a process, its descendants and its session; shared pages count once.

Pages of mapped files do not count: the system takes them back when it needs them. Data loaders
fork, and a sum would count the parent's pages once a worker. So for several processes proportional
sizes are added, for which the system walks the page tables. The resident sizes cost nothing and are
an upper bound of that.

A process whose parent ended is no descendant of the kernel any more. It is still in the kernel's
session, so the session counts as well: these are the processes that `kernel.cleanup` ends.
"""

from __future__ import annotations

import contextlib
import os
import resource
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import psutil

from ..host.proc import CLOCK_TICKS, CPU_TIMES, PROC, read_file, stat_fields
from .usage import Reading

_HAS_CHILDREN = (PROC / "self/task" / str(os.getpid()) / "children").exists()
_PROCESS_CLOCK = 2
"""Linux numbers the clock of a process by the complement of its id and this constant."""
_READ_ERRORS = (OSError, ValueError, IndexError, psutil.Error)
"""What reading a process raises that ended meanwhile."""


@dataclass(frozen=True)
class TreeUsage:
    """One sample: `memory` in bytes, and whether that is `exact` or an upper bound.

    `cpu_seconds` includes children that ended and were waited for.
    """

    pids: tuple[int, ...]
    memory: int
    exact: bool
    cpu_seconds: float


def measure(root: int, *, exact: Callable[[int], bool]) -> TreeUsage | None:
    """Sample process `root` and all that belongs to it; None if none of them is left.

    `exact` tells for the upper bound whether the exact size is worth its cost.
    """
    pids = _members(root)
    upper_bound = int(total(resident, pids))
    if not upper_bound:
        return None
    cpu = total(cpu_seconds, pids)
    if len(pids) == 1:
        return TreeUsage(pids, int(total(_unshared, pids)), True, cpu)
    if exact(upper_bound):
        return TreeUsage(pids, int(total(_proportional, pids)), True, cpu)
    return TreeUsage(pids, upper_bound, False, cpu)


def total(measure_process: Callable[[int], float], pids: Iterable[int]) -> float:
    """Return the sum over the processes that still exist."""
    amount = 0.0
    for pid in pids:
        with contextlib.suppress(*_READ_ERRORS):
            amount += measure_process(pid)
    return amount


def _members(root: int) -> tuple[int, ...]:
    """List a process, its session, and the descendants of all these."""
    members = dict.fromkeys([root, *_session(root)])
    if not _HAS_CHILDREN:
        with contextlib.suppress(psutil.Error):
            members |= dict.fromkeys(p.pid for p in psutil.Process(root).children(recursive=True))
        return tuple(members)
    queue = list(members)
    for pid in queue:  # it grows meanwhile
        new = [child for child in _children(pid) if child not in members]
        members |= dict.fromkeys(new)
        queue += new
    return tuple(members)


def _session(leader: int) -> Iterator[int]:
    for pid in psutil.pids():
        with contextlib.suppress(OSError):
            if os.getsid(pid) == leader:
                yield pid


def _children(pid: int) -> Iterator[int]:
    with contextlib.suppress(OSError):
        for task in (PROC / str(pid) / "task").iterdir():
            with contextlib.suppress(OSError):
                yield from map(int, (task / "children").read_bytes().split())


def read_kernel(pid: int, others: Iterable[int]) -> Reading | None:
    """Return what the kernel's process and `others` used until now; None once the kernel is gone.

    The event loop may call it at the end of every cell: it takes about 30 us for the kernel, and
    10 us for each of the others.
    """
    try:
        cpu, sizes = cpu_seconds(pid), _sizes(pid, "status")
        memory = int(_without_files(pid, sizes))
    except _READ_ERRORS:
        return None
    used = cpu + total(cpu_seconds, others)
    return Reading(used, memory, sizes.get(b"VmHWM", 0), sizes.get(b"RssFile", 0))


def resident(pid: int) -> float:
    """Return the bytes that a process has in memory. Raises what `total` suppresses."""
    if not PROC.is_dir():
        return float(psutil.Process(pid).memory_info().rss)
    pages = int(read_file(f"{PROC}/{pid}/statm").split()[1])
    return float(pages * resource.getpagesize())


def _unshared(pid: int) -> float:
    """Return the bytes of a process, without mapped files; shared pages count in full."""
    return _without_files(pid, _sizes(pid, "status"))


def _without_files(pid: int, sizes: dict[bytes, int]) -> float:
    if b"RssAnon" in sizes:
        return float(sizes[b"RssAnon"] + sizes.get(b"RssShmem", 0))
    return resident(pid)  # a sandbox, or a process that has ended


def _proportional(pid: int) -> float:
    """Return the bytes of a process, without mapped files, with its part of shared pages."""
    try:
        sizes = _sizes(pid, "smaps_rollup")
    except PermissionError:  # a setuid program
        sizes = {}
    if b"Pss_Anon" in sizes:
        return float(sizes[b"Pss_Anon"] + sizes.get(b"Pss_Shmem", 0))
    if b"Pss" in sizes:  # before Linux 5.4
        return float(sizes[b"Pss"])
    return _unshared(pid)


def _sizes(pid: int, name: str) -> dict[bytes, int]:
    """Return the sizes in one of a process's files, in bytes; none where there is no such file."""
    sizes = {}
    with contextlib.suppress(FileNotFoundError):
        for line in read_file(f"{PROC}/{pid}/{name}").splitlines():
            if line.endswith(b" kB"):
                field, _, value = line.partition(b":")
                sizes[field] = int(value[:-3]) << 10
    return sizes


def cpu_seconds(pid: int) -> float:
    """Return the CPU seconds of a process and of its ended children that it waited for.

    Those of the process itself come from a clock in nanoseconds, so that a cell of a millisecond
    has its CPU; /proc counts hundredths of a second. Raises what `total` suppresses.
    """
    if not PROC.is_dir():
        times = psutil.Process(pid).cpu_times()
        return float(times.user + times.system)
    user, system, *children = (int(ticks) / CLOCK_TICKS for ticks in stat_fields(pid)[CPU_TIMES])
    try:
        return time.clock_gettime(~pid << 3 | _PROCESS_CLOCK) + sum(children)
    except (OSError, OverflowError):  # a sandbox that lacks it, or a process that ended
        return user + system + sum(children)
