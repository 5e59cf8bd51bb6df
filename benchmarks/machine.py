"""What every table has: the line above it, and the variables of what is measured."""

from __future__ import annotations

import os
import platform


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
