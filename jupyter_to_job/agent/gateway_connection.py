"""The agent's HTTP client: one connection to the gateway, with the standard library only.

The GPU is idle while an agent starts, and importing httpx takes longer than all else that it does
before it has the job's files (docs/decisions/0038-the-agent-beside-the-runner.md).
"""

from __future__ import annotations

import contextlib
import json
import ssl
from collections.abc import Iterator
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote, urlsplit

from .. import logs
from ..domain.errors import BadInput, Unavailable, error_of_answer

TIMEOUT = 30.0
"""Seconds for connecting, and between two pieces of an answer."""
CHUNK_SIZE = 1 << 20
"""Bytes of a file that are in memory at a time."""


class Written(NamedTuple):
    """The answer to a write: the file's length, and whether somebody watches the job."""

    length: int
    is_watched: bool


class GatewayConnection:
    """Reads and writes the files of one job; it raises the errors of `domain.errors`.

    One thread at a time uses it. The token is read for each request, because the kubelet renews it.
    `ca` are the certificates, in PEM, that the gateway's own is checked against; "": the usual.
    """

    def __init__(self, url: str, token_file: Path, job: str, ca: str = "") -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or parts.hostname is None:
            raise BadInput(f"{url!r} is no URL of a gateway.", "It begins with https:// or http://")
        self._connection = HTTPConnection(parts.hostname, parts.port, timeout=TIMEOUT)
        if parts.scheme == "https":
            trust = ssl.create_default_context(cadata=ca or None)
            self._connection = HTTPSConnection(
                parts.hostname, parts.port, timeout=TIMEOUT, context=trust
            )
        self._prefix = f"{parts.path.rstrip('/')}/api/exchange/{quote(job)}/"
        self._token_file = token_file

    def read(self, path: str, offset: int = 0) -> Iterator[bytes]:
        """Yield a file's bytes from `offset` on, in chunks."""
        headers = {"Range": f"bytes={offset}-"} if offset else {}
        with self._answer("GET", _quoted(path), b"", headers) as response:
            while chunk := response.read(CHUNK_SIZE):
                yield chunk
            if response.length:
                raise Unavailable(f"The gateway sent only a part of {path}.", "It is tried again.")

    def put(self, path: str, data: bytes) -> Written:
        """Write a file that never changes; the same bytes again are fine, others raise Conflict."""
        return self._write("PUT", _quoted(path), data)

    def append(self, path: str, offset: int, data: bytes) -> Written:
        """Append to a file. Raises WrongOffset if it does not end at `offset`."""
        return self._write("POST", f"{_quoted(path)}?offset={offset}", data)

    def _write(self, method: str, target: str, data: bytes) -> Written:
        with self._answer(method, target, data, {}) as response:
            content = response.read()
        try:
            answer = json.loads(content)
            return Written(answer["length"], answer.get("watched", False))
        except (ValueError, KeyError, TypeError, AttributeError) as error:  # a proxy's page
            raise error_of_answer(response.status, content) from error

    @contextlib.contextmanager
    def _answer(
        self, method: str, target: str, data: bytes, headers: dict[str, str]
    ) -> Iterator[HTTPResponse]:
        """Send one request and yield its answer. Raises the error that the gateway answers."""
        headers = {**headers, "Authorization": f"Bearer {self._token()}"}
        if (request_id := logs.request_id()) is not None:
            headers[logs.HEADER] = request_id
        try:
            response = self._send(method, target, data, headers)
            if response.status < 300:
                yield response
                return
            content = response.read()
        except (OSError, HTTPException) as error:
            self._connection.close()
            message = f"The gateway cannot be reached: {error or type(error).__name__}."
            raise Unavailable(message, "It is tried again.") from error
        except BaseException:
            self._connection.close()  # the rest of the answer may be on its way
            raise
        raise error_of_answer(response.status, content)

    def _send(self, method: str, target: str, data: bytes, headers: dict[str, str]) -> HTTPResponse:
        """Send a request; again, if the gateway has closed the idle connection meanwhile."""
        is_reused = self._connection.sock is not None
        try:
            self._connection.request(method, self._prefix + target, data, headers)
            return self._connection.getresponse()
        except (ConnectionError, HTTPException):
            self._connection.close()
            if not is_reused:
                raise
        self._connection.request(method, self._prefix + target, data, headers)
        return self._connection.getresponse()

    def _token(self) -> str:
        try:
            return self._token_file.read_text().strip()
        except OSError as error:
            raise Unavailable(
                f"The token {self._token_file} cannot be read: {error.strerror}.",
                "The pod needs a projected service-account token for the audience jupyter-to-job.",
            ) from error


def _quoted(path: str) -> str:
    """Return a path as it is in an address: a run may give a file a name that is not UTF-8."""
    return quote(path, errors="surrogateescape")
