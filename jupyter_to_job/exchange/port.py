"""The port for pieces of job directories: files on one host, or a gateway over HTTPS.

All pieces are immutable or append-only, so sending one again is harmless. Paths are relative to the
job's directory, with `/`.
"""

from __future__ import annotations

from typing import Protocol


class Exchange(Protocol):
    """Reads and writes pieces of job directories."""

    def read(self, job: str, path: str, offset: int = 0) -> bytes | None:
        """Return the bytes of one piece from `offset`, or None if it is not there."""
        ...

    def size(self, job: str, path: str) -> int | None:
        """Return the length in bytes of one piece, or None if it is not there."""
        ...

    def put(self, job: str, path: str, data: bytes) -> None:
        """Write an immutable piece; the same bytes again are fine, others raise Conflict."""
        ...

    def append(self, job: str, path: str, offset: int, data: bytes) -> int:
        """Append to a growing piece and return its new length.

        Raises WrongOffset when `offset` is not the present end.
        """
        ...
