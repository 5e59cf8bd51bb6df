"""What the runner says itself, on stderr: for whoever started it, and never worth a run.

The log that it goes to may be on a full disk, or its reader gone.
"""

from __future__ import annotations

import contextlib
import sys


def log_line(text: str) -> None:
    """Print a line on stderr, if somebody takes it."""
    with contextlib.suppress(OSError, ValueError):
        print(f"job_runner: {text}", file=sys.stderr, flush=True)  # noqa: T201
