"""The server's feed and its puller: what is wrong with one job keeps nobody from the others."""

from __future__ import annotations

import logging
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from jupyter_to_job.backends.memory import MemoryBackend
from jupyter_to_job.domain.errors import Damaged, NotFound, Unavailable
from jupyter_to_job.domain.job import Deleted, Delivery, DeliveryState, Job, State
from jupyter_to_job.exchange import FileExchange
from jupyter_to_job.flavors import load_catalog
from jupyter_to_job.server import feed as feed_module
from jupyter_to_job.server.feed import Feed
from jupyter_to_job.server.puller import WORKERS, ResultPuller
from jupyter_to_job.service.jobs import JobService, ServiceContext
from jupyter_to_job.service.remote import RemoteJobs
from jupyter_to_job.service.submitting.submission import Caller

from ..cutting_proxy import cutting_proxy
from ..gateways import FullCluster, context_of, serving
from ..processes import until
from . import exchanges

GOOD = [f"good-{letter * 8}" for letter in "abcdef"]
BAD = "bad-aaaaaaaa"


class Pulling(JobService):
    """A service whose results this process has to pull, and those called `bad` cannot be."""

    pulls = True
    fail: Callable[[str], object]

    def __init__(self, context: ServiceContext, caller: Caller) -> None:
        super().__init__(context, caller)
        self.tries: defaultdict[str, list[float]] = defaultdict(list)

    def deliver(self, name: str) -> Job:
        self.tries[name].append(time.monotonic())
        if name.startswith("bad"):
            self.fail(name)
        return super().deliver(name)


@pytest.fixture
def exchange(tmp_path: Path) -> FileExchange:
    (tmp_path / "workspace").mkdir()
    return FileExchange(tmp_path / "exchange")


@pytest.fixture
def jobs(exchange: FileExchange, tmp_path: Path) -> Pulling:
    core = ServiceContext(exchange, MemoryBackend(exchange), load_catalog)
    return Pulling(core, Caller("me", str(tmp_path / "workspace")))


def end(exchange: FileExchange, tmp_path: Path, *names: str) -> None:
    """Record jobs that have ended."""
    for name in names:
        exchanges.end(exchanges.add(exchange, name, workspace=str(tmp_path / "workspace")))


@contextmanager
def feeding(jobs: Pulling, min_delay: float = 0.05) -> Iterator[dict[str, str]]:
    """Run a feed with its puller; yield the delivery of each job as it was told last."""
    told: dict[str, str] = {}

    def tell(job: Any) -> None:
        told[job.name] = job.delivery.state.value

    log = logging.getLogger("feed")
    puller = ResultPuller(jobs, log, min_delay)
    feed = Feed(jobs, tell, log, puller)
    puller.start()
    feed.start()
    yield told
    feed.stop()
    puller.stop()


@pytest.mark.parametrize("error", [Damaged, Unavailable, RuntimeError])
def test_one_that_cannot_be_fetched(
    exchange: FileExchange, jobs: Pulling, tmp_path: Path, caplog: pytest.LogCaptureFixture,
    error: type[Exception],
) -> None:  # fmt: skip
    def fail(name: str) -> None:
        raise error(f"{name} has no result.")

    jobs.fail = fail
    end(exchange, tmp_path, BAD, *GOOD)
    with feeding(jobs) as told:
        expected = {BAD: "pending"} | dict.fromkeys(GOOD, "delivered")
        until(lambda: told == expected, "all are told of")
        until(lambda: len(jobs.tries[BAD]) >= 5, "it is tried again")
    pauses = [b - a for a, b in zip(jobs.tries[BAD], jobs.tries[BAD][1:], strict=False)]
    assert all(pause >= 0.05 * 2**n for n, pause in enumerate(pauses))  # ever less often
    assert all(len(jobs.tries[name]) == 1 for name in GOOD)
    assert sum("is not delivered" in line for line in caplog.messages) == 1


def test_one_that_takes_for_ever(exchange: FileExchange, jobs: Pulling, tmp_path: Path) -> None:
    """All but one of the puller's threads wait for the gateway, and everybody hears of the rest."""
    gate = threading.Event()
    jobs.fail = lambda _: gate.wait(60)
    slow = [f"bad-{letter * 8}" for letter in "bcdefgh"[: WORKERS - 1]]
    end(exchange, tmp_path, *slow, *GOOD)
    with feeding(jobs) as told:
        expected = dict.fromkeys(slow, "pending") | dict.fromkeys(GOOD, "delivered")
        until(lambda: told == expected, "all are told of")
        gate.set()
        until(lambda: set(told.values()) == {"delivered"}, "they are delivered in the end")


def test_one_that_mends(exchange: FileExchange, jobs: Pulling, tmp_path: Path) -> None:
    def fail(name: str) -> None:
        if len(jobs.tries[name]) < 3:
            raise Unavailable("The gateway cannot be reached.")

    jobs.fail = fail
    end(exchange, tmp_path, BAD)
    with feeding(jobs) as told:
        until(lambda: told == {BAD: "delivered"}, "it is delivered")
    assert len(jobs.tries[BAD]) == 3


def test_one_that_is_held(
    exchange: FileExchange, jobs: Pulling, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The folder may be there again some time later."""
    end(exchange, tmp_path, BAD)
    job = jobs.get(BAD)
    held = replace(job, delivery=Delivery(DeliveryState.HELD, None, "The folder is gone."))
    deliver = jobs.deliver
    answers = [held, job]

    def try_again(name: str) -> Job:
        return answers.pop(0) if answers else deliver(name)

    jobs.fail = lambda _: None
    monkeypatch.setattr(jobs, "deliver", try_again)
    puller = ResultPuller(jobs, logging.getLogger("feed"), 0.01)
    puller.start()
    puller.see(job)
    until(lambda: jobs.get(BAD).delivery.path is not None, "it is tried until it is delivered")
    assert answers == []
    puller.stop()


def test_one_that_is_deleted(exchange: FileExchange, jobs: Pulling, tmp_path: Path) -> None:
    def fail(name: str) -> None:
        raise NotFound(f"There is no {name}.")

    jobs.fail = fail
    end(exchange, tmp_path, BAD, *GOOD)
    with feeding(jobs, 0.0) as told:
        until(lambda: list(told.values()).count("delivered") == len(GOOD), "the others are told")
        until(lambda: jobs.tries[BAD], "a try")
    assert len(jobs.tries[BAD]) == 1


@pytest.mark.parametrize("is_busy", [False, True])
def test_what_happens_while_the_feed_is_away(
    exchange: FileExchange,
    jobs: Pulling,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    *,
    is_busy: bool,
) -> None:
    """A feed that begins again tells of open jobs only: the others are asked for.

    A busy feed has a change all the while, and so no moment of silence.
    """
    ends, goes = GOOD[:2]
    end(exchange, tmp_path, ends)
    ended = replace(jobs.get(ends), delivery=Delivery(DeliveryState.NONE))
    running = [replace(ended, name=name, state=State.RUNNING) for name in (ends, goes)]
    other = replace(running[0], name=GOOD[2])
    is_away = False

    def changes() -> Iterator[Job | None]:
        nonlocal is_away
        if not is_away:
            yield from running
            yield None
            is_away = True
            raise Unavailable("The gateway cannot be reached.")
        yield None
        while True:
            yield other if is_busy else None
            time.sleep(0.01)

    def get(name: str) -> Job:
        if name == goes:
            raise NotFound(f"There is no {name}.")
        return ended

    monkeypatch.setattr(jobs, "get", get)
    monkeypatch.setattr(jobs, "changes", changes)
    monkeypatch.setattr(feed_module, "RETRY_INTERVAL", 0.01)
    monkeypatch.setattr(feed_module, "LOOK_DELAY", 0.1)
    told: list[str] = []

    def tell(change: Job | Deleted) -> None:
        if change.name != GOOD[2]:
            told.append("deleted" if isinstance(change, Deleted) else change.state.value)

    log = logging.getLogger("feed")
    feed = Feed(jobs, tell, log, ResultPuller(jobs, log))
    feed.start()
    until(lambda: len(told) == 4, "all are told of")
    feed.stop()
    assert told[:2] == ["running", "running"] and sorted(told[2:]) == ["deleted", "succeeded"]


class Counting(RemoteJobs):
    """A service behind a gateway that counts the jobs which are asked for one by one."""

    gets = 0

    def get(self, name: str) -> Job:
        self.gets += 1
        return super().get(name)


def test_a_gateway_that_is_back_is_not_asked_for_what_it_tells(
    exchange: FileExchange, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its stream begins with a heartbeat, and the open jobs follow."""
    monkeypatch.setattr(feed_module, "RETRY_INTERVAL", 0.01)
    exchange.prepare()
    letters = "abcdefgh"
    names = {f"train-{a}{b}aaaaaa" for a in letters for b in letters}
    for name in names:
        exchanges.add(exchange, name, owner="ada")
    (tmp_path / "token").write_text("ada")
    told: list[str] = []

    def tell(change: Job | Deleted) -> None:
        told.append(change.name)

    context = context_of(exchange, backend=FullCluster)
    with context as made, serving(made) as url, cutting_proxy(url) as proxy:
        caller = Caller("ada", str(tmp_path / "workspace"))
        jobs = Counting(proxy.url, tmp_path / "token", caller)
        log = logging.getLogger("feed")
        feed = Feed(jobs, tell, log, ResultPuller(jobs, log))
        feed.start()
        until(lambda: set(told) == names, "all are told of")
        proxy.cut_after_received(1)
        until(lambda: proxy.cuts == 1, "the stream is cut")
        until(lambda: all(told.count(name) >= 2 for name in names), "all are told of again")
        feed.stop()
    assert jobs.gets == 0
