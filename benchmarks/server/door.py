"""One kept connection to a Jupyter Server, with its token."""

from __future__ import annotations

import http.client
import json
import time
from dataclasses import dataclass, field
from typing import Any

PATIENCE = 300.0
"""Seconds for one answer: a server under a flood may be slow."""


class Refusal(Exception):
    """An answer that is none of the 2xx."""


@dataclass
class Door:
    """Sends one request at a time; `took` is how long the last one was on its way, in seconds."""

    port: int
    token: str
    took: float = field(default=0.0, init=False)

    def __post_init__(self) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)

    def ask(self, method: str, path: str, body: Any = None, **headers: str) -> Any:
        """Return the answer's JSON; None if it has no body. Raises Refusal."""
        sent = None if body is None else json.dumps(body).encode()
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        named["Authorization"] = f"token {self.token}"
        began = time.perf_counter()
        self._connection.request(method, path, sent, named)
        answer = self._connection.getresponse()
        said = answer.read()
        self.took = time.perf_counter() - began
        if not 200 <= answer.status < 300:
            raise Refusal(f"{method} {path}: {answer.status} {said[:500]!r}")
        return json.loads(said) if said else None

    def open(self) -> None:
        """Connect now, so that no measured request has to."""
        self._connection.connect()

    def close(self) -> None:
        """Hang up."""
        self._connection.close()
