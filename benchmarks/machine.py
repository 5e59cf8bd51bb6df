"""The line above every table: where its figures come from."""

from __future__ import annotations

import os
import platform


def print_machine() -> None:
    """Name the machine, and say whether others are at work there."""
    cpus = len(os.sched_getaffinity(0))
    load = os.getloadavg()[0]
    print(f"{platform.platform()}, Python {platform.python_version()}, {cpus} CPUs")
    print(f"load before: {load:.1f}", "  (others are at work: ratios only)" if load > 1 else "")
