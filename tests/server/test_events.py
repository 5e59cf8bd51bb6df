"""What is pushed: every change, at most four times a second; deletions; inputs on their way."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import sys
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from jupyter_server.serverapp import ServerApp

from job_runner.protocol.progress import Progress
from jupyter_to_job.api.events import DELETED_SCHEMA_ID, JOB_SCHEMA_ID, SUBMISSION_SCHEMA_ID
from jupyter_to_job.domain.job import Deleted, Job, State
from jupyter_to_job.domain.transfer import Transfers
from jupyter_to_job.server.feed import MAX_EVENTS, Feed
from jupyter_to_job.server.puller import ResultPuller

from ..processes import BOUND
from .test_routes import API, ended, post, refusal, write_notebook
from .trees import tree

Fetch = Callable[..., Awaitable[Any]]


@pytest.fixture
def events(jp_serverapp: ServerApp) -> list[tuple[str, dict[str, Any]]]:
    """Every event of ours, as a listener gets them."""
    seen: list[tuple[str, dict[str, Any]]] = []

    async def listener(logger: Any, schema_id: str, data: dict[str, Any]) -> None:
        seen.append((schema_id, data))

    assert jp_serverapp.event_logger is not None
    for schema in (JOB_SCHEMA_ID, DELETED_SCHEMA_ID, SUBMISSION_SCHEMA_ID):
        jp_serverapp.event_logger.add_listener(schema_id=schema, listener=listener)
    return seen


async def heard(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + BOUND
    while not condition():
        assert time.monotonic() < deadline
        await asyncio.sleep(0.02)


async def test_a_deleted_job(jp_fetch: Fetch, jp_root_dir: Path, events: list[Any]) -> None:
    """Ended, or running: nobody sees it from then on, and everybody is told."""
    write_notebook(jp_root_dir, "train.ipynb", "1")
    write_notebook(jp_root_dir, "long.ipynb", "import time; time.sleep(600)")
    done = json.loads((await post(jp_fetch, "jobs", body={"notebook": "train.ipynb"})).body)["name"]
    await ended(jp_fetch, done)
    runs = json.loads((await post(jp_fetch, "jobs", body={"notebook": "long.ipynb"})).body)["name"]
    await heard(lambda: (JOB_SCHEMA_ID, {"name": runs}) in events)

    for name in (done, runs):
        await jp_fetch(*API, "jobs", name, method="DELETE")
        await heard(lambda name=name: (DELETED_SCHEMA_ID, {"name": name}) in events)  # type: ignore[misc]
        last = [schema for schema, data in events if data["name"] == name][-1]
        assert last == DELETED_SCHEMA_ID
    assert (jp_root_dir / f"{done}.ipynb").exists()


async def test_inputs_on_their_way_and_withdrawn(
    jp_fetch: Fetch,
    jp_root_dir: Path,
    exchange: Path,
    events: list[Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    write_notebook(jp_root_dir, "train.ipynb", "1")
    large = jp_root_dir / "large.bin"
    large.write_bytes(os.urandom(64 << 20))
    first = threading.Event()
    halted(monkeypatch, first)
    monkeypatch.setattr("jupyter_to_job.domain.transfer.REPORT_INTERVAL", 0.0)
    (exchange / ".keys").mkdir(mode=0o700)
    before = tree(exchange, jp_root_dir)
    body, key = {"notebook": "train.ipynb", "inputs": ["large.bin"]}, {"Idempotency-Key": "k-1"}
    sending = asyncio.ensure_future(refusal(post(jp_fetch, "jobs", body=body, **key)))

    def reports() -> list[dict[str, Any]]:
        return [data for schema, data in events if schema == SUBMISSION_SCHEMA_ID]

    await heard(lambda: any(data["bytes"] for data in reports()))
    told = reports()
    assert all(d["key"] == "k-1" and 0 <= d["bytes"] <= d["total"] == 64 << 20 for d in told)
    assert [data["bytes"] for data in told] == sorted(data["bytes"] for data in told)
    answer = await jp_fetch(*API, "submissions", "k-1", method="DELETE")
    assert answer.code == 204
    first.set()
    status, error = await sending

    assert (status, error["code"]) == (409, "withdrawn")
    assert tree(exchange, jp_root_dir) == before
    assert json.loads((await jp_fetch(*API, "jobs")).body)["jobs"] == []
    status, error = await refusal(post(jp_fetch, "jobs", body=body, **key))  # it came too late
    assert (status, error["code"]) == (409, "withdrawn")
    assert (await jp_fetch(*API, "submissions", "k-1", method="DELETE")).code == 204


def halted(monkeypatch: pytest.MonkeyPatch, until: threading.Event) -> None:
    """A disk that is slow: the copy stands still in the middle until it may go on."""
    freeze = sys.modules["jupyter_to_job.workspace.freezing.freeze"]
    chunks = freeze._chunks

    def slow(item: Any, file: Any) -> Iterator[bytes]:
        for number, chunk in enumerate(chunks(item, file)):
            yield chunk
            if number == 11:
                until.wait(BOUND)

    monkeypatch.setattr(freeze, "_chunks", slow)


async def test_what_is_recorded_is_not_withdrawn(jp_fetch: Fetch, jp_root_dir: Path) -> None:
    write_notebook(jp_root_dir, "train.ipynb", "1")
    body, key = {"notebook": "train.ipynb"}, {"Idempotency-Key": "k-1"}
    name = json.loads((await post(jp_fetch, "jobs", body=body, **key)).body)["name"]
    status, error = await refusal(jp_fetch(*API, "submissions", "k-1", method="DELETE"))
    assert (status, error["code"]) == (409, "conflict")
    again = await post(jp_fetch, "jobs", body=body, **key)
    assert (again.code, json.loads(again.body)["name"]) == (200, name)
    await ended(jp_fetch, name)


def test_withdrawn_and_confirmed_at_once() -> None:
    """Whoever decides first has decided: never both."""
    for _ in range(300):
        transfers = Transfers()
        outcomes: list[str] = []

        def run(act: Callable[[], object], name: str, outcomes: list[str] = outcomes) -> None:
            try:
                act()
                outcomes.append(name)
            except Exception:
                return

        with transfers.track("k") as transfer:
            acts = {"recorded": transfer.confirm, "withdrawn": partial(transfers.withdraw, "k")}
            threads = [threading.Thread(target=run, args=(acts[name], name)) for name in acts]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        assert len(outcomes) == 1


class Changing:
    """A service of which one job changes all the time, through every state."""

    pulls = False

    def __init__(self, job: Job, clock: list[float]) -> None:
        self._job = job
        self._clock = clock

    def changes(self) -> Iterator[Job | Deleted | None]:
        states = [State.QUEUED, State.STARTING, State.RUNNING]
        for number in range(1, 251):
            yield replace(self._job, state=states[number % 3], progress=Progress(number, 1000))
            yield None
            self._clock[0] += 0.01
        yield replace(self._job, state=State.SUCCEEDED)
        while True:
            yield None
            self._clock[0] += 0.01


def test_at_most_four_a_second_and_the_last_one(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [1000.0]
    fake = SimpleNamespace(monotonic=lambda: clock[0])
    monkeypatch.setattr("jupyter_to_job.server.feed.time", fake)
    job = Job(
        "train-aaaaaaaa", "me", "train.ipynb", "small", "cpu", {}, (), False, None, None, 0,
        "local", State.QUEUED,
    )  # fmt: skip
    told: list[tuple[float, Job]] = []
    over = threading.Event()

    def tell(news: Any) -> None:
        told.append((clock[0], news))
        if news.state is State.SUCCEEDED:
            over.set()

    jobs: Any = Changing(job, clock)
    log = logging.getLogger("feed")
    feed = Feed(jobs, tell, log, ResultPuller(jobs, log))
    feed.start()
    assert over.wait(BOUND)
    feed.stop()
    times = [moment for moment, _ in told]
    pairs = zip(times, times[MAX_EVENTS:], strict=False)
    assert all(later - earlier > 0.999 for earlier, later in pairs)
    assert len(told) >= 8
