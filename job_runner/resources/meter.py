"""Reads what a kernel used until now, cheaply enough for the end of every cell.

The monitor finds the kernel's processes and samples them in a thread, about once a second. The
meter only reads the same processes again, so the event loop may call it: it takes about 20 us for
the kernel, and at most a thousandth of the time for the others. The kernel's own CPU comes from a
clock in nanoseconds, so that a cell of a millisecond has its CPU; /proc counts hundredths of a
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

_PROCESS_CLOCK = 2
"""Linux numbers the clock of a process by the complement of its id and this constant."""
_CPU_TTL = 0.1
"""Seconds for which the CPU of the other processes counts as current, if none of them ended."""
_COST_DIVISOR = 1000
"""Spend at most 1/N of the time reading them: hundreds of processes are read less often."""


@dataclass(frozen=True)
class Reading:
    """CPU seconds of all processes; of the kernel itself the bytes now, and the most so far.

    `memory` is 0 for a process that has ended, `peak_memory` where the system does not record it.
    """

    cpu_seconds: float
    memory: int
    peak_memory: int


class Meter:
    """Reads process `pid` and the processes of `set_pids`. For one thread only."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._others: tuple[int, ...] = ()
        self._others_cpu = 0.0
        self._children_cpu = 0.0
        self._next_read = 0.0

    def set_pids(self, pids: Iterable[int]) -> None:
        """Set the run's processes; their use is read the next time."""
        self._others = tuple(pid for pid in pids if pid != self._pid)

    def read(self) -> Reading | None:
        """Return what the processes used until now; None once the kernel is gone."""
        try:
            if not PROC.is_dir():
                return Reading(cpu_seconds(self._pid), int(resident(self._pid)), 0)
            stat_cpu, children_cpu, pages = _read_stat(self._pid)
            peak_memory = _peak_rss(self._pid)
        except (OSError, ValueError, IndexError, psutil.Error):
            return None
        cpu = _kernel_cpu(self._pid, stat_cpu) + children_cpu + self._cpu_of_others(children_cpu)
        return Reading(cpu, pages * resource.getpagesize(), peak_memory)

    def _cpu_of_others(self, children_cpu: float) -> float:
        """Return the CPU seconds of the other processes.

        `children_cpu` are those of the kernel's ended children. Where they changed, an ended
        process would count twice, so the others are read again.
        """
        now = time.monotonic()
        if self._others and (children_cpu != self._children_cpu or now >= self._next_read):
            self._others_cpu = total(cpu_seconds, self._others)
            cost = time.monotonic() - now
            self._children_cpu = children_cpu
            self._next_read = now + max(_CPU_TTL, _COST_DIVISOR * cost)
        elif not self._others:
            self._others_cpu = 0.0
        return self._others_cpu


def _read_stat(pid: int) -> tuple[float, float, int]:
    """Return a process's CPU seconds, those of its children that it waited for, and its pages."""
    fields = stat_fields(pid)
    user, system, children_user, children_system = map(int, fields[CPU_TIMES])
    cpu, children_cpu = user + system, children_user + children_system
    return cpu / CLOCK_TICKS, children_cpu / CLOCK_TICKS, int(fields[RESIDENT_PAGES])


def _peak_rss(pid: int) -> int:
    """Return the most bytes that a process ever had; 0 where they are not recorded."""
    _, label, value = read_file(f"{PROC}/{pid}/status").partition(b"\nVmHWM:")
    return int(value.split(None, 1)[0]) << 10 if label else 0


def _kernel_cpu(pid: int, default: float) -> float:
    try:
        return time.clock_gettime(~pid << 3 | _PROCESS_CLOCK)
    except (OSError, OverflowError):  # a sandbox that lacks it, or a process that ended
        return default
