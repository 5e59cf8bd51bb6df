"""Bounded waiting for conditions."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

Found = TypeVar("Found")

MAX_PAUSE = 1.0
"""Seconds between two looks in the end: one may cost the machine a process."""


def wait_for(
    what: str,
    condition: Callable[[], Found],
    timeout: float = 90.0,
    max_pause: float = MAX_PAUSE,
) -> Found:
    """Return `condition()` once it is true; `TimeoutError`, naming `what`, after `timeout` seconds.

    What is true for a moment only is looked for with a shorter `max_pause`.
    """
    deadline = time.monotonic() + timeout
    pause = 0.02
    while not (found := condition()):
        if time.monotonic() > deadline:
            raise TimeoutError(f"{what}: not after {timeout:g} s")
        time.sleep(pause)
        pause = min(pause * 1.5, max_pause)
    return found
