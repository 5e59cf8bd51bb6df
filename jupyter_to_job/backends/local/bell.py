"""A named pipe that tells this host's dispatcher to look at once, not at its next tick.

Nothing depends on it: a ring that is not heard costs as long as the tick is.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from .hosts import host_folder, this_host

BELL = "bell"


def hang(exchange: Path) -> int | None:
    """Return a descriptor that can be read once somebody rang; None where there are no pipes.

    For the dispatcher, which has the lock: nobody else reads it.
    """
    path = host_folder(exchange, this_host()) / BELL
    with contextlib.suppress(OSError):
        with contextlib.suppress(FileExistsError):
            os.mkfifo(path, 0o600)
        # Also to write, so that it has no end when those who rang are gone.
        return os.open(path, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
    return None


def ring(exchange: Path) -> None:
    """Have the dispatcher look, if there is one."""
    with contextlib.suppress(OSError):  # nobody listens, or it was rung a thousand times already
        path = host_folder(exchange, this_host()) / BELL
        descriptor = os.open(path, os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            os.write(descriptor, b".")
        finally:
            os.close(descriptor)
