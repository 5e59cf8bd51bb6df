"""What every table has: the line above it, and the variables of what is measured."""

from __future__ import annotations

import os
import platform
import time

PAUSE = 0.2
"""Seconds of rest after which memory is read again."""
SLOW_MEMORY = 10.0
"""What rested is at most so many times slower where only the processors' caches forget it."""
_PAGE = 4096
_PAGES = 4096


def caller_environment() -> dict[str, str]:
    """Return the caller's variables without those of Jupyter and Python.

    PYTHONDONTWRITEBYTECODE would have every run compile all that it imports.
    """
    strange = ("JUPYTER", "IPYTHON", "PYTHON")
    return {k: v for k, v in os.environ.items() if not k.startswith(strange)}


def print_machine() -> None:
    """Name the machine, and say whether others are at work there."""
    cpus = len(os.sched_getaffinity(0))
    load = os.getloadavg()[0]
    print(f"{platform.platform()}, Python {platform.python_version()}, {cpus} CPUs")
    print(f"load before: {load:.1f}", "  (others are at work: ratios only)" if load > 1 else "")
    slowdown = _rested_memory_slowdown()
    note = "  (the host takes away what rests: short times are mostly that)"
    print(f"memory that rested for {PAUSE:g} s is read {slowdown:.0f} times as slowly",
          note if slowdown > SLOW_MEMORY else "")  # fmt: skip


def _rested_memory_slowdown() -> float:
    """Return how often as long it takes to read 16 MiB after a pause as without one.

    Some virtual machines give what no process touches for a moment back to their host. Whoever
    waited for a request then pays for it with each page, in processor time and without page faults.
    """
    memory = bytearray(_PAGES * _PAGE)

    def read() -> float:
        began = time.perf_counter()
        memory[::_PAGE]
        return time.perf_counter() - began

    read()
    at_once, rested = [], []
    for _ in range(5):
        at_once.append(read())
        time.sleep(PAUSE)
        rested.append(read())
        read()
    return sorted(rested)[2] / sorted(at_once)[2]
