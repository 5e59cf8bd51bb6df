"""The feed costs as much as there are jobs that may change, and misses none."""

from __future__ import annotations

import os
import shutil
import time
from functools import partial
from itertools import takewhile
from pathlib import Path

import pytest

from job_runner.protocol import documents, layout, liveness
from jupyter_to_job.domain.errors import NotFound
from jupyter_to_job.domain.job import Deleted, DeliveryState, Job, State
from jupyter_to_job.exchange import FileExchange, files, stamps
from jupyter_to_job.flavors import load_catalog
from jupyter_to_job.service.jobs import JobService, ServiceContext
from jupyter_to_job.service.reading import waiting
from jupyter_to_job.service.reading.changes import ChangeFeed
from jupyter_to_job.service.submitting.submission import Caller

from ..held_backend import HeldBackend
from ..processes import until
from . import exchanges


@pytest.fixture
def exchange(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FileExchange:
    monkeypatch.setattr(os, "fsync", lambda _: None)
    monkeypatch.setattr(stamps, "RACY", 0.05)
    made = FileExchange(tmp_path / "exchange")
    made.prepare()
    return made


def core(exchange: FileExchange) -> ServiceContext:
    return ServiceContext(exchange, HeldBackend(exchange, hold="queued"), load_catalog)


def watch_of(exchange: FileExchange) -> ChangeFeed:
    made = core(exchange)
    return ChangeFeed(exchange, made.lister, made.reader)


def states_of(looking: ChangeFeed) -> dict[str, tuple[str, str]]:
    return {job.name: (job.state.value, job.delivery.state.value) for _, job in looking.poll()}


@pytest.mark.parametrize("network", [False, True])
def test_from_new_to_settled(
    exchange: FileExchange, network: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "is_network", lambda _: network)
    exchanges.settle(exchange, "old-aaaaaaaa")
    looking = watch_of(exchange)
    assert states_of(looking) == {"old-aaaaaaaa": ("succeeded", "delivered")}
    assert states_of(looking) == {}
    directory = exchanges.add(exchange, "new-aaaaaaaa")
    assert states_of(looking) == {"new-aaaaaaaa": ("queued", "pending")}
    exchanges.end(directory)
    assert states_of(looking) == {"new-aaaaaaaa": ("succeeded", "pending")}
    documents.write_document(directory / "held.json", {"message": "gone"})
    assert states_of(looking) == {"new-aaaaaaaa": ("succeeded", "held")}
    until(lambda: stamps.stamp_of(directory), "a stamp to rely on")
    states_of(looking)
    assert states_of(looking) == {}  # held: only its directory is looked at
    exchanges.deliver(directory)
    assert states_of(looking) == {"new-aaaaaaaa": ("succeeded", "delivered")}
    assert states_of(looking) == {}
    shutil.rmtree(directory)
    assert states_of(looking) == {}


def test_settled_jobs_cost_nothing(exchange: FileExchange, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(5):
        exchanges.settle(exchange, f"old-{'abcde'[number] * 8}")
    claim = liveness.claim_attempt(exchanges.add(exchange, "open-aaaaaaaa"), 1)
    for name in exchange.jobs():
        until(partial(stamps.stamp_of, exchange.root / name), "a stamp to rely on")
    JobService(core(exchange), Caller("me", "/w")).find()  # fills the index
    until(lambda: stamps.stamp_of(exchange.root), "a stamp to rely on")
    read: list[str] = []
    document = FileExchange.document

    def counted(self: FileExchange, job: str, path: str, *fields: str) -> object:
        read.append(job)
        return document(self, job, path, *fields)

    monkeypatch.setattr(FileExchange, "document", counted)
    looking = watch_of(exchange)
    for _ in range(3):
        assert set(states_of(looking)) == {"open-aaaaaaaa"}
    assert set(read) <= {"open-aaaaaaaa"}

    def never(_: FileExchange) -> frozenset[str]:
        raise AssertionError("the names are read again")

    monkeypatch.setattr(FileExchange, "_read_names", never)
    states_of(looking)
    claim.release()


def test_only_those_that_somebody_waits_for(
    exchange: FileExchange, monkeypatch: pytest.MonkeyPatch
) -> None:
    for letter in "abcde":
        exchanges.add(exchange, f"other-{letter * 8}")
    claim = liveness.claim_attempt(exchanges.add(exchange, "mine-aaaaaaaa"), 1)
    read: set[str] = set()
    document = FileExchange.document

    def noted(self: FileExchange, job: str, path: str, *fields: str) -> object:
        read.add(job)
        return document(self, job, path, *fields)

    monkeypatch.setattr(FileExchange, "document", noted)
    names = ["mine-aaaaaaaa", "later-aaaaaaaa"]
    feed = JobService(core(exchange), Caller("me", "/w"), wake=lambda *_: None).changes(names)
    job = next(feed)
    assert isinstance(job, Job)
    assert (job.name, job.state) == ("mine-aaaaaaaa", State.STARTING)
    assert next(feed) is None
    assert read == {"mine-aaaaaaaa"}
    exchanges.add(exchange, "later-aaaaaaaa", submitted=exchanges.ENDED)
    later = until(lambda: next(feed), "the job")
    assert isinstance(later, Job)
    assert (later.name, later.position) == ("later-aaaaaaaa", 6)  # the queue is of interest now
    claim.release()
    exchange.remove("mine-aaaaaaaa")
    assert until(lambda: next(feed), "its end") == Deleted("mine-aaaaaaaa")


def test_undelivered_jobs_are_told_at_first(exchange: FileExchange) -> None:
    exchanges.settle(exchange, "old-aaaaaaaa")
    held = exchanges.add(exchange, "held-aaaaaaaa")
    exchanges.end(held)
    documents.write_document(held / "held.json", {"message": "gone"})
    feed = JobService(core(exchange), Caller("me", "/w")).changes()
    job = next(feed)
    assert isinstance(job, Job)
    assert (job.name, job.delivery.state) == ("held-aaaaaaaa", DeliveryState.HELD)
    assert next(feed) is None


def test_what_is_deleted_is_hidden_at_once(exchange: FileExchange) -> None:
    directory = exchanges.add(exchange, "running-aaaaaaaa")
    claim = liveness.claim_attempt(directory, 1)
    service = JobService(core(exchange), Caller("me", "/w"))
    assert service.get(directory.name).state is State.STARTING
    documents.write_document_once(directory / layout.DELETE, {"time": "", "who": "me"})
    for act in (service.get, service.cancel, service.delete, service.logs, service.notebook):
        with pytest.raises(NotFound):
            act(directory.name)
    assert service.find().jobs == []
    assert next(service.changes()) is None
    claim.release()


def test_what_is_deleted_in_a_long_queue_is_hidden_at_once(
    exchange: FileExchange, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also if it is not the turn of its directory to be looked at."""
    monkeypatch.setattr(waiting, "MAX_LOOKS", 0)
    monkeypatch.setattr(waiting, "LOOK_INTERVAL", 3600.0)
    directories = [exchanges.add(exchange, f"waits-{letter * 8}") for letter in "ab"]
    service = JobService(core(exchange), Caller("me", "/w"))
    assert len(service.find().jobs) == 2
    documents.write_document_once(directories[0] / layout.DELETE, {"time": "", "who": "me"})
    followed = takewhile(lambda change: change is not None, service.changes())
    assert [change.name for change in followed if change] == [directories[1].name]
    assert [job.name for job in service.find().jobs] == [directories[1].name]


def test_a_run_of_another_host_is_not_lost(exchange: FileExchange) -> None:
    """Its lock does not reach this host, but it was touched a moment ago."""
    directory = exchanges.add(exchange, "elsewhere-aaaaaaaa")
    claim = liveness.claim_attempt(directory, 1)
    runner = documents.read_document(claim.directory / layout.RUNNER) or {}
    documents.write_document(claim.directory / layout.RUNNER, {**runner, "host": "elsewhere"})
    claim.release()
    service = JobService(core(exchange), Caller("me", "/w"))
    assert service.get(directory.name).state is State.STARTING
    old = time.time() - liveness.HEARTBEAT_TIMEOUT - 1
    os.utime(claim.directory / layout.LOCK, (old, old))
    assert service.get(directory.name).reason == "Lost"
