"""Bytes on their way into the exchange: hashed as they come, and never all in memory."""

from __future__ import annotations

import contextlib
import hashlib
import os
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from job_runner.protocol import documents

MAX_IN_MEMORY = 256 << 10
"""Bytes of an upload that stay in memory; a larger one is in a draft file."""
_CHUNK = 1 << 20


class Upload:
    """Collects bytes in memory while they are few, and else in a draft file in `folder`.

    One thread at a time uses it. The folder is on the exchange's own file system: so a complete
    draft becomes a file of the exchange by a link, without a copy. Without a folder all bytes stay
    in memory.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self.size = 0
        self._folder = folder
        self._buffer = bytearray()
        self._digest = hashlib.sha256()
        self._draft: Path | None = None
        self._file: BinaryIO | None = None

    @classmethod
    def of(cls, data: bytes) -> Upload:
        """Return a complete upload of bytes that are in memory anyway."""
        upload = cls()
        upload.write(data)
        return upload

    @property
    def sha256(self) -> str:
        """The digest of all bytes so far, in hex."""
        return self._digest.hexdigest()

    @property
    def is_small(self) -> bool:
        """Whether all bytes are in memory."""
        return self._file is None

    @property
    def data(self) -> bytes:
        """The bytes of a small upload."""
        return bytes(self._buffer)

    def write(self, chunk: bytes) -> None:
        """Take the next bytes. Raises OSError where the disk has no room."""
        self._digest.update(chunk)
        self.size += len(chunk)
        if self._file is None:
            self._buffer += chunk
            if self._folder is not None and len(self._buffer) > MAX_IN_MEMORY:
                self._begin_draft(self._folder)
        else:
            self._file.write(chunk)

    def chunks(self) -> Iterator[bytes]:
        """Yield all bytes, from the first one on."""
        if self._file is None:
            yield bytes(self._buffer)
            return
        self._file.seek(0)
        while chunk := self._file.read(_CHUNK):
            yield chunk

    def place(self, target: Path) -> bool:
        """Write the file if there is none at `target` yet, atomically and durably.

        False if there is. Raises OSError.
        """
        if self._file is None or self._draft is None:
            return documents.write_bytes_once(target, self.data)
        self._file.flush()
        os.fsync(self._file.fileno())
        try:
            os.link(self._draft, target)
        except FileExistsError:
            return False
        documents.sync_directory(target.parent)
        return True

    def equals(self, path: Path) -> bool:
        """Tell whether a file has exactly these bytes. Raises OSError."""
        with documents.open_regular(path) as file:
            if os.fstat(file.fileno()).st_size != self.size:
                return False
            return all(file.read(len(chunk)) == chunk for chunk in self.chunks())

    def close(self) -> None:
        """Free memory and disk; call it again as often as you like."""
        self._buffer = bytearray()
        if self._file is not None:
            with contextlib.suppress(OSError):
                self._file.close()
        if self._draft is not None:
            with contextlib.suppress(OSError):
                self._draft.unlink(missing_ok=True)
            self._draft = None

    def _begin_draft(self, folder: Path) -> None:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._draft = folder / secrets.token_hex(8)
        descriptor = os.open(self._draft, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        self._file = os.fdopen(descriptor, "w+b")
        self._file.write(self._buffer)
        self._buffer = bytearray()
