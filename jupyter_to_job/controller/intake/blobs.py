"""Snapshots and inputs by digest, sent before the submission that names them.

A large blob comes in pieces, one after the other. What has arrived of it is in a file beside the
complete blobs. So after a cut, or after the controller was killed, only the piece that was on its
way is sent again.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import time
from collections.abc import Iterator
from io import FileIO
from pathlib import Path
from typing import BinaryIO, cast

from job_runner.protocol import documents

from ...domain.errors import BadInput, Conflict, Stale, TooLarge, Unavailable, WrongOffset
from ...exchange.pieces import make_folders, writing
from ...exchange.uploads import Upload
from ...workspace.freezing.freeze import MAX_SENT_NOTEBOOK
from ...workspace.publishing.drafts import digest_of
from .budgets import BLOBS_FOLDER, blob_folder

BLOB_TTL = 3600.0
"""Seconds after the last use of any blob of an owner in which all of them may be named."""
MAX_UPLOAD_TIME = 86400.0
"""Seconds after its own last use in which a blob waits for a submission that still goes on."""
PART_SUFFIX = ".part"
"""Ending of the file of a blob that is not complete."""
_MAX_TRIES = 3


class Blobs:
    """The blobs of one owner. A use of a blob is recorded as the time of its file."""

    def __init__(self, exchange: Path, owner: str) -> None:
        self._folder = blob_folder(exchange, owner)

    def put(self, digest: str, upload: Upload) -> None:
        """Store an upload. Raises BadInput if it does not have the digest."""
        if upload.sha256 != digest:
            raise wrong_digest()
        with writing():
            for attempt in range(_MAX_TRIES):
                make_folders(self._folder)
                try:
                    if not upload.place(self._folder / digest):
                        os.utime(self._folder / digest)
                    return
                except FileNotFoundError:  # `collect` has just removed the folder, or the old blob
                    if attempt == _MAX_TRIES - 1:
                        raise

    def received(self, digest: str, total: int) -> int:
        """Return how many bytes of a blob of `total` bytes are here.

        A blob of which all bytes are here is completed: a killed controller may have left it so.
        Raises as `append`.
        """
        path = self._folder / digest
        with contextlib.suppress(OSError):
            os.utime(path)
            return path.stat().st_size
        length = 0
        with contextlib.suppress(OSError):
            length = self._part(digest).stat().st_size
        return length if length < total else self.append(digest, total, length, Upload.of(b""))

    def append(self, digest: str, total: int, offset: int, piece: Upload) -> int:
        """Take the next piece of a blob of `total` bytes; return how many bytes are here.

        With its last byte the blob is complete. What is here is always its beginning, also of a
        piece that was cut off by a full disk. Raises WrongOffset unless the piece begins where
        that ends; BadInput where the bytes do not have the digest: then nothing of them is kept;
        Unavailable while another request writes to it, or has its digest computed.
        """
        with writing(), self._open_part(digest) as part:
            length = part.seek(0, os.SEEK_END)
            if length != offset:
                raise WrongOffset(f"The blob {digest[:12]} ends at {length}.", length)
            if length + piece.size > total:
                self._part(digest).unlink()
                raise Conflict(f"The blob {digest[:12]} is longer than {total} bytes.")
            for chunk in piece.chunks():
                _write(part, chunk)
            if length + piece.size == total:
                self._complete(digest, part)
            return length + piece.size

    def _complete(self, digest: str, part: FileIO) -> None:
        """Make a part whose bytes are all here a blob. Raises BadInput, and OSError."""
        path = self._part(digest)
        part.seek(0)
        if digest_of(cast("BinaryIO", part)) != digest:
            path.unlink()
            raise wrong_digest()
        os.fsync(part.fileno())
        path.rename(self._folder / digest)
        documents.sync_directory(self._folder)

    @contextlib.contextmanager
    def _open_part(self, digest: str) -> Iterator[FileIO]:
        """Open the file of an incomplete blob, for one request at a time.

        Raises WrongOffset, and Unavailable while another request has it: a thread that waited
        would be missing for everybody else.
        """
        path, blob = self._part(digest), self._folder / digest
        make_folders(self._folder)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
        with FileIO(descriptor, "r+") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                raise Unavailable(
                    f"Another request writes to the blob {digest[:12]}.", "Try again in a moment."
                ) from error
            # Another request may have completed it, or removed it, before this one had the lock.
            if blob.exists():
                path.unlink(missing_ok=True)
                length = blob.stat().st_size
                raise WrongOffset(f"The blob {digest[:12]} is complete.", length)
            if not _is_at(path, file):
                raise WrongOffset(f"The blob {digest[:12]} begins anew.", 0)
            yield file

    def _part(self, digest: str) -> Path:
        return self._folder / f"{digest}{PART_SUFFIX}"

    def path(self, digest: str) -> Path:
        """Return the path of a blob, which counts as a use. Raises Stale if it is not there."""
        path = self._folder / digest
        try:
            os.utime(path)
        except OSError as error:
            raise Stale(
                f"The blob {digest[:12]} was not sent.", "Send it, then submit again."
            ) from error
        return path

    def snapshot(self, digest: str) -> bytes:
        """Return the bytes of a notebook. Raises Stale or TooLarge."""
        path = self.path(digest)
        if path.stat().st_size > MAX_SENT_NOTEBOOK:
            raise TooLarge(
                f"The notebook is over {MAX_SENT_NOTEBOOK >> 20} MiB.",
                "Clear its outputs and submit again.",
            )
        return path.read_bytes()


def _is_at(path: Path, file: FileIO) -> bool:
    """Tell whether an open file is the one at a path."""
    try:
        return os.path.samestat(path.stat(), os.fstat(file.fileno()))
    except FileNotFoundError:
        return False


def _write(file: FileIO, chunk: bytes) -> None:
    """Write a whole chunk to a file without a buffer."""
    remaining = memoryview(chunk)
    while remaining:
        remaining = remaining[file.write(remaining) :]


def wrong_digest() -> BadInput:
    """Return the error for bytes that are not those of their name."""
    return BadInput("The bytes do not have this digest.", "Send them again.")


def collect(exchange: Path, moment: float | None = None) -> int:
    """Remove the blobs of owners who used none for `BLOB_TTL` seconds; return how many.

    While one is used or comes in, a submission may name all of them at its end, up to
    `MAX_UPLOAD_TIME` after their own last use. What a job has under another name goes `BLOB_TTL`
    after its own last use: while it is here, too, clearing that job frees nothing. `moment` is
    unix time.
    """
    now = time.time() if moment is None else moment
    removed = 0
    for folder in (exchange / BLOBS_FOLDER).glob("*"):
        with contextlib.suppress(OSError):
            statuses = {blob: blob.stat() for blob in folder.iterdir()}
            newest = max((status.st_mtime for status in statuses.values()), default=0.0)
            for blob, status in statuses.items():
                may_be_waiting = status.st_nlink == 1 and newest >= now - BLOB_TTL
                if status.st_mtime < now - (MAX_UPLOAD_TIME if may_be_waiting else BLOB_TTL):
                    blob.unlink()
                    removed += 1
            folder.rmdir()  # refused unless it is empty
    return removed
