"""A gateway on a real port whose callers are who their tokens say, and clients of its events."""

from __future__ import annotations

import asyncio
import contextlib
import json
import time
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from tornado.httpclient import AsyncHTTPClient, HTTPResponse
from tornado.testing import bind_unused_port

from job_runner.protocol.journal import journal
from jupyter_to_job.backends.kubernetes import KubernetesBackend
from jupyter_to_job.controller.callers.identity import AgentPod, DevPod, Identity
from jupyter_to_job.controller.feed.gateway_feed import GatewayFeed
from jupyter_to_job.controller.gateway import http_server
from jupyter_to_job.controller.handler import GatewayContext
from jupyter_to_job.controller.intake.attempt_budgets import AttemptBudgets
from jupyter_to_job.controller.intake.budgets import Budgets, Caps
from jupyter_to_job.controller.intake.exchange_routes import ExchangeRoutes
from jupyter_to_job.controller.intake.intake import Intake
from jupyter_to_job.domain.errors import JobsError
from jupyter_to_job.exchange import FileExchange
from jupyter_to_job.flavors import load_catalog
from jupyter_to_job.service.jobs import ServiceContext

BOUND = 60.0
"""Seconds within which everything happens, also on a busy machine."""
Event = dict[str, Any]


@dataclass
class Tokens:
    """Takes a token for its owner, or its agent's job; `faults` has errors to raise instead."""

    faults: dict[str, JobsError] = field(default_factory=dict)

    async def authenticate(self, token: str) -> Identity:
        if token in self.faults:
            raise self.faults[token]
        kind, _, job = token.partition(":")
        return AgentPod(job, f"pod-of-{job}") if kind == "agent" else DevPod(token, {})


@dataclass
class Stream:
    """One client's event stream. Comments are skipped: they are heartbeats."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    async def next(self) -> Event:
        """Return the next Job, or `{"deleted": name}`. Raises EOFError at the stream's end."""
        is_deleted = False
        while True:
            line = await asyncio.wait_for(self.reader.readline(), BOUND)
            if line in (b"", b"0\r\n"):  # the last chunk
                raise EOFError
            is_deleted = is_deleted or line.startswith(b"event: deleted")
            if line.startswith(b"data: "):
                document: Event = json.loads(line.removeprefix(b"data: "))
                return {"deleted": document["name"]} if is_deleted else document

    async def until(self, condition: Callable[[Event], bool]) -> list[Event]:
        """Return the events up to the first for which the condition holds, that one included."""
        events = [await self.next()]
        while not condition(events[-1]):
            events.append(await self.next())
        return events

    async def all_now(self) -> list[Event]:
        """Return what comes before two heartbeats in a row."""
        events, heartbeats = [], 0
        while heartbeats < 2:
            line = await asyncio.wait_for(self.reader.readline(), BOUND)
            heartbeats += line.startswith(b":")
            if line.startswith(b"data: "):
                events.append(json.loads(line.removeprefix(b"data: ")))
                heartbeats = 0
        return events

    async def ended(self) -> None:
        """Wait until the gateway has ended the stream."""
        with contextlib.suppress(EOFError, ConnectionError):
            while True:
                await self.next()


@dataclass
class Place:
    """An exchange and its gateway."""

    exchange: FileExchange
    context: GatewayContext
    tokens: Tokens
    port: int
    streams: list[Stream] = field(default_factory=list)

    @property
    def feed(self) -> GatewayFeed:
        return self.context.feed

    async def ask(self, method: str, path: str, token: str, body: bytes = b"") -> HTTPResponse:
        """Send a request; any answer will do."""
        return await AsyncHTTPClient().fetch(
            f"http://127.0.0.1:{self.port}/api/{path}",
            method=method,
            body=body or (b"" if method in ("POST", "PUT") else None),
            headers={"Authorization": f"Bearer {token}"},
            raise_error=False,
        )

    async def follow(self, owner: str, query: str = "") -> Stream:
        """Open an event stream, and wait for its first comment."""
        stream = Stream(*await asyncio.open_connection("127.0.0.1", self.port))
        self.streams.append(stream)
        head = (
            f"GET /api/events{query} HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer {owner}\r\n\r\n"
        )
        stream.writer.write(head.encode())
        while not (line := await asyncio.wait_for(stream.reader.readline(), BOUND)).startswith(
            b":"
        ):
            assert line, "the gateway closed the connection"
        return stream


class Agent:
    """Sends what a job prints, by the gateway's routes."""

    def __init__(self, place: Place, job: str) -> None:
        self._place = place
        self._job = job
        self.sent = 0

    async def claim(self) -> bool:
        return await self._send(
            "PUT", "runner.json", json.dumps({"v": 1, "pod": f"pod-of-{self._job}"})
        )

    async def print(self) -> bool:
        output = {"output_type": "stream", "name": "stdout", "text": "epoch\n"}
        record = {"t": time.time(), "k": "output", "i": 0, "output": output}
        body = journal.encode(record).decode()
        path = f"journal/00000001.jsonl?offset={self.sent}"
        is_watched = await self._send("POST", path, body)
        self.sent += len(body)
        return is_watched

    async def _send(self, method: str, path: str, body: str) -> bool:
        """Send a piece; return what the answer says: whether somebody watches the job."""
        path = f"exchange/{self._job}/attempt-1/{path}"
        answer = await self._place.ask(method, path, f"agent:{self._job}", body.encode())
        assert answer.code == 200, answer.body
        return bool(json.loads(answer.body)["watched"])


@contextlib.asynccontextmanager
async def gateway(exchange: FileExchange, full_look_interval: float = 1e6) -> AsyncIterator[Place]:
    """Serve an exchange. What nobody marks is not seen, unless an interval is given."""
    loop = asyncio.get_running_loop()

    def on_request(job: str) -> None:
        loop.call_soon_threadsafe(feed.mark, job)

    backend = KubernetesBackend(on_request, lambda _: None)
    core, tokens = ServiceContext(exchange, backend, load_catalog), Tokens()
    feed = GatewayFeed(core, full_look_interval)
    budgets = Budgets(exchange, Caps(reserve=0))
    with ThreadPoolExecutor(4) as pool, ThreadPoolExecutor(4) as bulk:
        context = GatewayContext(
            core=core,
            identities=tokens,  # type: ignore[arg-type]
            exchange_routes=ExchangeRoutes(exchange, AttemptBudgets(exchange, budgets)),
            pool=pool,
            feed=feed,
            on_change=feed.mark,
            intake=Intake(exchange.root, budgets, bulk, 30.0, 600.0),
        )
        server = http_server(context)
        socket, port = bind_unused_port()
        server.add_socket(socket)
        running = asyncio.create_task(feed.run())
        place = Place(exchange, context, tokens, port)
        try:
            yield place
        finally:
            for stream in place.streams:
                stream.writer.close()
            server.stop()
            await server.close_all_connections()
            running.cancel()
            await asyncio.wait([running])
