"""Nothing keeps the event loop for long, whatever is asked of the server at the same time.

`pytest tests/server/test_loop.py --log-cli-level info` shows the figures.
JUPYTER_TO_JOB_LARGE=200000000 (bytes of a notebook), JUPYTER_TO_JOB_INPUT=1000000000 (of an input)
and JUPYTER_TO_JOB_MANY=10000 (jobs) make it the real thing; without them it is quick.
"""

from __future__ import annotations

import asyncio
import getpass
import json
import logging
import os
import re
import shutil
import time
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Any

import nbformat.v4 as v4
import pytest

from job_runner.protocol.journal.journal import JournalWriter
from jupyter_to_job.backends.memory import MemoryBackend
from jupyter_to_job.exchange import FileExchange

from ..unit import exchanges
from .ruler import STEP, TRIES, Ruler
from .ruler import ruler as ruler
from .test_events import events as events
from .test_routes import API, post, refusal, write_notebook
from .trees import tree

Fetch = Callable[..., Awaitable[Any]]
log = logging.getLogger(__name__)
LARGE = int(os.environ.get("JUPYTER_TO_JOB_LARGE", "40000000"))
MANY = int(os.environ.get("JUPYTER_TO_JOB_MANY", "2000"))
INPUT = int(os.environ.get("JUPYTER_TO_JOB_INPUT", "300000000"))


@pytest.fixture(autouse=True)
def memory(exchange: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs no code: the machine's cores are for the server."""
    monkeypatch.setenv("JUPYTER_TO_JOB_BACKEND", "memory")


@pytest.fixture
def queued(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is started at all."""
    held = partial(MemoryBackend, hold="queued")
    monkeypatch.setattr("jupyter_to_job.backends.memory.MemoryBackend", held)


async def test_large_inputs(
    ruler: Ruler,
    queued: None,
    jp_fetch: Fetch,
    jp_root_dir: Path,
    exchange: Path,
    events: list[Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Copied with a word on how far it is, and gone without a trace when they are withdrawn."""
    monkeypatch.setattr("jupyter_to_job.domain.transfer.PERIOD", 0.02)  # a disk may be fast
    write_notebook(jp_root_dir, "train.ipynb", "1")
    with (jp_root_dir / "large.bin").open("wb") as file:
        for _ in range(INPUT // 1_000_000):
            file.write(os.urandom(1_000_000))
    body = {"notebook": "train.ipynb", "inputs": ["large.bin"]}

    async def submit(number: int) -> None:
        data = json.dumps(body).encode()
        answer = await post_slowly(jp_fetch, "jobs", data, **{"Idempotency-Key": f"whole-{number}"})
        large = exchange / json.loads(answer.body)["name"]
        await asyncio.to_thread(shutil.rmtree, large)

    await ruler.hold(submit, f"{INPUT:,} bytes of inputs")
    told = [data for _, data in events if data.get("key") == "whole-0"]
    log.info("told %d times how far it is", len(told))
    assert told and [data["bytes"] for data in told] == sorted(data["bytes"] for data in told)

    async def withdraw(number: int) -> None:
        key = f"half-{number}"
        headers = {"Idempotency-Key": key}
        sending = asyncio.ensure_future(refusal(post(jp_fetch, "jobs", body=body, **headers)))
        while not any(data.get("key") == key for _, data in events) and not sending.done():
            await asyncio.sleep(STEP)
        await jp_fetch(*API, "submissions", key, method="DELETE")
        began = time.perf_counter()
        assert (await sending)[1]["code"] == "withdrawn"
        log.info("withdrawn within %.0f ms", 1000 * (time.perf_counter() - began))

    before = tree(exchange)
    await ruler.hold(withdraw, "inputs that are withdrawn")
    assert tree(exchange) == before


def large_notebook(size: int) -> dict[str, Any]:
    """About `size` bytes in all, a third of them in one output, the rest in many cells."""
    outputs = [v4.new_output("stream", text="x" * (size // 3))]
    cells = [v4.new_code_cell("1", outputs=outputs)]
    small = [v4.new_output("stream", text="\u00fcber\n" * 100)]
    for _ in range(size * 2 // 3 // 900):
        cells.append({**v4.new_code_cell("print(1)"), "outputs": small})
    return {**v4.new_notebook(), "cells": cells}


async def test_a_large_notebook_on_disk(
    ruler: Ruler, queued: None, jp_fetch: Fetch, jp_root_dir: Path
) -> None:
    (jp_root_dir / "large.ipynb").write_text(json.dumps(large_notebook(LARGE)))
    assert (jp_root_dir / "large.ipynb").stat().st_size > LARGE * 3 // 4

    async def submit(number: int) -> None:
        body = {"notebook": "large.ipynb"}
        answer = await post_slowly(jp_fetch, "jobs", json.dumps(body).encode())
        assert answer.code == 201

    await ruler.hold(submit, f"a notebook of {LARGE:,} bytes")

    async def look(number: int) -> None:
        answer = await post_slowly(
            jp_fetch, "preflight", json.dumps({"notebook": "large.ipynb"}).encode()
        )
        assert answer.code == 200

    await ruler.hold(look, f"preflight of a notebook of {LARGE:,} bytes")


async def test_a_large_notebook_as_it_is_open(
    ruler: Ruler, queued: None, jp_fetch: Fetch, jp_root_dir: Path
) -> None:
    body = {"notebook": "open.ipynb", "content": large_notebook(LARGE)}
    data = json.dumps(body).encode()

    async def submit(number: int) -> None:
        answer = await post_slowly(jp_fetch, "jobs", data)
        assert answer.code == 201

    await ruler.hold(submit, f"an open notebook of {LARGE:,} bytes")


async def post_slowly(fetch: Fetch, route: str, data: bytes, **headers: str) -> Any:
    return await fetch(*API, route, method="POST", body=data, request_timeout=120, headers=headers)


def peak() -> int:
    """The most memory that this process had, in bytes."""
    found = re.search(r"^VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text(), re.M)
    assert found is not None
    return int(found[1]) << 10


async def test_a_large_result(
    ruler: Ruler, jp_fetch: Fetch, jp_root_dir: Path, exchange: Path
) -> None:
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

    Path("/proc/self/clear_refs").write_text("5")  # the peak begins anew
    before = peak()
    await ruler.hold(look, "a result of 100 MB")
    log.info("a result of 100 MB: %d MB of memory more", (peak() - before) >> 20)
    assert peak() - before < size // 3


def label(number: int) -> str:
    return "".join("abcdefghij"[int(digit)] for digit in f"{number:08d}")


async def test_a_list_of_many_jobs(
    ruler: Ruler,
    queued: None,
    jp_fetch: Fetch,
    jp_root_dir: Path,
    exchange: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(os, "fsync", lambda _: None)
    settled = FileExchange(exchange)
    for number in range(MANY):
        source = str(jp_root_dir / "a.ipynb")
        exchanges.settle(settled, f"train-{label(number)}", owner=getpass.getuser(), source=source)
    await asyncio.sleep(2.1)  # what is younger is not in the index
    times = []

    async def page(number: int) -> None:
        started = time.perf_counter()
        answer = json.loads((await jp_fetch(*API, "jobs", params={"limit": "50"})).body)
        times.append(time.perf_counter() - started)
        assert len(answer["jobs"]) == 50

    await page(0)
    await ruler.hold(page, "a page of many")
    for _ in range(10):
        await page(0)
    log.info("a page of 50 out of %d: %.1f ms", MANY, 1000 * sorted(times)[len(times) // 2])


async def test_a_line_of_500(
    ruler: Ruler,
    queued: None,
    jp_fetch: Fetch,
    jp_root_dir: Path,
    exchange: Path,
    events: list[Any],
) -> None:
    """The feed looks at all of them all the time, and so does whoever asks for a place in line."""
    write_notebook(jp_root_dir, "train.ipynb", "1")
    source = {"source": str(jp_root_dir / "a.ipynb"), "workspace": str(jp_root_dir)}
    for number in range(500):
        name = f"train-{label(number)}"
        exchanges.add(FileExchange(exchange), name, owner=getpass.getuser(), **source)

    async def look(number: int) -> None:
        await asyncio.gather(
            asyncio.sleep(1),  # some looks of the feed
            jp_fetch(*API, "jobs", f"train-{label(number)}"),
            jp_fetch(*API, "jobs", params={"limit": "500", "state": "queued"}),
        )

    await asyncio.sleep(2.1)  # what is younger is looked at in full
    await ruler.hold(look, "a line of 500")


async def test_a_large_journal(
    ruler: Ruler, jp_fetch: Fetch, jp_root_dir: Path, exchange: Path
) -> None:
    write_notebook(jp_root_dir, "train.ipynb", "1")
    name = json.loads((await post(jp_fetch, "jobs", body={"notebook": "train.ipynb"})).body)["name"]
    folder = exchange / name / "attempt-1" / "journal"
    shutil.rmtree(folder)
    writer = JournalWriter(folder)
    for number in range(LARGE // 200):
        text = {"output_type": "stream", "name": "stdout", "text": f"{number}" + "x" * 100}
        writer.append({"t": 1.0, "k": "output", "i": 0, "output": text})
    writer.close()

    async def read(number: int) -> None:
        offset = "0"
        for _ in range(20):
            answer = await jp_fetch(*API, "jobs", name, "journal", params={"offset": offset})
            found = re.search(r'"next":(\d+),', answer.body[-100:].decode())
            assert found is not None and len(answer.body) > 1_000_000
            offset = found[1]
        await jp_fetch(*API, "jobs", name, "logs", params={"offset": "-1000000"})

    await ruler.hold(read, "20 pages of a journal")


@pytest.fixture
def catalog(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """About as much as a catalog may be."""
    file = tmp_path / "flavors.yaml"
    file.write_text(large_catalog(0))
    assert file.stat().st_size > 1_000_000
    monkeypatch.setenv("JUPYTER_TO_JOB_CATALOG", str(file))
    return file


def large_catalog(number: int) -> str:
    lines = ["apiVersion: jupyter-to-job.io/v1", "default: {flavor: f0, device: cpu}"]
    lines += ["devices:", "  cpu: {title: CPU}", "flavors:"]
    about = f"title: Title {number}, description: {'d' * 730}, cpu: 1, memory: 2Gi, devices: [cpu]"
    lines += [f"  f{flavor}: {{{about}}}" for flavor in range(1250)]
    return "\n".join(lines)


async def test_a_large_catalog_that_changes(ruler: Ruler, catalog: Path, jp_fetch: Fetch) -> None:
    """Read anew by whoever asks next: in a thread, and others get their turn."""

    async def change(number: int) -> None:
        # Ours is the loop of the server, too: what we do ourselves is not to keep it busy.
        await asyncio.to_thread(lambda: catalog.write_text(large_catalog(number)))
        asked = jp_fetch(*API, "flavors", request_timeout=120)
        _, answer = await asyncio.gather(jp_fetch(*API, "jobs"), asked)
        assert answer.body.count(f'"Title {number}"'.encode()) == 1250

    await ruler.hold(change, "a catalog of 1 MiB")


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
