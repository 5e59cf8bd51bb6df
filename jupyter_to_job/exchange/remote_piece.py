"""A piece behind a gateway as a file: a connection that is lost is taken up where it broke."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator

from ..domain.errors import Unavailable
from .patience import Patience


class RemotePiece(io.RawIOBase):
    """A piece behind a gateway, to be read from its beginning to its end.

    `fetch` yields its bytes from an offset. A read raises what that does, and Unavailable when
    `patience` is over.
    """

    def __init__(self, fetch: Callable[[int], Iterator[bytes]], patience: Patience) -> None:
        super().__init__()
        self._fetch = fetch
        self._patience = patience
        self._chunks: Iterator[bytes] | None = None
        self._offset = 0
        self._buffer = b""

    def read(self, size: int = -1) -> bytes:
        """Return the next bytes, at most `size` of them; `b""` at the end."""
        if not self._buffer:
            self._buffer = self._patience.call(self._receive)
            self._offset += len(self._buffer)
        size = len(self._buffer) if size < 0 else size
        data, self._buffer = self._buffer[:size], self._buffer[size:]
        return data

    def close(self) -> None:
        """Give up the connection."""
        self._abandon()
        super().close()

    def _receive(self) -> bytes:
        """Return the next chunk."""
        if self._chunks is None:
            self._chunks = self._fetch(self._offset)
        try:
            return next(self._chunks, b"")
        except Unavailable:
            self._abandon()
            raise

    def _abandon(self) -> None:
        if self._chunks is not None and hasattr(self._chunks, "close"):
            self._chunks.close()
        self._chunks = None
