"""Being told to stop: SIGTERM, from a scheduler, a cancel or a node that drains; or Control-C.

The handler is installed before any other import, so that there is no moment in which the signal
kills the process (or, as PID 1 of a container, is ignored); until the loop runs it leaves a mark.
"""

from __future__ import annotations

import signal
from collections.abc import Callable
from types import FrameType

_requested = False
_callback: Callable[[], None] | None = None


def install() -> None:
    """Take over SIGTERM and SIGINT. Call first of all, in the main thread."""
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


def _on_signal(_number: int, _frame: FrameType | None) -> None:
    global _requested
    _requested = True
    if _callback is not None:
        _callback()
