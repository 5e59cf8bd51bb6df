"""Fetches a result from a gateway into a file: resumed after a cut, and compared with its digest.

The gateway names a result by its digest (`ETag`). So a later request gets either the rest of the
same result, or another one as a whole.
"""

from __future__ import annotations

import hashlib
import tempfile
import time
from typing import BinaryIO, cast

import httpx

from ..domain.errors import Damaged, Unavailable, no_room
from .gateway import Gateway

PATIENCE = 60.0
"""Seconds without a byte after which a result that has begun to come is given up."""
MIN_DELAY, MAX_DELAY = 0.2, 5.0
"""Seconds before the next request: after a cut, and at most."""
MAX_TRIES = 2
"""How often a result is fetched that arrives with another digest."""


def fetch_notebook(gateway: Gateway, path: str) -> tuple[BinaryIO, str | None]:
    """Fetch a notebook into a file without a name; return it with its digest.

    The digest is None for a notebook that still grows. Raises Unavailable, Damaged where what
    arrives is not what the gateway names, and what the gateway answers.
    """
    for _ in range(MAX_TRIES):
        try:
            file = cast("BinaryIO", tempfile.TemporaryFile())  # noqa: SIM115 - the caller's
            download = _Download(gateway, path, file)
            is_intact = False
            try:
                download.run()
                is_intact = download.is_intact
            finally:
                if not is_intact:
                    file.close()
        except OSError as error:
            raise no_room("The notebook cannot be fetched", error) from error
        if is_intact:
            return file, download.sha256
    raise Damaged(
        f"The notebook of {path.split('/')[1]} is damaged in the exchange.",
        "Run the job again with `jupyter-to-job rerun`.",
    )


class _Download:
    """One download into a file."""

    def __init__(self, gateway: Gateway, path: str, file: BinaryIO) -> None:
        self._gateway = gateway
        self._path = path
        self._digest = hashlib.sha256()
        self._length = 0
        self._file = file
        self.sha256: str | None = None

    @property
    def is_intact(self) -> bool:
        """Whether the bytes have the digest that the gateway named, if it named one."""
        return self.sha256 in (None, self._digest.hexdigest())

    def run(self) -> None:
        """Receive all bytes. Raises Unavailable, OSError, and what the gateway answers."""
        delay, length, moved_at = MIN_DELAY, 0, time.monotonic()
        while True:
            try:
                self._receive()
                break
            except Unavailable:
                if self._length > length:
                    delay, moved_at = MIN_DELAY, time.monotonic()
                length = self._length
                if length == 0 or time.monotonic() - moved_at > PATIENCE:
                    raise
            time.sleep(delay)
            delay = min(2 * delay, MAX_DELAY)
        self._file.flush()
        self._file.seek(0)

    def _receive(self) -> None:
        """Receive the rest, or all of another version."""
        headers = {"Accept-Encoding": "identity"}
        if self.sha256 is not None and self._length:
            headers |= {"Range": f"bytes={self._length}-", "If-Range": f'"{self.sha256}"'}
        with self._gateway.stream("GET", self._path, headers=headers) as response:
            if response.status_code != httpx.codes.PARTIAL_CONTENT:
                self._begin(response.headers.get("ETag"))
            for chunk in response.iter_bytes():
                self._file.write(chunk)
                self._digest.update(chunk)
                self._length += len(chunk)

    def _begin(self, etag: str | None) -> None:
        """Drop what has arrived: what comes now is a whole notebook."""
        self._file.seek(0)
        if self._length:
            self._file.truncate()
        self._length, self._digest = 0, hashlib.sha256()
        self.sha256 = None if etag is None else etag.strip('"')
