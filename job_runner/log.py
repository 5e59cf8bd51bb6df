"""The runner's own log lines, on stderr. A line that cannot be written never ends a run.

The disk of the log may be full, or its reader gone.
"""

from __future__ import annotations

import contextlib
import sys


def log_line(text: str) -> None:
    """Print a line on stderr, if that is possible."""
    with contextlib.suppress(OSError, ValueError):
        print(f"job_runner: {text}", file=sys.stderr, flush=True)  # noqa: T201
