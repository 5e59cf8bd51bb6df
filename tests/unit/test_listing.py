"""A process that lives long lists what a new one without an index would, at the cost of a page."""

from __future__ import annotations

import os
import random
import time
from collections.abc import Mapping
from pathlib import Path

import pytest

from job_runner.protocol import documents, layout, liveness
from jupyter_to_job.backends.kubernetes import KubernetesBackend
from jupyter_to_job.domain.job import State
from jupyter_to_job.domain.state import Placement
from jupyter_to_job.exchange import FileExchange, Request, stamps
from jupyter_to_job.exchange.filesystem import is_network
from jupyter_to_job.exchange.index import Index, IndexRow
from jupyter_to_job.flavors import load_catalog
from jupyter_to_job.service.jobs import JobService, ServiceContext
from jupyter_to_job.service.reading import waiting
from jupyter_to_job.service.reading.changes import ChangeFeed
from jupyter_to_job.service.reading.view import JobReader
from jupyter_to_job.service.submitting.submission import Caller

from ..held_backend import HeldBackend
from ..processes import until
from . import exchanges

NAMES = [f"train-{letter}aaaaaaa" for letter in "abcdefgh"]
PAGE = 3
RACY = 0.05


@pytest.fixture
def exchange(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FileExchange:
    monkeypatch.setattr(stamps, "RACY", RACY)
    monkeypatch.setattr(os, "fsync", lambda _: None)
    if is_network(tmp_path):
        pytest.skip("there is no index on a network file system")
    found = FileExchange(tmp_path / "exchange")
    found.prepare()
    return found


def service(exchange: FileExchange) -> JobService:
    backend = HeldBackend(exchange, hold="queued")
    context = ServiceContext(exchange, backend, load_catalog)
    return JobService(context, Caller("me", "/w"), wake=lambda *_: None)  # looking changes nothing


def pages(jobs: JobService, states: list[State]) -> list[dict[str, object]]:
    """Everything, page by page."""
    found, cursor = [], None
    while True:
        page = jobs.find(states, PAGE, cursor)
        found += [job.to_json() for job in page.jobs]
        if page.next is None:
            return found
        cursor = page.next


class Life:
    """What happens to jobs, one thing at a time."""

    def __init__(self, exchange: FileExchange, seed: int) -> None:
        self._exchange = exchange
        self._random = random.Random(seed)
        self._moment = 0

    def step(self) -> None:
        """Let something happen to a job."""
        name = self._random.choice(NAMES)
        directory = self._exchange.root / name
        if not directory.exists():
            self._moment += 1
            moment = f"2026-11-21T09:30:00.{self._moment:03}Z"
            exchanges.add(self._exchange, name, submitted=moment)
        elif not layout.attempts(directory):
            self._random.choice([self._end, self._fail, self._wish, self._remove])(directory)
        elif not (directory / layout.DELIVERY).exists():
            self._random.choice([self._hold, exchanges.deliver, self._remove])(directory)
        else:
            self._random.choice([self._remove, self._remove, self._clear])(directory)

    def _end(self, directory: Path) -> None:
        exchanges.end(directory)

    def _fail(self, directory: Path) -> None:
        exchanges.end(directory, "failed")

    def _wish(self, directory: Path) -> None:
        wish = {"time": exchanges.ENDED, "who": "me"}
        documents.write_document_once(directory / layout.CANCEL, wish)

    def _hold(self, directory: Path) -> None:
        documents.write_document(directory / layout.HELD, {"message": "The folder is gone."})

    def _clear(self, directory: Path) -> None:
        cleared = {"time": exchanges.ENDED, "message": "Kept for 7 d"}
        documents.write_document_once(directory / layout.CLEARED, cleared)

    def _remove(self, directory: Path) -> None:
        self._exchange.remove(directory.name)


@pytest.mark.parametrize("seed", range(4))
def test_whatever_happens(exchange: FileExchange, seed: int) -> None:
    """Names go, and come again as other jobs: in between it looks, or it does not."""
    life, lives_long, chance = Life(exchange, seed), service(exchange), random.Random(seed)
    for _ in range(40):
        life.step()
        if chance.random() < 0.2:
            time.sleep(2 * RACY)
            pages(lives_long, [])  # remembered from now on
        if chance.random() < 0.5:
            continue
        new = service(FileExchange(exchange.root))
        new._context.exchange.is_local = False
        for states in ([], [State.QUEUED], [State.SUCCEEDED, State.FAILED]):
            assert pages(lives_long, states) == pages(new, states)
        for name in exchange.jobs():
            assert lives_long.get(name) == new.get(name)


def test_a_page_costs_what_it_shows(
    exchange: FileExchange, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While no job comes or goes: a stat for each job that is shown, and not of all."""
    for number, name in enumerate(NAMES):
        exchanges.settle(exchange, name, submitted=f"2026-11-21T09:30:{number:02}.000Z")
    time.sleep(2 * RACY)
    jobs = service(exchange)
    first = pages(jobs, [])  # this makes the index, so the exchange's own folder changes
    time.sleep(2 * RACY)
    pages(jobs, [])
    looked: list[str] = []
    current = Index.is_current

    def counted(self: Index, row: IndexRow) -> bool:
        looked.append(row.name)
        return current(self, row)

    monkeypatch.setattr(Index, "is_current", counted)
    assert [job.name for job in jobs.find(limit=PAGE).jobs] == NAMES[::-1][:PAGE]
    assert looked == NAMES[::-1][:PAGE]
    looked.clear()
    assert jobs.find([State.FAILED]).jobs == []
    assert looked == []
    assert pages(jobs, []) == first


def test_a_line_is_read_once(exchange: FileExchange, monkeypatch: pytest.MonkeyPatch) -> None:
    """Jobs that wait are looked at all the time: at a listing each, until something happens."""
    for name in NAMES:
        exchanges.add(exchange, name)
    time.sleep(2 * RACY)
    jobs = service(exchange)
    jobs.find()
    read: list[str] = []
    document = documents.read_document

    def counted(path: Path) -> object:
        read.append(path.parent.name)
        return document(path)

    monkeypatch.setattr(documents, "read_document", counted)
    assert [job.position for job in jobs.find().jobs] == list(range(len(NAMES), 0, -1))
    assert jobs.get(NAMES[3]).position == 4
    assert read == []
    documents.write_document_once(
        exchange.root / NAMES[0] / layout.CANCEL, {"time": exchanges.ENDED, "who": "me"}
    )
    assert jobs.get(NAMES[0]).cancel_requested
    assert {job.name for job in jobs.find().jobs if job.cancel_requested} == {NAMES[0]}
    assert set(read) == {NAMES[0]}


def test_without_a_queue_nobody_reads_the_others(
    exchange: FileExchange, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On plain Kubernetes no job has a place: neither a page nor a job costs what others wait."""
    for number, name in enumerate(NAMES):
        exchanges.add(exchange, name, owner="me" if number < 2 else "eve")
    time.sleep(2 * RACY)
    backend = KubernetesBackend(lambda _: None, lambda _: None)

    def gateway() -> JobService:
        context = ServiceContext(FileExchange(exchange.root), backend, load_catalog)
        return JobService(context, Caller("me", "/", sees_workspace=False), wake=lambda *_: None)

    read: list[str] = []
    document = FileExchange.document

    def noted(self: FileExchange, job: str, path: str) -> object:
        read.append(job)
        return document(self, job, path)

    monkeypatch.setattr(FileExchange, "document", noted)
    job = gateway().get(NAMES[1])
    assert (job.state, job.position) == (State.QUEUED, None)
    assert set(read) == {NAMES[1]}
    jobs = gateway()
    assert [job.name for job in jobs.find().jobs] == [NAMES[1], NAMES[0]]
    assert [job.position for job in jobs.find([State.QUEUED]).jobs] == [None, None]
    looks: list[str] = []
    look = JobReader.job

    def counted(self: JobReader, request: Request, placement: Placement) -> object:
        looks.append(request.name)
        return look(self, request, placement)

    monkeypatch.setattr(JobReader, "job", counted)
    del read[:]
    assert len(jobs.find().jobs) == 2
    assert set(looks) == set(NAMES[:2])
    assert not set(read).intersection(NAMES[2:])  # whose they are is known by now


def test_a_name_that_is_used_again(exchange: FileExchange) -> None:
    """Deleted and submitted again under one key by another process: it stands in line again."""
    first, second = NAMES[:2]
    exchanges.settle(exchange, first, submitted="2026-11-21T09:30:00.001Z")
    exchanges.add(exchange, second, submitted="2026-11-21T09:30:00.002Z")
    jobs = service(exchange)
    assert jobs.get(second).position == 1
    exchange.remove(first)
    exchanges.add(exchange, first, submitted="2026-11-21T09:30:00.001Z")
    jobs.find()  # as the feed does
    assert jobs.get(second).position == 2


def test_a_long_queue_is_looked_at_in_turn(
    exchange: FileExchange, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A look costs the same however many wait, and what happens to one of them is seen soon."""
    names = [f"train-{chr(97 + n // 26)}{chr(97 + n % 26)}aaaaaa" for n in range(400)]
    for name in names:
        exchanges.add(exchange, name, submitted=f"2026-11-21T09:30:00.{names.index(name):03}Z")
    time.sleep(2 * RACY)
    context = service(exchange)._context
    feed = ChangeFeed(exchange, context.lister, context.reader)
    first = {job.name: job.position for _, job in feed.poll()}
    assert first == {name: place for place, name in enumerate(names, start=1)}

    looks: list[object] = []

    def counted(path: Path | str) -> str | None:
        looks.append(path)
        return stamps.stamp_of(path)

    monkeypatch.setattr(waiting, "stamp_of", counted)
    monkeypatch.setattr(waiting, "LOOK_INTERVAL", 1e6)  # the next look at all is far away
    assert feed.poll() == []
    assert len(looks) == 1
    monkeypatch.setattr(waiting, "LOOK_INTERVAL", 1.0)
    documents.write_document_once(
        exchange.root / names[250] / layout.CANCEL, {"time": exchanges.ENDED, "who": "me"}
    )
    until(lambda: any(job.cancel_requested for _, job in feed.poll()), "the wish is seen")
    exchange.remove(names[0])
    until(lambda: (names[1], 1) in [(j.name, j.position) for _, j in feed.poll()], "they move up")
    assert (
        service(exchange).get(names[399]).position == 398
    )  # a job that is about to go has no place


def test_one_of_a_long_queue_that_starts(
    exchange: FileExchange, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is told as started at once, though the turn of its directory is far away."""
    names = [
        f"train-{chr(97 + n // 26)}{chr(97 + n % 26)}aaaaaa" for n in range(waiting.MAX_LOOKS + 1)
    ]
    for name in names:
        exchanges.add(exchange, name)
    time.sleep(2 * RACY)
    context = service(exchange)._context
    feed = ChangeFeed(exchange, context.lister, context.reader)
    assert len(feed.poll()) == len(names)
    monkeypatch.setattr(waiting, "LOOK_INTERVAL", 1e6)
    started = names[70]
    backend, place_all = context.backend, context.backend.queue_status

    def place_one_as_started(queue: Mapping[str, Request]) -> Mapping[str, Placement]:
        return {**place_all(queue), started: Placement(starting=True)}

    monkeypatch.setattr(backend, "queue_status", place_one_as_started)
    states = {job.name: job.state for _, job in feed.poll()}
    assert states[started] is State.STARTING
    claim = liveness.claim_attempt(exchange.root / started, 1)  # and its slot is free again
    monkeypatch.setattr(backend, "queue_status", place_all)
    feed.poll()
    claim.release()
    states = {job.name: job.state for _, job in feed.poll()}
    assert states[started] is not State.QUEUED
