"""Answers about waiting jobs: what is played through again for them, and who waits for whom."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from job_runner.protocol import times
from jupyter_to_job.backends.kubernetes import KubernetesBackend
from jupyter_to_job.backends.local.backend import LocalBackend
from jupyter_to_job.domain.state import Placement
from jupyter_to_job.exchange import FileExchange
from jupyter_to_job.exchange.index import IndexRow
from jupyter_to_job.flavors import load_catalog
from jupyter_to_job.service.jobs import JobService, ServiceContext
from jupyter_to_job.service.reading import queue_forecast
from jupyter_to_job.service.reading.past_runs import SAMPLES
from jupyter_to_job.service.submitting.submission import Caller

from . import exchanges
from .test_forecast import asked, row
from .test_queue import GPU


class CountingBackend(LocalBackend):
    """Counts how often a queue is played through."""

    played = 0

    def forecast(self, *arguments: Any, **named: Any) -> Sequence[float | None]:
        self.played += 1
        return super().forecast(*arguments, **named)


@pytest.fixture
def exchange(tmp_path: Path) -> FileExchange:
    found = FileExchange(tmp_path / "exchange")
    found.prepare()
    return found


def test_a_forecast_counts_for_all_that_wait(
    exchange: FileExchange, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also for those that it does not have, because they are too large for ever."""
    monkeypatch.setattr(queue_forecast, "FORECAST_TTL", 3600.0)
    exchanges.add(exchange, "first-aaaaaaaa", demand={"cpu": "1"})
    for letter in "bcd":
        exchanges.add(exchange, f"large-{letter * 8}", demand={"cpu": "9"})
    backend = CountingBackend(exchange, "cpu=2,memory=8")
    context = ServiceContext(exchange, backend, load_catalog)
    jobs = JobService(context, Caller("me", "/w"), wake=lambda *_: None)
    waits = {job.name: job.wait for job in jobs.find().jobs}
    assert len(waits) == 4
    first = waits["first-aaaaaaaa"]
    assert first is not None and first.start is not None and first.start.likely == 0
    assert backend.played == SAMPLES
    assert {job.name: job.wait is None for job in jobs.find().jobs} == dict.fromkeys(waits, False)
    assert backend.played == SAMPLES, "nothing changed"

    # What is being recorded while a forecast is made says an earlier time than that.
    exchanges.add(exchange, "new-aaaaaaaa", demand={"cpu": "1"})
    (new,) = (job.wait for job in jobs.find().jobs if job.name == "new-aaaaaaaa")
    assert new is not None and new.start is not None, "it came later"
    assert backend.played == 2 * SAMPLES

    monkeypatch.setattr(queue_forecast, "MAX_QUEUE", 2)
    exchanges.add(exchange, "late-aaaaaaaa", demand={"cpu": "1"}, submitted=times.now())
    (late,) = (job.wait for job in jobs.find().jobs if job.name == "late-aaaaaaaa")
    assert late is not None and late.start is not None
    assert backend.played == 2 * SAMPLES, "it is the last of a long queue"

    monkeypatch.setattr(queue_forecast, "MAX_QUEUE", 1)
    trial = exchanges.request("trial-aaaaaaaa", demand={"cpu": "1"}, submitted=times.now())
    assert context.forecasts.of_trial(trial).before == 3
    assert backend.played == 2 * SAMPLES, "a dialog asks at each change"


def test_what_waits_for_something_else_is_not_before_a_new_job(exchange: FileExchange) -> None:
    for letter in "ab":
        exchanges.add(exchange, f"train-{letter * 8}", demand={"cpu": "1", GPU: "1"})
    backend = LocalBackend(exchange, f"cpu=8,memory=8,{GPU}=1")
    forecasts = ServiceContext(exchange, backend, load_catalog).forecasts
    before = [
        forecasts.of_trial(
            exchanges.request("new-aaaaaaaa", demand=demand, submitted=times.now())
        ).before
        for demand in ({"cpu": "1"}, {"cpu": "1", GPU: "1"})
    ]
    assert before == [0, 2]


class HeldLister:
    """Reads the earlier runs of one owner for as long as a test wants."""

    def __init__(self) -> None:
        self.begun, self.go_on = threading.Event(), threading.Event()
        self.read: list[str] = []

    def ended(self, owner: str) -> Sequence[IndexRow]:
        self.read.append(owner)
        if owner == "slow":
            self.begun.set()
            assert self.go_on.wait(30)
        return [row("a", 60)]


def test_no_owner_waits_for_another(
    exchange: FileExchange, monkeypatch: pytest.MonkeyPatch
) -> None:
    backend = KubernetesBackend(lambda _: None, lambda _: Placement())
    lister: Any = HeldLister()
    made = queue_forecast.QueueForecasts(exchange, backend, lister, reader=lister)
    slow = threading.Thread(target=made.of_trial, args=[asked(owner="slow")], daemon=True)
    slow.start()
    assert lister.begun.wait(30)
    other = threading.Thread(target=made.of_trial, args=[asked(owner="quick")], daemon=True)
    other.start()
    other.join(30)
    assert not other.is_alive()
    lister.go_on.set()
    slow.join(30)

    monkeypatch.setattr(queue_forecast, "MAX_OWNERS", 2)
    for owner in ("a", "b", "c", "c", "quick"):
        made.of_trial(asked(owner=owner))
    assert lister.read == ["slow", "quick", "a", "b", "c", "quick"], "the oldest are forgotten"


def test_how_long_a_job_runs_is_told_without_a_queue(
    exchange: FileExchange, monkeypatch: pytest.MonkeyPatch
) -> None:
    exchanges.add(exchange, "train-aaaaaaaa", source="/w/a.ipynb")
    exchanges.add(exchange, "other-aaaaaaaa")
    backend = KubernetesBackend(lambda _: None, lambda _: Placement())
    context = ServiceContext(exchange, backend, load_catalog)
    monkeypatch.setattr(context.lister, "ended", lambda _: [row("a", 60)])
    jobs = JobService(context, Caller("me", "/w"), wake=lambda *_: None)
    for job in (jobs.get("train-aaaaaaaa"), *jobs.find().jobs):
        if job.name == "other-aaaaaaaa":
            assert job.wait is None
        else:
            assert job.wait is not None and job.wait.run is not None
            assert (job.wait.run.runs, job.wait.start, job.wait.before) == (1, None, None)
