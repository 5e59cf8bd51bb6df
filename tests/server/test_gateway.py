"""The gateway over HTTP: files go out by pieces, as long as they were when they were asked for."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from tornado.httpclient import AsyncHTTPClient, HTTPResponse
from tornado.httpserver import HTTPServer
from tornado.testing import bind_unused_port

from job_runner.protocol import layout
from jupyter_to_job.api.http import CHUNK, ApiResponse
from jupyter_to_job.controller.gateway import http_server
from jupyter_to_job.exchange import FileExchange

from ..gateways import context_of
from ..unit import exchanges
from . import openapi

JOB = "train-abcdefgh"
RESULT = b"0123456789" * (CHUNK // 4)
Ask = Callable[..., Awaitable[HTTPResponse]]


@pytest.fixture
def exchange(tmp_path: Path) -> FileExchange:
    found = FileExchange(tmp_path / "exchange")
    directory = exchanges.settle(found, JOB)
    (directory / "attempt-1" / layout.RESULT).write_bytes(RESULT)
    return found


@pytest.fixture
def ask(exchange: FileExchange, jp_asyncio_loop: Any) -> Any:
    """Sends a request to a gateway of this test's own."""
    socket, port = bind_unused_port()
    servers: list[HTTPServer] = []
    with context_of(exchange) as context:

        async def send(method: str, path: str, owner: str = "me", **headers: str) -> HTTPResponse:
            if not servers:
                servers.append(http_server(context))
                servers[0].add_socket(socket)
            return await AsyncHTTPClient().fetch(
                f"http://127.0.0.1:{port}/api/{path}",
                method=method,
                headers={"Authorization": f"Bearer {owner}", **headers},
                raise_error=False,
            )

        yield send
        for server in servers:
            server.stop()


async def test_a_result(ask: Ask) -> None:
    answer = await ask("GET", f"jobs/{JOB}/notebook")
    assert (answer.code, answer.body) == (200, RESULT)
    assert answer.headers["Content-Length"] == str(len(RESULT))
    assert answer.headers["Content-Type"] == "application/x-ipynb+json"
    assert (await ask("GET", f"jobs/{JOB}/notebook", owner="eve")).code == 404


async def test_health(ask: Ask) -> None:
    health = json.loads((await ask("GET", "health")).body)
    openapi.validate("Health", health)
    assert health["events"] is False  # these are a Jupyter Server's


async def test_a_piece_from_an_offset(ask: Ask) -> None:
    path = f"exchange/{JOB}/attempt-1/{layout.RESULT}"
    whole, rest = await ask("GET", path), await ask("GET", path, Range="bytes=7-")
    assert (whole.code, whole.body) == (200, RESULT)
    assert (rest.code, rest.body) == (206, RESULT[7:])
    for offset in (len(RESULT) + 5, 10**18 - 1):
        beyond = await ask("GET", path, Range=f"bytes={offset}-")
        assert (beyond.code, beyond.body) == (206, b"")
    head = await ask("HEAD", path)
    assert (head.code, head.headers["Content-Length"]) == (200, str(len(RESULT)))


async def test_a_piece_that_grows_meanwhile(
    ask: Ask, exchange: FileExchange, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = exchange.root / JOB / "attempt-1" / layout.RESULT
    chunks = ApiResponse.chunks

    def growing(self: ApiResponse, size: int = CHUNK) -> Any:
        assert self.length == len(RESULT) and self.file is not None
        file.write_bytes(RESULT * 2)
        yield from chunks(self, size)

    monkeypatch.setattr(ApiResponse, "chunks", growing)
    answer = await ask("GET", f"exchange/{JOB}/attempt-1/{layout.RESULT}")
    assert (answer.code, answer.body) == (200, RESULT)


async def test_no_submission_can_be_withdrawn(ask: Ask) -> None:
    answer = await ask("DELETE", "submissions/click")
    assert answer.code == 404
    error = json.loads(answer.body)["error"]
    assert (error["code"], error["hint"]) == ("no_route", "Cancel or delete the job.")
