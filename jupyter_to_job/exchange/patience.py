"""Repeats requests while a gateway is away that was there a moment ago: a new one is starting."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

from ..domain.errors import JobsError, Unavailable

PATIENCE = 120.0
"""Seconds since its last answer after which a gateway is given up."""
MIN_DELAY, MAX_DELAY = 0.2, 5.0
"""Seconds before a failed request is sent again: the first time, and at most."""
MAX_TRIES = 3
"""Tries of the first request: nothing is lost if the gateway is not there."""
_Answer = TypeVar("_Answer")


class Patience:
    """Sends requests that belong together, each of which is harmless to repeat."""

    def __init__(self) -> None:
        self._answered_at: float | None = None

    def call(
        self, send: Callable[[], _Answer], look: Callable[[], object] = lambda: None
    ) -> _Answer:
        """Return what `send` does, called again while it raises Unavailable.

        `look` is called before each repetition, and may raise to stop. Raises what `send` does, and
        Unavailable after `PATIENCE`, or after `MAX_TRIES` where nothing was answered yet.
        """
        delay, tries = MIN_DELAY, 0
        while True:
            try:
                answer = send()
            except Unavailable:
                tries += 1
                if self._answered_at is None:
                    is_over = tries == MAX_TRIES
                else:
                    is_over = time.monotonic() - self._answered_at > PATIENCE
                if is_over:
                    raise
            except JobsError:  # it has answered
                self._answered_at = time.monotonic()
                raise
            else:
                self._answered_at = time.monotonic()
                return answer
            time.sleep(delay)
            look()
            delay = min(2 * delay, MAX_DELAY)
