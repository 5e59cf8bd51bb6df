"""The clients: users with an event stream each, agents that send what their notebooks print."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Coroutine
from typing import Any

import httpx

from job_runner.protocol.journal import journal

from .record import FIRST_SEGMENT

_BEGINNING = [
    {"k": "start", "t": time.time(), "v": 1},
    {"k": "prepared", "cells_total": 20},
    {"k": "cell_start", "i": 0},
]
_LINE = {"output_type": "stream", "name": "stdout", "text": f"epoch: loss={'0.1234 ' * 12}\n"}
WRONG_OFFSET = 409
"""Answers an append that had arrived although its answer did not."""
RETRY_INTERVAL = 0.1
"""Seconds until a client tries again to reach a gateway."""
LINES = 5
"""Records that an agent sends at a time."""


class Clients:
    """Talks to one gateway; `events` counts the Jobs that all streams received.

    `informed` has the owners whose streams received a Job, `accepted` the jobs whose agents sent
    something: whoever wants to know that anew clears them.
    """

    def __init__(self, port: int) -> None:
        self._port = port
        limits = httpx.Limits(max_connections=None, max_keepalive_connections=None)
        url = f"http://127.0.0.1:{port}/api/"
        self._client = httpx.AsyncClient(base_url=url, limits=limits, timeout=60.0)
        self.events = 0
        self.appends = 0
        self.informed: set[str] = set()
        self.accepted: set[str] = set()
        self._sent: dict[str, int] = {}

    async def page(self, owner: str) -> float:
        """Ask for a page of a user's list; return how many seconds the answer took."""
        began = time.perf_counter()
        answer = await self._client.get("jobs", params={"limit": 50}, headers=_dev(owner))
        answer.raise_for_status()
        assert answer.json()["jobs"], f"{owner} has no jobs"
        return time.perf_counter() - began

    async def follow(self, owner: str) -> None:
        """Read a user's event stream until it ends."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self._port)
        try:
            token = _dev(owner)["Authorization"]
            writer.write(
                f"GET /api/events HTTP/1.1\r\nHost: a\r\nAuthorization: {token}\r\n\r\n".encode()
            )
            while line := await reader.readline():
                if line.startswith(b"data:"):
                    self.events += 1
                    self.informed.add(owner)
        finally:
            writer.close()

    async def keep_following(self, owner: str) -> None:
        """Read a user's event stream, and connect again whenever it ends."""
        while True:
            with contextlib.suppress(OSError):
                await self.follow(owner)
            await asyncio.sleep(RETRY_INTERVAL)

    async def run_job(self, job: str, interval: float) -> None:
        """Send what a job prints, every `interval` seconds, until it is cancelled.

        A gateway that is away is tried again, as an agent does. Called again, it goes on.
        """
        headers = {"Authorization": f"Bearer agent:{job}"}
        address = f"exchange/{job}/attempt-1/{FIRST_SEGMENT}"
        records: list[dict[str, Any]] = [] if job in self._sent else _BEGINNING
        while True:
            body = b"".join(map(journal.encode, records))
            try:
                answer = await self._client.post(
                    address,
                    params={"offset": self._sent.get(job, 0)},
                    content=body,
                    headers=headers,
                )
            except httpx.TransportError:
                await asyncio.sleep(RETRY_INTERVAL)
                continue
            if answer.status_code == WRONG_OFFSET:
                self._sent[job] = answer.json()["error"]["length"]
            else:
                self._sent[job] = answer.raise_for_status().json()["length"]
                self.appends += 1
                self.accepted.add(job)
            records = [{"t": time.time(), "k": "output", "i": 0, "output": _LINE}] * LINES
            await asyncio.sleep(interval)


@contextlib.asynccontextmanager
async def at_work(*works: Coroutine[Any, Any, None]) -> AsyncIterator[None]:
    """Have clients work beside the block. Raises what one of them raised meanwhile."""
    tasks = [asyncio.create_task(work) for work in works]
    try:
        yield
        for task in tasks:
            if task.done():
                raise RuntimeError("a client ended early") from task.exception()
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _dev(owner: str) -> dict[str, str]:
    return {"Authorization": f"Bearer dev:{owner}"}
