"""The events of one job: which, in which order, how often the cluster is asked."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from job_runner.protocol import layout
from jupyter_to_job.backends.kubernetes.records import MAX_EVENT, PodRecord, cluster_event
from jupyter_to_job.controller import recent_events
from jupyter_to_job.controller.recent_events import MAX_EVENTS, RecentEvents
from jupyter_to_job.domain.errors import JobsError, Refused, Unavailable
from jupyter_to_job.domain.job import ClusterEvent
from jupyter_to_job.exchange import FileExchange
from jupyter_to_job.exchange.records import ClusterJob

from ..pretend_cluster import PretendCluster
from . import exchanges

NAME = "study-aaaaaaaa"
JOB = ClusterJob("team", NAME, "job-uid")


def event(second: int, reason: str = "FailedScheduling") -> ClusterEvent:
    return ClusterEvent(f"2026-01-02T03:04:{second:02}.000Z", reason, "no room")


class EventsOf:
    """A cluster that only has events; `asked` has the uids that it was asked for."""

    def __init__(self, error: JobsError | None = None, **events: list[ClusterEvent]) -> None:
        self.events = {uid.replace("_", "-"): found for uid, found in events.items()}
        self.error = error
        self.asked: list[tuple[str, str]] = []
        self.pod: PodRecord | None = None

    async def events_of(self, namespace: str, uid: str) -> list[ClusterEvent]:
        self.asked.append((namespace, uid))
        if self.error is not None:
            raise self.error
        return self.events.get(uid, [])

    def newest_pod(self, job: ClusterJob) -> PodRecord | None:
        assert job == JOB
        return self.pod


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A slow machine takes no answer away."""
    monkeypatch.setattr(recent_events, "MAX_WAIT", 60.0)
    monkeypatch.setattr(recent_events, "TTL", 3600.0)


@pytest.fixture
def exchange(tmp_path: Path) -> FileExchange:
    exchange = FileExchange(tmp_path / "exchange")
    exchange.prepare()
    exchanges.add(exchange, NAME)
    exchange.write(NAME, layout.JOB, asdict(JOB))
    return exchange


def tell(cluster: EventsOf, exchange: FileExchange, name: str = NAME, times: int = 1) -> Any:
    async def ask() -> Any:
        events = RecentEvents(cluster, exchange, cluster)
        for _ in range(times):
            told = await asyncio.to_thread(events.of, name)
        return told

    return asyncio.run(ask())


def test_those_of_job_and_pod_by_their_time(exchange: FileExchange) -> None:
    cluster = EventsOf(job_uid=[event(1, "SuccessfulCreate")], pod_uid=[event(3), event(0)])
    world = PretendCluster()
    cluster.pod = world.record(world.add_job_pod(NAME, job_uid="job-uid"))
    cluster.events[cluster.pod.uid] = cluster.events.pop("pod-uid")
    told = tell(cluster, exchange, times=3)
    assert [e.time[-7:-1] for e in told] == ["00.000", "01.000", "03.000"]
    assert sorted(cluster.asked) == sorted([("team", "job-uid"), ("team", cluster.pod.uid)])


def test_only_the_latest(exchange: FileExchange) -> None:
    told = tell(EventsOf(job_uid=[event(second) for second in range(30)]), exchange)
    assert told == tuple(event(second) for second in range(30 - MAX_EVENTS, 30))


def test_nothing_happened_to_what_has_no_job(exchange: FileExchange) -> None:
    cluster = EventsOf()
    exchanges.add(exchange, "other-aaaaaaaa")
    assert tell(cluster, exchange, "other-aaaaaaaa") == ()
    assert cluster.asked == []


@pytest.mark.parametrize("error", [Unavailable("away"), Refused("no right")])
def test_a_cluster_that_says_nothing(exchange: FileExchange, error: JobsError) -> None:
    assert tell(EventsOf(error), exchange) is None


def test_few_wait_for_a_cluster_that_does_not_answer(exchange: FileExchange) -> None:
    """The threads are those that all small answers share."""

    class Slow(EventsOf):
        async def events_of(self, namespace: str, uid: str) -> list[ClusterEvent]:
            await super().events_of(namespace, uid)
            asked.release()
            await answered.wait()
            return [event(1)]

    answered: asyncio.Event
    asked: asyncio.Semaphore

    async def live() -> None:
        nonlocal answered, asked
        answered, asked = asyncio.Event(), asyncio.Semaphore(0)
        events = RecentEvents(Slow(), exchange, EventsOf())
        waiting = [
            asyncio.create_task(asyncio.to_thread(events.of, NAME))
            for _ in range(recent_events.MAX_ASKING)
        ]
        await asked.acquire()
        await _until(lambda: not events._turns._value)
        assert await asyncio.to_thread(events.of, NAME) is None
        answered.set()
        assert await asyncio.gather(*waiting) == [(event(1),)] * len(waiting)

    asyncio.run(live())


async def _until(condition: Callable[[], object]) -> None:
    while not condition():
        await asyncio.sleep(0.01)


@pytest.mark.parametrize(
    ("moments", "time"),
    [
        ({"firstTimestamp": "2026-01-02T03:04:05Z", "lastTimestamp": "2026-01-02T03:04:06Z"}, 6),
        ({"firstTimestamp": None, "eventTime": "2026-01-02T03:04:07.123456Z"}, 7.123),
        (
            {"eventTime": "2026-01-02T03:04:07.123456Z",
             "series": {"count": 3, "lastObservedTime": "2026-01-02T03:04:08.000001Z"}},
            8,
        ),
        ({}, 1),
    ],
)  # fmt: skip
def test_an_event_as_each_recorder_writes_it(moments: Any, time: float) -> None:
    document = {
        "metadata": {"creationTimestamp": "2026-01-02T03:04:01Z"},
        "reason": "FailedScheduling",
        "message": "0/2 nodes" + MAX_EVENT * "!",
        **moments,
    }
    found = cluster_event(document)
    assert found.time == f"2026-01-02T03:04:{time:06.3f}Z"
    assert len(found.message) == MAX_EVENT
