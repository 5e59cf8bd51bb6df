"""Reads the snapshot of a submission, a large one in bounded memory and when it is its turn.

The subprocess that parses a large notebook is in the controller's container. A hostile notebook
takes twenty times its size there, and would end the controller with all that it does.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext

from ...domain.errors import Unavailable
from ...workspace import summarize_notebook
from ...workspace.freezing.notebook_summary import LARGE
from .blobs import Blobs

MAX_MEMORY = 704 << 20
"""Bytes of address space for one: 100 MiB of ordinary output with an emoji in it take 620 MiB."""
MAX_WAIT = 5.0
"""Seconds that a large notebook waits for its turn in its thread, which others need, too."""
_turn = threading.Lock()
"""Held while a large notebook is read: two of them at a time may be too much for the container."""


def read_snapshot(blobs: Blobs, digest: str, label: str) -> tuple[bytes, str | None]:
    """Return the bytes of a notebook, and the kernel that it names.

    Raises Stale, TooLarge, BadNotebook, and Unavailable while other large ones are read.
    """
    is_large = blobs.path(digest).stat().st_size > LARGE
    with _own_turn(label) if is_large else nullcontext():
        data = blobs.snapshot(digest)
        return data, summarize_notebook(data, label, MAX_MEMORY).kernel


@contextmanager
def _own_turn(label: str) -> Iterator[None]:
    if not _turn.acquire(timeout=MAX_WAIT):
        raise Unavailable(
            f"{label} waits: other large notebooks are being read.", "Try again in a moment."
        )
    try:
        yield
    finally:
        _turn.release()
