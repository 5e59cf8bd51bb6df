"""No handler blocks the event loop, whatever is asked of the server.

Each route is held at a gate where it touches its files, and the loop must answer others meanwhile.
And no JSON of a large notebook is read or written in the server's process, for Python's lock is
held meanwhile. How long the loop answers nobody is measured by `benchmarks.server --only loop`.
"""

from __future__ import annotations

import asyncio
import getpass
import hashlib
import json
import re
import shutil
import threading
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

import nbformat.v4 as v4
import pytest
from tornado.httpclient import HTTPResponse

from job_runner.protocol.journal.journal import JournalWriter
from jupyter_to_job.api import http, large_body
from jupyter_to_job.api.routes import ROUTES as API_ROUTES
from jupyter_to_job.domain.job import Job
from jupyter_to_job.exchange import FileExchange
from jupyter_to_job.server import body, feed
from jupyter_to_job.server.app import WORKERS
from jupyter_to_job.service.jobs import JobService

from ..held_backend import HeldBackend
from ..processes import BOUND
from ..unit import exchanges
from .gate import Gate, installed
from .test_routes import API, post, write_notebook

Fetch = Callable[..., Awaitable[Any]]
JOB = "train-aaaaaaaa"
LARGE = 4 << 20
SUBMISSION = {"notebook": "train.ipynb", "inputs": ["data.csv"]}


@pytest.fixture(autouse=True)
def memory(exchange: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is started at all, and nothing but the requests looks at the exchange."""
    monkeypatch.setenv("JUPYTER_TO_JOB_BACKEND", "memory")
    queued = partial(HeldBackend, hold="queued")
    monkeypatch.setattr("jupyter_to_job.backends.memory.MemoryBackend", queued)
    monkeypatch.setattr(feed.Feed, "start", lambda _: None)


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


@pytest.fixture
def files(exchange: Path, jp_root_dir: Path) -> Path:
    """A notebook with an input, and a delivered job that the server has not seen yet."""
    snapshot = write_notebook(jp_root_dir, "train.ipynb", "1")
    (jp_root_dir / "data.csv").write_text("1,2\n")
    request = exchanges.request(
        JOB,
        owner=getpass.getuser(),
        source=str(jp_root_dir / "train.ipynb"),
        workspace=str(jp_root_dir),
        flavor="f0",
        snapshot_sha256=hashlib.sha256(snapshot).hexdigest(),
        group="sweep",
    )
    store = FileExchange(exchange)
    store.create(request, snapshot)
    exchanges.end(store.directory(JOB))
    exchanges.deliver(store.directory(JOB))
    return store.directory(JOB)


@pytest.fixture
def gate(monkeypatch: pytest.MonkeyPatch) -> Iterator[Gate]:
    """The gate, also before what is written to a large body, and before what is read to answer."""
    spill, chunks = body.Body.spill, http.ApiResponse.chunks
    with installed() as gate:

        def gated_spill(self: body.Body) -> None:
            gate.enter("a body's file")
            spill(self)

        def gated_chunks(self: http.ApiResponse, *size: int) -> Iterator[bytes]:
            for chunk in chunks(self, *size):
                gate.enter("a chunk of an answer")
                yield chunk

        monkeypatch.setattr(body.Body, "spill", gated_spill)
        monkeypatch.setattr(http.ApiResponse, "chunks", gated_chunks)
        yield gate


async def ask(
    fetch: Fetch, method: str, path: str, data: bytes = b"{}", **options: Any
) -> HTTPResponse:
    answer: HTTPResponse = await fetch(
        *API, *path.split("/"), method=method, body=data if method == "POST" else None,
        request_timeout=120, raise_error=False, **options,
    )  # fmt: skip
    return answer


async def hold(gate: Gate, fetch: Fetch, asking: Coroutine[Any, Any, HTTPResponse]) -> HTTPResponse:
    """Return what a request is answered that is held at the gate while others are answered."""
    health = await ask(fetch, "GET", "health")
    assert health.code == 200
    with gate.guard():
        gate.shut()
        request = asyncio.ensure_future(asking)
        while not (gate.waiting or request.done()):
            await asyncio.sleep(0.001)
        assert gate.waiting, gate.faults or "the request never came to the gate"
        for _ in range(3):
            assert (await ask(fetch, "GET", "health")).body == health.body
        assert not request.done()
        gate.open()
        return await request


ROUTES = [
    ("GET", "flavors", 200),
    ("GET", "jobs", 200),
    ("POST", "jobs", 201),
    ("GET", f"jobs/{JOB}", 200),
    ("DELETE", f"jobs/{JOB}", 204),
    ("POST", f"jobs/{JOB}/cancel", 202),
    ("POST", f"jobs/{JOB}/rerun", 201),
    ("POST", f"jobs/{JOB}/deliver", 200),
    ("GET", f"jobs/{JOB}/journal", 200),
    ("GET", f"jobs/{JOB}/logs", 200),
    ("GET", f"jobs/{JOB}/notebook", 200),
    ("GET", f"jobs/{JOB}/picture?metric=curve", 404),
    ("GET", f"jobs/{JOB}/record", 200),
    ("GET", f"jobs/{JOB}/cells", 200),
    ("GET", f"jobs/{JOB}/snapshot", 200),
    ("GET", f"jobs/{JOB}/difference", 200),
    ("GET", f"jobs/{JOB}/export", 400),  # its result has no metadata
    ("DELETE", f"jobs/{JOB}/result", 200),
    ("GET", "old-results", 200),
    ("POST", "preflight", 200),
    ("POST", "sweeps", 201),
    ("GET", "results?group=sweep", 200),
]
BODIES = {
    "jobs": SUBMISSION,
    "preflight": SUBMISSION,
    "sweeps": {**SUBMISSION, "runs": [{}, {}]},
}
TOUCH_NO_FILE = {("DELETE", "submissions/key"), ("GET", "health")}


@pytest.mark.parametrize(("method", "path", "status"), ROUTES)
async def test_others_are_answered_while_a_request_waits_for_its_files(
    catalog: Path, jp_fetch: Fetch, files: Path, gate: Gate, method: str, path: str, status: int
) -> None:
    catalog.write_text(large_catalog(1))
    data = json.dumps(BODIES.get(path, {})).encode()
    path, _, query = path.partition("?")
    params = dict(parse_qsl(query))
    answer = await hold(gate, jp_fetch, ask(jp_fetch, method, path, data, params=params))
    assert answer.code == status, answer.body


async def test_a_list_is_answered_while_results_are_delivered(
    jp_fetch: Fetch, files: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A delivery copies a result, or waits for a gateway: as many as there are threads do."""
    gate, held = threading.Event(), list[str]()

    def deliver(self: JobService, name: str) -> Job:
        held.append(name)
        gate.wait(BOUND)
        return self.get(name)

    monkeypatch.setattr(JobService, "deliver", deliver)
    path = f"jobs/{JOB}/deliver"
    deliveries = [asyncio.ensure_future(ask(jp_fetch, "POST", path)) for _ in range(WORKERS)]
    try:
        while len(held) < WORKERS:
            await asyncio.sleep(0.001)
        listed = await asyncio.wait_for(ask(jp_fetch, "GET", "jobs"), BOUND / 2)
        assert [job["name"] for job in json.loads(listed.body)["jobs"]] == [JOB]
    finally:
        gate.set()
        answers = await asyncio.gather(*deliveries)
    assert [answer.code for answer in answers] == [200] * WORKERS


def test_every_route_is_held() -> None:
    routes = [(method, path.partition("?")[0]) for method, path, _ in ROUTES]
    routes += sorted(TOUCH_NO_FILE)
    for method, pattern, _ in API_ROUTES:
        assert [1 for m, path in routes if m == method and re.fullmatch(pattern, path)] == [1]


def large_notebook() -> dict[str, Any]:
    """A third of `LARGE` in one output, and the rest in many cells."""
    cell = v4.new_code_cell("print(1)")
    texts = ["x" * (LARGE // 3), *["\u00fcber\n" * 100] * (LARGE * 2 // 3 // 900)]
    outputs = [[{"output_type": "stream", "name": "stdout", "text": text}] for text in texts]
    cells = [{**cell, "id": f"cell-{n}", "outputs": made} for n, made in enumerate(outputs)]
    return {**v4.new_notebook(), "cells": cells}


@pytest.fixture
def texts(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Lengths of the JSON texts that this process reads and writes: each holds Python's lock."""
    decode, encode, lengths = json.JSONDecoder.decode, json.JSONEncoder.encode, list[int]()

    def counted_decode(self: json.JSONDecoder, text: str) -> Any:
        lengths.append(len(text))
        return decode(self, text)

    def counted_encode(self: json.JSONEncoder, value: object) -> str:
        text = encode(self, value)
        lengths.append(len(text))
        return text

    monkeypatch.setattr(json.JSONDecoder, "decode", counted_decode)
    monkeypatch.setattr(json.JSONEncoder, "encode", counted_encode)
    return lengths


@pytest.mark.parametrize("is_open", [True, False])
@pytest.mark.parametrize(("path", "status"), [("jobs", 201), ("preflight", 200)])
async def test_a_large_notebook(
    path: str, status: int, is_open: bool, gate: Gate, texts: list[int],
    jp_fetch: Fetch, jp_root_dir: Path,
) -> None:  # fmt: skip
    document = large_notebook()
    if is_open:
        data = json.dumps({"notebook": "large.ipynb", "content": document}).encode()
    else:
        (jp_root_dir / "large.ipynb").write_text(json.dumps(document))
        data = json.dumps({"notebook": "large.ipynb"}).encode()
    texts.clear()
    answer = await hold(gate, jp_fetch, ask(jp_fetch, "POST", path, data))
    assert answer.code == status, answer.body
    assert max(texts) <= large_body.LARGE


async def test_a_large_journal(
    gate: Gate, texts: list[int], jp_fetch: Fetch, jp_root_dir: Path, files: Path
) -> None:
    """It is answered in pages, each from where the one before ended."""
    folder = files / "attempt-1" / "journal"
    shutil.rmtree(folder)
    writer = JournalWriter(folder)
    for number in range(LARGE // 200):
        text = {"output_type": "stream", "name": "stdout", "text": f"{number}" + "x" * 100}
        writer.append({"t": 1.0, "k": "output", "i": 0, "output": text})
    writer.close()
    texts.clear()
    offset, records, is_over = 0, list[Any](), False
    while not is_over:
        asking = ask(jp_fetch, "GET", f"jobs/{JOB}/journal", params={"offset": offset})
        answer = await hold(gate, jp_fetch, asking)
        page = json.loads(answer.body)
        offset, records = page["next"], records + page["records"]
        is_over = not page["records"]
    assert len(records) == LARGE // 200
    asking = ask(jp_fetch, "GET", f"jobs/{JOB}/logs", params={"offset": -1_000_000})
    logs = await hold(gate, jp_fetch, asking)
    assert json.loads(logs.body)["text"].endswith("x" * 100)
    assert max(texts) <= 2 * large_body.LARGE


def peak() -> int:
    """The most memory that this process had, in bytes."""
    found = re.search(r"^VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text(), re.M)
    assert found is not None
    return int(found[1]) << 10


async def test_a_large_result(gate: Gate, jp_fetch: Fetch, files: Path) -> None:
    """It is sent in pieces, and never in memory as a whole."""
    result = files / "attempt-1" / "result.ipynb"
    result.write_bytes(b'{"cells": "' + b"x" * 100_000_000 + b'"}')
    size, received = result.stat().st_size, 0

    def count(piece: bytes) -> None:
        nonlocal received
        received += len(piece)

    Path("/proc/self/clear_refs").write_text("5")  # the peak begins anew
    before = peak()
    asking = ask(jp_fetch, "GET", f"jobs/{JOB}/notebook", streaming_callback=count)
    await hold(gate, jp_fetch, asking)
    assert received == size
    assert peak() - before < size // 3


async def test_a_catalog_that_changes(
    catalog: Path, gate: Gate, jp_fetch: Fetch, files: Path
) -> None:
    """It is read anew for the next request, in a thread."""
    for number in (1, 2):
        catalog.write_text(large_catalog(number))
        answer = await hold(gate, jp_fetch, ask(jp_fetch, "GET", "flavors"))
        assert answer.body.count(f'"Title {number}"'.encode()) == 1250


async def test_fifty_at_once(jp_fetch: Fetch, jp_root_dir: Path) -> None:
    write_notebook(jp_root_dir, "train.ipynb", "1")
    body = {"notebook": "train.ipynb"}
    answers = await asyncio.gather(*(post(jp_fetch, "jobs", body=body) for _ in range(50)))
    assert len({json.loads(answer.body)["name"] for answer in answers}) == 50
