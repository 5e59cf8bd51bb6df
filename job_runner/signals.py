"""Handles requests to stop: SIGTERM from a scheduler, a cancel or a draining node; or Control-C.

The handler is installed before any other import, so that the signal never kills the process (or, as
PID 1 of a container, is never ignored). Until the event loop runs, the handler sets a flag.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

_requested = False
_callback: Callable[[], None] | None = None


def install() -> None:
    """Install the handler for SIGTERM and SIGINT. Call it first of all, in the main thread."""
    signal.signal(signal.SIGTERM, _on_signal)
    signal.signal(signal.SIGINT, _on_signal)


def on_stop(callback: Callable[[], None]) -> None:
    """Have `callback` called (in the main thread, between two bytecodes) when a signal comes.

    It is called at once if one came already.
    """
    global _callback
    _callback = callback
    if _requested:
        callback()


@contextmanager
def exiting_at_once(code: int) -> Iterator[None]:
    """Let a signal end the process with this exit code, while there is nothing to be saved."""
    global _callback
    on_stop(lambda: os._exit(code))
    try:
        yield
    finally:
        _callback = None


def _on_signal(_number: int, _frame: FrameType | None) -> None:
    global _requested
    _requested = True
    if _callback is not None:
        _callback()
