"""Collects a request's body: in memory while it is small, else in an unnamed temporary file."""

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
"""Bytes of a body that are read at most; those over its limit are thrown away. So a client that
sends too much can read why it was refused: a connection that breaks off would not tell."""


class Body:
    """Collects at most `limit` bytes. `add` is for the event loop, `spill` for a thread."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._buffer = bytearray()
        self._length = 0
        self.file: BinaryIO | None = None
        """The file of a large body."""

    def add(self, chunk: bytes) -> bool:
        """Keep a chunk, and tell whether it is time to `spill`. Raises TooLarge."""
        self._length += len(chunk)
        if self._length > self._limit:
            raise TooLarge(f"The body is over {self._limit >> 20} MiB.", "Send less.")
        self._buffer += chunk
        return len(self._buffer) > LARGE

    def spill(self) -> None:
        """Move what is in memory to the file. Raises Unavailable."""
        try:
            if self.file is None:
                self.file = tempfile.TemporaryFile()  # noqa: SIM115 - closed by `close`
            self.file.write(self._buffer)
            self.file.flush()
        except OSError as error:
            raise no_room("The body cannot be kept", error) from error
        self._buffer = bytearray()

    @property
    def data(self) -> bytes:
        """The bytes in memory: the whole body, if it is small."""
        return bytes(self._buffer)

    def close(self) -> None:
        """Free memory and file."""
        self._buffer = bytearray()
        if self.file is not None:
            with contextlib.suppress(OSError):  # its buffer may have no room on the disk
                self.file.close()
            self.file = None
