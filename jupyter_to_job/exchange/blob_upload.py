"""Sends files to a gateway as blobs: what is there is not sent, and what was cut off is resumed.

A large file goes in pieces, so that a lost connection or a killed controller costs one piece. No
file is ever whole in memory.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from typing import BinaryIO

import httpx

from ..domain.errors import BadInput, Conflict, Stale, Unavailable, WrongOffset
from .gateway import Gateway, json_of
from .patience import Patience

PIECE_SIZE = 16 << 20
"""Bytes of one request, at most."""
SMALL = 64 << 10
"""Bytes of a file that is sent without asking whether it is there: asking would take as long."""
MAX_RESTARTS = 5
"""Times that a file may be sent from an earlier byte on, because the gateway has lost some."""
_CHUNK = 1 << 20


class BlobSender:
    """Sends the files of one submission. Use it in one thread."""

    def __init__(self, gateway: Gateway, patience: Patience) -> None:
        self._gateway = gateway
        self._patience = patience

    def send(
        self,
        file: BinaryIO,
        size: int,
        label: str,
        step: Callable[[int], None] = lambda _: None,
    ) -> str:
        """Have the gateway keep the first `size` bytes of a file; return their digest.

        `step` is called with the number of bytes that are there in addition, and may raise to stop;
        `label` names the file in messages. Raises Stale if the file is written to meanwhile,
        Unavailable, and what the gateway answers.
        """
        digest = hashlib.sha256()
        for chunk in _chunks(file, 0, size, label):
            digest.update(chunk)
            step(0)
        path = f"blobs/{digest.hexdigest()}"
        try:
            if size > SMALL and self._is_there(path, step):
                step(size)
            elif size <= PIECE_SIZE:
                self._put(path, file, 0, size, label, step)
                step(size)
            else:
                self._send_pieces(path, file, size, label, step)
        except BadInput as error:  # the bytes had another digest
            raise _written_to(label) from error
        return digest.hexdigest()

    def _is_there(self, path: str, step: Callable[[int], None]) -> bool:
        try:
            self._call("HEAD", path, step)
        except Conflict:
            return False
        return True

    def _send_pieces(
        self, path: str, file: BinaryIO, size: int, label: str, step: Callable[[int], None]
    ) -> None:
        """Send what is not there yet, in order."""
        offset = restarts = 0
        headers = {"Content-Range": f"bytes */{size}"}
        length = self._length_after(lambda: self._call("PUT", path, step, headers=headers))
        while True:
            step(max(0, length - offset))
            restarts += length < offset
            if restarts > MAX_RESTARTS:
                raise Unavailable(f"The gateway does not keep {label}.", "Try again later.")
            offset = length
            if offset >= size:
                return
            end = min(offset + PIECE_SIZE, size)
            headers = {"Content-Range": f"bytes {offset}-{end - 1}/{size}"}
            length = self._length_after(
                lambda: self._put(path, file, offset, end, label, step, headers)  # noqa: B023
            )

    def _put(
        self,
        path: str,
        file: BinaryIO,
        start: int,
        end: int,
        label: str,
        step: Callable[[int], None],
        headers: dict[str, str] | None = None,
    ) -> httpx.Response:
        headers = {**(headers or {}), "Content-Length": str(end - start)}
        return self._call(
            "PUT", path, step, lambda: _chunks(file, start, end, label), headers=headers
        )

    def _length_after(self, send: Callable[[], httpx.Response]) -> int:
        """Return how many bytes are there after a request, also if they were there before it."""
        try:
            length: int = json_of(send())["length"]
        except WrongOffset as error:
            return error.length
        return length

    def _call(
        self,
        method: str,
        path: str,
        step: Callable[[int], None],
        content: Callable[[], Iterator[bytes]] | None = None,
        headers: dict[str, str] | None = None,
    ) -> httpx.Response:
        def send() -> httpx.Response:
            body = None if content is None else content()
            return self._gateway.call(method, path, content=body, headers=headers or {})

        return self._patience.call(send, lambda: step(0))  # it may have been withdrawn


def _chunks(file: BinaryIO, start: int, end: int, label: str) -> Iterator[bytes]:
    """Yield a range of a file. Raises Stale if the file is shorter now."""
    file.seek(start)
    while start < end:
        chunk = file.read(min(_CHUNK, end - start))
        if not chunk:
            raise _written_to(label)
        start += len(chunk)
        yield chunk


def _written_to(label: str) -> Stale:
    message = f"{label} was written to while it was sent."
    return Stale(message[0].upper() + message[1:], "Submit again when it is complete.")
