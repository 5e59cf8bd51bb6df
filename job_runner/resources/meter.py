"""What a kernel used until now, cheaply enough to ask at the end of every cell.

The monitor finds the kernel's processes and measures them, from a thread and about once a second.
Here only what it found is read again, so the loop may do it: some 20 us for the kernel, and no
more for the others than a part of a thousand of the time. The kernel itself has a clock that counts
nanoseconds, so that a cell of a millisecond has its CPU, too; `/proc` counts hundredths of a
second.
"""

from __future__ import annotations

import resource
import time
from collections.abc import Iterable
from dataclasses import dataclass

import psutil

from ..host.proc import CLOCK_TICKS, CPU_TIMES, PROC, RESIDENT_PAGES, read_file, stat_fields
from .process_tree import cpu_seconds, resident, total

_OWN_CLOCK = 2
"""Linux's name for a process's clock is the complement of its number, and this for all threads."""
_FRESH = 0.1
"""Seconds for which the CPU of the other processes is taken as it was, if none of them ended."""
_SHARE = 1000
"""Reading them may take one part in this many of the time: of hundreds it is done less often."""


@dataclass(frozen=True)
class Reading:
    """CPU seconds of all processes; of the kernel's own the bytes it has, and the most it ever had.

    `memory` is 0 for a process that has ended, `highest` where the system does not tell.
    """

    cpu_seconds: float
    memory: int
    highest: int


class Meter:
    """Reads process `pid`, and the other processes that it is told of. For one thread only."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._others: tuple[int, ...] = ()
        self._others_cpu = 0.0
        self._waited = 0.0
        self._due = 0.0

    def follow(self, pids: Iterable[int]) -> None:
        """Take notice of the run's processes; what the others use is read the next time."""
        self._others = tuple(pid for pid in pids if pid != self._pid)

    def read(self) -> Reading | None:
        """Return what was used until now; None once the process is gone."""
        try:
            if not PROC.is_dir():
                return Reading(cpu_seconds(self._pid), int(resident(self._pid)), 0)
            own, waited, pages = _stat(self._pid)
            highest = _peak_rss(self._pid)
        except (OSError, ValueError, IndexError, psutil.Error):
            return None
        cpu = _clock(self._pid, own) + waited + self._used_by_others(waited)
        return Reading(cpu, pages * resource.getpagesize(), highest)

    def _used_by_others(self, waited: float) -> float:
        """Return the CPU seconds of the others: old ones would count twice if one ended since.

        `waited` is what the kernel's ended children used, which then holds that one's.
        """
        now = time.monotonic()
        if self._others and (waited != self._waited or now >= self._due):
            self._others_cpu = total(cpu_seconds, self._others)
            cost = time.monotonic() - now
            self._waited, self._due = waited, now + max(_FRESH, _SHARE * cost)
        elif not self._others:
            self._others_cpu = 0.0
        return self._others_cpu


def _stat(pid: int) -> tuple[float, float, int]:
    """Return a process's CPU seconds, those of its children that it waited for, and its pages."""
    fields = stat_fields(pid)
    user, system, children_user, children_system = map(int, fields[CPU_TIMES])
    cpu, children_cpu = user + system, children_user + children_system
    return cpu / CLOCK_TICKS, children_cpu / CLOCK_TICKS, int(fields[RESIDENT_PAGES])


def _peak_rss(pid: int) -> int:
    """Return the most bytes that a process ever had; 0 where it is not told, or it has ended."""
    _, label, value = read_file(f"{PROC}/{pid}/status").partition(b"\nVmHWM:")
    return int(value.split(None, 1)[0]) << 10 if label else 0


def _clock(pid: int, otherwise: float) -> float:
    try:
        return time.clock_gettime(~pid << 3 | _OWN_CLOCK)
    except (OSError, OverflowError):  # a sandbox that lacks it, or a process that ended
        return otherwise
