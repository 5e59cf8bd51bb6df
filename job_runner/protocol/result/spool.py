"""Where a result lies while it comes to be: a file that grows, and places in it.

What a run prints is written here the moment it comes, as it will stand in the result; in memory are
places only. The file has no name, so nothing is left of it whatever happens.
"""

from __future__ import annotations

import io
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO, NamedTuple, cast

from .json_writer import chunks

CHUNK = 1 << 20
"""Bytes that are read or copied at once."""


class Extent(NamedTuple):
    """A place in a spool."""

    offset: int
    length: int

    @property
    def end(self) -> int:
        """Where it ends."""
        return self.offset + self.length

    def skip(self, count: int) -> Extent:
        """Return the place without its first bytes."""
        return Extent(self.offset + count, self.length - count)


class Spool:
    """An append-only file without a name."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._end = 0
        self._at_end = True

    @classmethod
    def in_folder(cls, folder: Path | None) -> Spool:
        """Return a spool on the disk of a folder (None: of the system's for such files).

        Where the system has no files without a name, it has a draft's for an instant. Raises
        OSError.
        """
        draft = {"prefix": ".", "suffix": ".tmp"}
        return cls(cast("BinaryIO", tempfile.TemporaryFile(dir=folder, buffering=0, **draft)))

    @classmethod
    def in_memory(cls) -> Spool:
        """Return a spool for where no disk has room."""
        return cls(io.BytesIO())

    def append(self, data: bytes) -> Extent:
        """Write and return the place. Raises OSError; then it is as if nothing had been written."""
        if not self._at_end:
            self._file.seek(self._end)
        self._at_end = False
        view = memoryview(data)
        while view:
            view = view[self._file.write(view) :]
        self._at_end = True
        extent = Extent(self._end, len(data))
        self._end = extent.end
        return extent

    def write(self, text: Iterable[str]) -> Extent:
        """Write a text that comes in pieces, and return the place. Raises OSError."""
        begin = self._end
        for chunk in chunks(text):
            self.append(chunk)
        return Extent(begin, self._end - begin)

    def read(self, extent: Extent) -> Iterator[bytes]:
        """Yield what was written at a place, in pieces."""
        at = extent.offset
        while at < extent.end:
            self._at_end = False
            self._file.seek(at)
            piece = self._file.read(min(CHUNK, extent.end - at))
            if not piece:
                raise OSError("The spool is shorter than it was.")
            yield piece
            at += len(piece)

    def close(self) -> None:
        """Give the disk back."""
        self._file.close()
