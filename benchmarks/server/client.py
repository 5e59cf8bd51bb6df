"""One kept connection to a Jupyter Server, with its token."""

from __future__ import annotations

import http.client
import json
import time
from dataclasses import dataclass, field
from typing import Any

REQUEST_TIMEOUT = 300.0
"""Seconds for one answer: a server under a flood may be slow."""


class RequestFailed(Exception):
    """An answer that is none of the 2xx."""


@dataclass
class Client:
    """Sends one request at a time; `elapsed` is how many seconds the last one took."""

    port: int
    token: str
    elapsed: float = field(default=0.0, init=False)

    def __post_init__(self) -> None:
        self._connection = http.client.HTTPConnection(
            "127.0.0.1", self.port, timeout=REQUEST_TIMEOUT
        )

    def request(self, method: str, path: str, body: Any = None, **headers: str) -> Any:
        """Return the answer's JSON; None if it has no body. Raises RequestFailed."""
        data = None if body is None else json.dumps(body).encode()
        content = self.send(method, path, data, **headers)
        return json.loads(content) if content else None

    def send(self, method: str, path: str, data: bytes | None = None, **headers: str) -> bytes:
        """Return the answer's bytes. Raises RequestFailed."""
        sent_headers = {name.replace("_", "-"): value for name, value in headers.items()}
        sent_headers["Authorization"] = f"token {self.token}"
        began = time.perf_counter()
        self._connection.request(method, path, data, sent_headers)
        answer = self._connection.getresponse()
        content = answer.read()
        self.elapsed = time.perf_counter() - began
        if not 200 <= answer.status < 300:
            raise RequestFailed(f"{method} {path}: {answer.status} {content[:500]!r}")
        return content

    def connect(self) -> None:
        """Connect now, so that no measured request has to."""
        self._connection.connect()

    def close(self) -> None:
        """Hang up."""
        self._connection.close()
