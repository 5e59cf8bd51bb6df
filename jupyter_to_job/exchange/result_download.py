"""Fetches a result from a gateway into a file: resumed after a cut, and compared with its digest.

The gateway names a result by its digest (`ETag`). So a later request gets either the rest of the
same result, or learns that there is another one by now, which is then fetched as a whole.
"""

from __future__ import annotations

import contextlib
import hashlib
import tempfile
from collections.abc import Iterator
from typing import BinaryIO, cast

import httpx

from ..domain.errors import Damaged, Stale, no_room, too_large_notebook
from .gateway import Gateway
from .patience import Patience
from .remote_piece import RemotePiece

MAX_TRIES = 3
"""How often a result is fetched that changes meanwhile, or arrives with another digest."""


def fetch_notebook(
    gateway: Gateway, path: str, max_size: int | None = None
) -> tuple[BinaryIO, str | None]:
    """Fetch a notebook into a file without a name; return it with its digest.

    The digest is None for a notebook that still grows. Raises Unavailable, Stale where it changes
    all the time, Damaged where what arrives is not what the gateway names, TooLarge for one of more
    than `max_size` bytes, and what the gateway answers.
    """
    for _ in range(MAX_TRIES - 1):
        with contextlib.suppress(Damaged, Stale):
            return _fetch(gateway, path, max_size)
    return _fetch(gateway, path, max_size)


def _fetch(gateway: Gateway, path: str, max_size: int | None) -> tuple[BinaryIO, str | None]:
    """Fetch one version of a notebook. Raises as `fetch_notebook`."""
    version, digest = _Version(gateway, path, max_size), hashlib.sha256()
    with contextlib.ExitStack() as stack:
        piece = stack.enter_context(RemotePiece(version.read, Patience()))
        try:
            file = cast("BinaryIO", tempfile.TemporaryFile())  # noqa: SIM115 - the caller's
            stack.callback(file.close)
            while chunk := piece.read():
                file.write(chunk)
                digest.update(chunk)
            file.flush()
            file.seek(0)
        except OSError as error:
            raise no_room("The notebook cannot be fetched", error) from error
        if version.sha256 not in (None, digest.hexdigest()):
            raise Damaged(
                f"The notebook of {path.split('/')[1]} is damaged in the exchange.",
                "Run the job again.",
            )
        stack.pop_all()
        piece.close()
        return file, version.sha256


class _Version:
    """One version of a notebook; `sha256` is the digest that the gateway names, if it does."""

    def __init__(self, gateway: Gateway, path: str, max_size: int | None) -> None:
        self._gateway = gateway
        self._path = path
        self._max_size = max_size
        self.sha256: str | None = None

    def read(self, offset: int) -> Iterator[bytes]:
        """Yield its bytes from `offset` on. Raises Stale if there is another version by now."""
        headers = {"Accept-Encoding": "identity"}
        if offset:
            headers |= {"Range": f"bytes={offset}-", "If-Range": f'"{self.sha256}"'}
        with self._gateway.stream("GET", self._path, headers=headers) as response:
            if offset and response.status_code != httpx.codes.PARTIAL_CONTENT:
                raise Stale("The notebook changed while it was fetched.", "Try again.")
            size = int(response.headers.get("Content-Length", 0))
            if self._max_size is not None and size > self._max_size:
                raise too_large_notebook(self._max_size)
            etag = response.headers.get("ETag")
            self.sha256 = None if etag is None else etag.strip('"')
            yield from response.iter_bytes()
