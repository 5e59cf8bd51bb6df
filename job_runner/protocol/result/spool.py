"""A file that grows while a result is folded, and extents of it.

The outputs of a run are written here at once, as text of the result; only their extents are in
memory. The file has no name, so nothing is left of it whatever happens.
"""

from __future__ import annotations

import io
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, NamedTuple, cast

CHUNK = 1 << 20
"""Bytes that are read or copied at once."""


def encode(text: str) -> bytes:
    """Return the bytes of a text. Lone surrogates, which UTF-8 does not have, become `?`."""
    return text.encode(errors="replace")


class Extent(NamedTuple):
    """A part of a spool: offset and length in bytes."""

    offset: int
    length: int

    @property
    def end(self) -> int:
        """The offset of its end."""
        return self.offset + self.length

    def skip(self, count: int) -> Extent:
        """Return the extent without its first bytes."""
        return Extent(self.offset + count, self.length - count)


class Spool:
    """An append-only file without a name."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._end = 0

    @classmethod
    def in_folder(cls, folder: Path | None) -> Spool:
        """Return a spool on the disk of a folder; None is the system's temporary folder.

        Where the system has no unnamed files, the file has a draft's name for an instant. Raises
        OSError.
        """
        draft = {"prefix": ".", "suffix": ".tmp"}
        return cls(cast("BinaryIO", tempfile.TemporaryFile(dir=folder, buffering=0, **draft)))

    @classmethod
    def in_memory(cls) -> Spool:
        """Return a spool in memory, for a full disk."""
        return cls(io.BytesIO())

    def append(self, data: bytes) -> Extent:
        """Write, and return the extent. After an OSError the spool is unchanged."""
        self._file.seek(self._end)
        view = memoryview(data)
        while view:
            view = view[self._file.write(view) :]
        extent = Extent(self._end, len(data))
        self._end = extent.end
        return extent

    def write(self, text: str) -> Extent:
        """Write a text, and return its extent. Raises OSError."""
        return self.append(encode(text))

    def read(self, extent: Extent) -> Iterator[bytes]:
        """Yield the bytes of an extent, in pieces."""
        at = extent.offset
        while at < extent.end:
            self._file.seek(at)
            piece = self._file.read(min(CHUNK, extent.end - at))
            if not piece:
                raise OSError("The spool is shorter than it was.")
            yield piece
            at += len(piece)

    def close(self) -> None:
        """Release the disk space."""
        self._file.close()
