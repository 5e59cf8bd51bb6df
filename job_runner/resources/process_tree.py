"""A process, its descendants and its session: their memory, with shared pages once, and their CPU.

Data loaders fork: the sum of their resident sizes counts the parent's pages once a worker. So for
more than one process the proportional sizes are added up, which the kernel has to walk the page
tables for; the resident sizes, which cost nothing, are an upper bound of that.

A process whose parent ended is nobody's descendant any more. It is still in the session of the
kernel, which leads one: so what counts is what `leftovers` ends.
"""

from __future__ import annotations

import contextlib
import os
import resource
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import psutil

from ..host.proc import CLOCK_TICKS, CPU_TIMES, PROC, stat_fields

_HAS_CHILDREN = (PROC / "self/task" / str(os.getpid()) / "children").exists()


@dataclass(frozen=True)
class TreeUsage:
    """One look: `memory` in bytes, and whether that is `exact` or an upper bound.

    `cpu_seconds` holds what children used that ended and were waited for.
    """

    pids: tuple[int, ...]
    memory: int
    exact: bool
    cpu_seconds: float


def measure(root: int, *, exact: Callable[[int], bool]) -> TreeUsage | None:
    """Look at process `root` and all that belongs to it; None if nothing is there any more.

    `exact` is asked with the upper bound whether the exact size is worth its price.
    """
    pids = _members(root)
    bound = int(total(resident, pids))
    if not bound:
        return None
    cpu = total(cpu_seconds, pids)
    if len(pids) == 1:
        return TreeUsage(pids, bound, True, cpu)
    if not exact(bound):
        return TreeUsage(pids, bound, False, cpu)
    return TreeUsage(pids, int(total(_proportional, pids)), True, cpu)


def total(of: Callable[[int], float], pids: Iterable[int]) -> float:
    """Add up over the processes that are still there."""
    amount = 0.0
    for pid in pids:
        with contextlib.suppress(OSError, ValueError, IndexError, psutil.Error):
            amount += of(pid)
    return amount


def _members(root: int) -> tuple[int, ...]:
    """List a process, its session, and the descendants of all these."""
    found = dict.fromkeys([root, *_session(root)])
    if not _HAS_CHILDREN:
        with contextlib.suppress(psutil.Error):
            found |= dict.fromkeys(p.pid for p in psutil.Process(root).children(recursive=True))
        return tuple(found)
    waiting = list(found)
    for pid in waiting:  # which grows on the way
        new = [child for child in _children(pid) if child not in found]
        found |= dict.fromkeys(new)
        waiting += new
    return tuple(found)


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


def resident(pid: int) -> float:
    """Return the bytes that a process has in memory. Raises what `total` suppresses."""
    if not PROC.is_dir():
        return float(psutil.Process(pid).memory_info().rss)
    pages = int((PROC / str(pid) / "statm").read_bytes().split()[1])
    return float(pages * resource.getpagesize())


def _proportional(pid: int) -> float:
    """Return a process's share of the pages that it uses."""
    try:
        for line in (PROC / str(pid) / "smaps_rollup").read_bytes().splitlines():
            if line.startswith(b"Pss:"):
                return float(int(line.split()[1]) << 10)
    except PermissionError:  # a program with rights of its own
        return resident(pid)
    except FileNotFoundError:  # another system's /proc, or none
        return resident(pid)
    return 0.0


def cpu_seconds(pid: int) -> float:
    """Return what a process used, and what its ended children did that it waited for.

    Raises what `total` suppresses.
    """
    if not PROC.is_dir():
        times = psutil.Process(pid).cpu_times()
        return float(times.user + times.system)
    return sum(map(int, stat_fields(pid)[CPU_TIMES])) / CLOCK_TICKS
