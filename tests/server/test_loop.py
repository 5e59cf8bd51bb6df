"""Nothing keeps the event loop for long, whatever is asked of the server at the same time.

`pytest tests/server/test_loop.py --log-cli-level info` shows the figures.
JUPYTER_TO_JOB_LARGE=200000000 (bytes of a notebook) and JUPYTER_TO_JOB_MANY=10000 (jobs) make it
the real thing; without them it is quick.

On a busy machine any process stands still now and then. So each thing is tried some times, for a
loop that is blocked is blocked every time; and what the same loop shows while it is idle is
allowed.
"""

from __future__ import annotations

import asyncio
import getpass
import json
import logging
import os
import time
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Any

import nbformat.v4 as v4
import pytest

from jupyter_to_job.backends.memory import MemoryBackend
from jupyter_to_job.exchange import FileExchange

from ..unit import exchanges
from .test_routes import API, post, write_notebook

Fetch = Callable[..., Awaitable[Any]]
LIMIT = 0.05
TRIES = 5
STEP = 0.002
log = logging.getLogger(__name__)
LARGE = int(os.environ.get("JUPYTER_TO_JOB_LARGE", "40000000"))
MANY = int(os.environ.get("JUPYTER_TO_JOB_MANY", "2000"))


@pytest.fixture(autouse=True)
def memory(exchange: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs no code: the machine's cores are for the server."""
    monkeypatch.setenv("JUPYTER_TO_JOB_BACKEND", "memory")


@pytest.fixture
def queued(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is started at all."""
    held = partial(MemoryBackend, hold="queued")
    monkeypatch.setattr("jupyter_to_job.backends.memory.MemoryBackend", held)


async def longest(work: Awaitable[Any]) -> float:
    """Do it, and return for how long the loop answered nobody meanwhile, in seconds."""
    worst, over = 0.0, False

    async def probe() -> None:
        nonlocal worst
        while not over:
            before = time.perf_counter()
            await asyncio.sleep(STEP)
            worst = max(worst, time.perf_counter() - before - STEP)

    probing = asyncio.ensure_future(probe())
    await asyncio.sleep(0.05)
    worst = 0.0
    await work
    over = True
    await probing
    return worst


async def best(make: Callable[[int], Awaitable[Any]], what: str) -> None:
    """Hold what `make` starts to the limit, in one of some tries."""
    seen = []
    for number in range(TRIES):
        idle = await longest(asyncio.sleep(0.5))
        seen.append(await longest(make(number)) - idle)
        if seen[-1] < LIMIT:
            break
    log.info("%s: %s ms", what, [round(1000 * lag) for lag in seen])
    assert min(seen) < LIMIT, (what, seen)


async def test_large_inputs(queued: None, jp_fetch: Fetch, jp_root_dir: Path) -> None:
    write_notebook(jp_root_dir, "train.ipynb", "1")
    (jp_root_dir / "large.bin").write_bytes(os.urandom(1 << 20) * 300)
    body = {"notebook": "train.ipynb", "inputs": ["large.bin"]}
    await best(lambda _: post(jp_fetch, "jobs", body=body), "300 MB of inputs")


def large_notebook(size: int) -> dict[str, Any]:
    """About `size` bytes in all, a third of them in one output, the rest in many cells."""
    outputs = [v4.new_output("stream", text="x" * (size // 3))]
    cells = [v4.new_code_cell("1", outputs=outputs)]
    small = [v4.new_output("stream", text="\u00fcber\n" * 100)]
    for _ in range(size * 2 // 3 // 900):
        cells.append({**v4.new_code_cell("print(1)"), "outputs": small})
    return {**v4.new_notebook(), "cells": cells}


async def test_a_large_notebook_on_disk(queued: None, jp_fetch: Fetch, jp_root_dir: Path) -> None:
    (jp_root_dir / "large.ipynb").write_text(json.dumps(large_notebook(LARGE)))
    assert (jp_root_dir / "large.ipynb").stat().st_size > LARGE * 3 // 4

    async def submit(number: int) -> None:
        body = {"notebook": "large.ipynb"}
        answer = await post_slowly(jp_fetch, "jobs", json.dumps(body).encode())
        assert answer.code == 201

    await best(submit, f"a notebook of {LARGE:,} bytes")


async def test_a_large_notebook_as_it_is_open(
    queued: None, jp_fetch: Fetch, jp_root_dir: Path
) -> None:
    body = {"notebook": "open.ipynb", "content": large_notebook(LARGE)}
    data = json.dumps(body).encode()

    async def submit(number: int) -> None:
        answer = await post_slowly(jp_fetch, "jobs", data)
        assert answer.code == 201

    await best(submit, f"an open notebook of {LARGE:,} bytes")


async def post_slowly(fetch: Fetch, route: str, data: bytes) -> Any:
    return await fetch(*API, route, method="POST", body=data, request_timeout=120)


async def test_a_large_result(jp_fetch: Fetch, jp_root_dir: Path, exchange: Path) -> None:
    write_notebook(jp_root_dir, "train.ipynb", "1")
    name = json.loads((await post(jp_fetch, "jobs", body={"notebook": "train.ipynb"})).body)["name"]
    result = exchange / name / "attempt-1" / "result.ipynb"
    result.write_bytes(b'{"cells": "' + b"x" * 100_000_000 + b'"}')
    size = result.stat().st_size

    async def look(number: int) -> None:
        seen = 0

        def take(piece: bytes) -> None:
            nonlocal seen
            seen += len(piece)

        await jp_fetch(*API, "jobs", name, "notebook", streaming_callback=take)
        assert seen == size

    await best(look, "a result of 100 MB")


async def test_a_list_of_many_jobs(
    jp_fetch: Fetch, jp_root_dir: Path, exchange: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "fsync", lambda _: None)
    settled = FileExchange(exchange)
    for number in range(MANY):
        label = "".join("abcdefghij"[int(digit)] for digit in f"{number:08d}")
        exchanges.settle(
            settled, f"train-{label}", owner=getpass.getuser(), source=str(jp_root_dir / "a.ipynb")
        )
    await asyncio.sleep(2.1)  # what is younger is not in the index
    times = []

    async def page(number: int) -> None:
        started = time.perf_counter()
        answer = json.loads((await jp_fetch(*API, "jobs", params={"limit": "50"})).body)
        times.append(time.perf_counter() - started)
        assert len(answer["jobs"]) == 50

    await page(0)
    await best(page, "a page of many")
    for _ in range(10):
        await page(0)
    log.info("a page of 50 out of %d: %.1f ms", MANY, 1000 * sorted(times)[len(times) // 2])


async def test_fifty_at_once(jp_fetch: Fetch, jp_root_dir: Path) -> None:
    write_notebook(jp_root_dir, "train.ipynb", "1")
    body = {"notebook": "train.ipynb"}
    seen = []
    for _ in range(TRIES):
        started = time.perf_counter()
        answers = await asyncio.gather(*(post(jp_fetch, "jobs", body=body) for _ in range(50)))
        seen.append(time.perf_counter() - started)
        assert len({json.loads(answer.body)["name"] for answer in answers}) == 50
        if seen[-1] < 2:
            break
    log.info("50 at once: %s s", [round(each, 2) for each in seen])
    assert min(seen) < 2
    times = []
    for _ in range(20):
        started = time.perf_counter()
        await post(jp_fetch, "jobs", body=body)
        times.append(time.perf_counter() - started)
    log.info("POST p50: %.1f ms", 1000 * sorted(times)[10])
