"""Clients that read the gateway's answers slowly, or not at all."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import psutil
import pytest

from jupyter_to_job.controller import handler
from jupyter_to_job.exchange import FileExchange

from ..gateways import context_of, serving
from ..processes import until
from . import exchanges

JOB = "train-abcdefgh"
SEND_TIMEOUT = 2.0
LISTED = [f"listed-{letter}aaaaaaa" for letter in "abcdefghijklmnopqrstuvwxyz"]
"""Jobs in a list, each with a parameter of 300 kB: an answer of 8 MB."""
ANSWERS = pytest.mark.parametrize(
    ("path", "token"), [(f"jobs/{JOB}/notebook", "me"), ("jobs", "eve")]
)
"""A large file, and a long list."""


@pytest.fixture
def url(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A gateway that waits for its clients for a short time, with large answers."""
    monkeypatch.setattr(handler, "SEND_TIMEOUT", SEND_TIMEOUT)
    exchange = FileExchange(tmp_path / "exchange")
    exchange.prepare()
    directory = exchanges.settle(exchange, JOB)
    (directory / "attempt-1" / "result.ipynb").write_bytes(bytes(20 << 20))
    for name in LISTED:
        exchanges.add(exchange, name, owner="eve", parameters={"x": "y" * 300_000})
    with context_of(exchange) as context, serving(context) as url:
        yield url


@contextmanager
def request(url: str, path: str, token: str) -> Iterator[socket.socket]:
    """Send a request over a connection that takes little at a time; yield its socket."""
    parts = urlsplit(url)
    head = f"GET /api/{path} HTTP/1.1\r\nHost: gateway\r\nAuthorization: Bearer {token}\r\n\r\n"
    with socket.socket() as made:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 16 << 10)
        made.settimeout(60)
        made.connect((parts.hostname, parts.port))
        made.sendall(head.encode())
        yield made


def answer(made: socket.socket) -> Iterator[bytes]:
    """Yield a body in pieces as they are read, up to its declared length."""
    with made.makefile("rb") as reader:
        assert reader.readline().split()[1] == b"200"
        headers = dict(line.lower().split(b": ") for line in iter(reader.readline, b"\r\n"))
        remaining = int(headers[b"content-length"])
        while remaining and (piece := reader.read(min(remaining, 256 << 10))):
            remaining -= len(piece)
            yield piece


@ANSWERS
def test_who_does_not_read_is_cut_off(url: str, path: str, token: str) -> None:
    with request(url, path, token) as made:
        assert sum(map(len, answer(made))) > 5 << 20  # more than sockets hold
    before = psutil.Process().num_fds()
    with ExitStack() as clients:
        connections = [clients.enter_context(request(url, path, token)) for _ in range(10)]
        for made in connections:
            made.recv(1)
        until(
            lambda: psutil.Process().num_fds() <= before + len(connections),
            "the gateway closes its ends",
        )


@ANSWERS
def test_who_reads_slowly_gets_everything(url: str, path: str, token: str) -> None:
    with request(url, path, token) as made:
        whole = b"".join(answer(made))
    began, pieces = time.monotonic(), []
    with request(url, path, token) as made:
        for number, piece in enumerate(answer(made)):
            pieces.append(piece)
            if number < 12:
                time.sleep(SEND_TIMEOUT / 3)  # this client is slow
    assert b"".join(pieces) == whole
    assert time.monotonic() - began > 3 * SEND_TIMEOUT
