"""The runner's targets. No other module of the benchmark states one."""

from __future__ import annotations

RATIO = {
    "trivial": 0.35,
    "cells-200": 0.13,
    "cells-1000": 0.025,
    "5x20MB": 0.3,
    "40x1MB": 0.1,
    "200x1MB": 0.02,
    "lines": 0.7,
    "displays": 1.0,
}
"""Our median wall time divided by papermill's, at most. Rows without one: faster than each peer."""

CPU_RATIO = {"displays": 0.5}
"""Our own processor time divided by papermill's own, at most. The kernels' time is in neither.

The kernel alone takes 0.9 of papermill's wall time for `displays`, so the wall time says little
about the runner there.
"""

RATIO_ONE_CORE = {"trivial": 0.7}
"""The same where everything has to share one core."""

KERNEL_DEATH_SAVED = 0.2
"""Seconds from the kernel's death until the result is there."""

SIGTERM_EXIT = 1.0
"""Seconds from SIGTERM until the runner has exited, everything saved; of a cell that heeds it."""

SUPERLINEAR = 1.5
"""What a cell, or a megabyte, may cost at the largest size, by the median of the smaller sizes."""

MEMORY = 120_000_000
"""Bytes that the runner may hold beside `MEMORY_CELLS` times the output of the largest cell."""

MEMORY_CELLS = 2
