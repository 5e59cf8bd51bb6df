"""Snapshots and inputs by digest, sent before the submission that names them."""

from __future__ import annotations

import contextlib
import os
import time
from pathlib import Path

from ...domain.errors import BadInput, Stale, TooLarge
from ...exchange.pieces import make_folders, writing
from ...exchange.uploads import Upload
from .budgets import BLOBS_FOLDER, blob_folder

BLOB_TTL = 3600.0
"""Seconds after its last use in which a blob may be named."""
MAX_SNAPSHOT = 100 << 20
"""Bytes of a notebook that a gateway takes: it reads and checks it in memory."""
_MAX_TRIES = 3


class Blobs:
    """The blobs of one owner. A use of a blob is recorded as the time of its file."""

    def __init__(self, exchange: Path, owner: str) -> None:
        self._folder = blob_folder(exchange, owner)

    def put(self, digest: str, upload: Upload) -> None:
        """Store an upload. Raises BadInput if it does not have the digest."""
        if upload.sha256 != digest:
            raise BadInput("The bytes do not have this digest.", "Send them again.")
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
        if path.stat().st_size > MAX_SNAPSHOT:
            raise TooLarge(
                f"The notebook is over {MAX_SNAPSHOT >> 20} MiB.",
                "Clear its outputs and submit again.",
            )
        return path.read_bytes()


def collect(exchange: Path, moment: float | None = None) -> int:
    """Remove the blobs that nothing used for `BLOB_TTL` seconds; return how many.

    `moment` is unix time.
    """
    oldest = (time.time() if moment is None else moment) - BLOB_TTL
    removed = 0
    for folder in (exchange / BLOBS_FOLDER).glob("*"):
        with contextlib.suppress(OSError):
            for blob in folder.iterdir():
                if blob.stat().st_mtime < oldest:
                    blob.unlink()
                    removed += 1
            folder.rmdir()  # refused unless it is empty
    return removed
