"""A request's body as it comes: in memory while it is small, else in a file that has no name."""

from __future__ import annotations

import contextlib
import tempfile
from typing import BinaryIO

from ..api.large_body import LARGE
from ..domain.errors import TooLarge, no_room
from ..workspace.freezing.freeze import MAX_NOTEBOOK

MAX_BODY = LARGE
"""Bytes of a body that holds no notebook."""
MAX_SUBMISSION = MAX_NOTEBOOK + MAX_BODY
MAX_DRAIN = 1 << 30
"""Bytes of a body that are read at most, and thrown away beyond its limit: so whoever sends too
much reads why it was refused. A connection that ends in the middle tells nobody anything."""


class Body:
    """Collects at most `limit` bytes. `add` is for the event loop, `spill` for a thread."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._pieces: list[bytes] = []
        self._waiting = 0
        self._length = 0
        self.file: BinaryIO | None = None
        """Where a large body is."""

    def add(self, chunk: bytes) -> bool:
        """Take a piece, and tell whether it is time to `spill`. Raises TooLarge."""
        self._length += len(chunk)
        if self._length > self._limit:
            raise TooLarge(f"The body is over {self._limit >> 20} MiB.", "Send less.")
        self._pieces.append(chunk)
        self._waiting += len(chunk)
        return self._waiting > LARGE

    def spill(self) -> None:
        """Write to the file what has come since the last time. Raises Unavailable."""
        try:
            if self.file is None:
                self.file = tempfile.TemporaryFile()  # noqa: SIM115 - closed by `close`
            self.file.writelines(self._pieces)
            self.file.flush()
        except OSError as error:
            raise no_room("The body cannot be kept", error) from error
        self._pieces, self._waiting = [], 0

    @property
    def whole(self) -> bytes:
        """Return what is in memory: all of it, if it is small."""
        return b"".join(self._pieces)

    def close(self) -> None:
        """Let go of it."""
        self._pieces = []
        if self.file is not None:
            with contextlib.suppress(OSError):  # what is not written yet has no room
                self.file.close()
            self.file = None
