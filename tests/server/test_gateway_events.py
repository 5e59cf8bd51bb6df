"""The gateway's event streams: one feed for all, at the cost of what changes and is watched."""

from __future__ import annotations

import asyncio
import errno
import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from job_runner.protocol import documents, layout
from jupyter_to_job.controller import events, handler, request_log
from jupyter_to_job.controller.feed import gateway_feed
from jupyter_to_job.domain.errors import Refused, Unavailable
from jupyter_to_job.exchange import FileExchange, Request
from jupyter_to_job.service.jobs import ServiceContext
from jupyter_to_job.service.remote import RemoteJobs
from jupyter_to_job.service.submitting.submission import Caller

from ..unit import exchanges
from .event_streams import BOUND, Agent, Event, Place, Stream, gateway

JOB = "train-abcdefgh"
CANCEL = {"time": "2026-11-21T09:30:00.000Z", "who": "me"}


@pytest.fixture
def exchange(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FileExchange:
    monkeypatch.setattr(os, "fsync", lambda _: None)
    made = FileExchange(tmp_path / "exchange", is_private=False)
    made.prepare()
    return made


@pytest.fixture
def place(exchange: FileExchange, jp_asyncio_loop: asyncio.AbstractEventLoop) -> Iterator[Place]:
    serving = gateway(exchange)
    yield jp_asyncio_loop.run_until_complete(serving.__aenter__())
    jp_asyncio_loop.run_until_complete(serving.__aexit__(None, None, None))


def names(count: int) -> list[str]:
    letters = "abcdefghijklmnopqrstuvwxyz"
    return [f"train-{letters[n // 26]}{letters[n % 26]}aaaaaa" for n in range(count)]


async def until(condition: object, what: str) -> None:
    end = time.monotonic() + BOUND
    while not condition():  # type: ignore[operator]
        assert time.monotonic() < end, what
        await asyncio.sleep(0.01)


async def test_first_all_that_are_open_then_changes(exchange: FileExchange) -> None:
    exchanges.settle(exchange, "delivered-aaaaaaaa")
    exchanges.add(exchange, "queued-aaaaaaaa")
    exchanges.end(exchanges.add(exchange, "ended-aaaaaaaa"))
    held = exchanges.add(exchange, "held-aaaaaaaa")
    exchanges.end(held)
    documents.write_document(held / "held.json", {"message": "The folder is gone."})
    exchanges.add(exchange, "other-aaaaaaaa", owner="eve")
    async with gateway(exchange) as place:
        stream = await place.follow("me")
        first = {job["name"]: job for job in [await stream.next() for _ in range(3)]}
        assert {name: job["delivery"]["state"] for name, job in first.items()} == {
            "queued-aaaaaaaa": "pending",
            "ended-aaaaaaaa": "pending",
            "held-aaaaaaaa": "held",
        }
        assert first["queued-aaaaaaaa"]["position"] is None
        delivery = {"v": 1, "path": "a.ipynb", "sha256": "0" * 64, "time": exchanges.DELIVERED}
        path = f"exchange/held-aaaaaaaa/{layout.DELIVERY}"
        assert (await place.ask("PUT", path, "me", documents.encode(delivery))).code == 200
        job = await stream.next()
        assert (job["name"], job["delivery"]["state"]) == ("held-aaaaaaaa", "delivered")
        assert (await place.ask("POST", "jobs/queued-aaaaaaaa/cancel", "me")).code == 202
        job = await stream.next()
        assert (job["name"], job["cancel_requested"]) == ("queued-aaaaaaaa", True)
        second = await place.follow("me")  # it is told what the feed knows, without another look
        assert {job["name"] for job in await second.all_now()} == {
            "queued-aaaaaaaa",
            "ended-aaaaaaaa",
        }


async def test_fifty_streams_of_fifty_owners(exchange: FileExchange) -> None:
    jobs = dict(zip(names(50), [f"user-{n}" for n in range(50)], strict=True))
    for name, owner in jobs.items():
        exchanges.add(exchange, name, owner=owner)
    async with gateway(exchange) as place:
        threads = threading.active_count()
        streams = {name: await place.follow(owner) for name, owner in jobs.items()}
        assert threading.active_count() <= threads + 4  # those of the gateway's pool
        agents = {name: Agent(place, name) for name in jobs}
        for agent in agents.values():
            await agent.claim()
            await agent.print()

        async def hear(name: str, stream: Stream) -> set[str]:
            sent = agents[name].sent
            heard = await stream.until(lambda job: bool(job["journal"] == sent))
            return {job["name"] for job in heard}

        heard = await asyncio.gather(*(hear(*item) for item in streams.items()))
        assert heard == [{name} for name in jobs]


async def test_streams_of_one_owner_hear_the_same(place: Place) -> None:
    streams = [await place.follow("me") for _ in range(5)]
    exchanges.add(place.exchange, JOB)
    place.feed.mark(JOB)
    assert [(await stream.next())["name"] for stream in streams] == [JOB] * 5


async def test_at_most_four_events_a_second(place: Place) -> None:
    exchanges.add(place.exchange, JOB)
    stream, agent = await place.follow("me"), Agent(place, JOB)
    await agent.claim()
    heard: list[tuple[float, int]] = []

    async def hear() -> None:
        while True:
            job = await stream.next()
            heard.append((time.monotonic(), job["journal"]))

    hearing = asyncio.create_task(hear())
    began = time.monotonic()
    while time.monotonic() < began + 2.0:
        await agent.print()
    took = time.monotonic() - began
    await until(lambda: heard and heard[-1][1] == agent.sent, "the last state")
    hearing.cancel()
    assert 2 <= len(heard) <= took * gateway_feed.MAX_EVENTS + 2
    sizes = [size for _, size in heard]
    assert sizes == sorted(set(sizes))


async def test_an_agent_learns_whether_somebody_watches(exchange: FileExchange) -> None:
    exchanges.add(exchange, JOB)
    async with gateway(exchange) as place:
        agent = Agent(place, JOB)
        assert await agent.claim() is False
        await place.follow("me", "?name=other-aaaaaaaa")
        assert await agent.print() is False
        stream = await place.follow("me")
        await stream.next()
        assert await agent.print() is True
        stream.writer.close()
        end = time.monotonic() + BOUND
        while await agent.print():  # until the gateway notices
            assert time.monotonic() < end


async def test_the_log_does_not_grow_with_appends(
    place: Place, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    caplog.set_level("INFO", logger=request_log.__name__)
    monkeypatch.setattr(request_log, "SLOW", BOUND)
    exchanges.add(place.exchange, JOB)
    agent = Agent(place, JOB)
    await agent.claim()
    caplog.clear()
    await agent.print()
    await place.ask("GET", "health", "me")
    assert caplog.messages == []
    await place.ask("GET", f"jobs/{JOB}", "me")
    append = f"exchange/{JOB}/attempt-1/journal/00000001.jsonl"
    await place.ask("POST", f"{append}?offset=0", f"agent:{JOB}", b"x")  # at a wrong offset
    monkeypatch.setattr(request_log, "SLOW", 0.0)
    await agent.print()
    assert [message.rpartition(" ms")[0].rpartition(" ")[0] for message in caplog.messages] == [
        f"200 GET /api/jobs/{JOB}",
        f"409 POST /api/{append}",
        f"200 POST /api/{append}",
    ]
    assert [record.levelname for record in caplog.records] == ["INFO", "WARNING", "INFO"]


async def test_deleted_jobs(exchange: FileExchange) -> None:
    exchanges.settle(exchange, "delivered-aaaaaaaa")
    exchanges.add(exchange, "queued-aaaaaaaa")
    async with gateway(exchange) as place:
        stream, other = await place.follow("me"), await place.follow("eve")
        assert (await stream.next())["name"] == "queued-aaaaaaaa"
        for name in ("delivered-aaaaaaaa", "queued-aaaaaaaa"):
            assert (await place.ask("DELETE", f"jobs/{name}", "eve")).code == 404
            assert (await place.ask("DELETE", f"jobs/{name}", "me")).code == 204
            assert await stream.next() == {"deleted": name}
        late = await place.follow("me")
        exchange.remove("queued-aaaaaaaa")  # the reconciler removes it when its run has ended
        exchanges.add(exchange, "queued-aaaaaaaa")
        place.feed.mark("queued-aaaaaaaa")
        for each in (stream, late):
            assert (await each.next())["name"] == "queued-aaaaaaaa"
        exchanges.add(exchange, "other-aaaaaaaa", owner="eve")
        place.feed.mark("other-aaaaaaaa")
        assert (await other.next())["name"] == "other-aaaaaaaa"  # and nothing before it


async def test_estimates_learn_of_what_was_watched(exchange: FileExchange) -> None:
    """There is no queue whose reading would find ended jobs, and nobody asks for a list."""
    directory = exchanges.add(exchange, "queued-aaaaaaaa")
    async with gateway(exchange, full_look_interval=0.3) as place:
        lister = place.context.core.lister
        stream = await place.follow("me")
        assert (await stream.next())["state"] == "queued"
        assert lister.ended("me") == ()
        exchanges.end(directory)
        exchanges.deliver(directory)
        place.feed.mark("queued-aaaaaaaa")
        await stream.until(lambda job: job["delivery"]["state"] == "delivered")
        await until(lambda: [r.name for r in lister.ended("me")] == ["queued-aaaaaaaa"], "its row")


async def test_what_nobody_marked_is_seen_all_the_same(exchange: FileExchange) -> None:
    directory = exchanges.add(exchange, "queued-aaaaaaaa")
    async with gateway(exchange, full_look_interval=0.3) as place:
        stream = await place.follow("me")
        assert not (await stream.next())["cancel_requested"]
        documents.write_document(directory / layout.CANCEL, CANCEL)
        assert (await stream.next())["cancel_requested"]
        exchanges.settle(exchange, "new-aaaaaaaa")
        assert (await stream.next())["delivery"]["state"] == "delivered"
        exchange.remove("new-aaaaaaaa")
        assert await stream.next() == {"deleted": "new-aaaaaaaa"}
        exchange.remove("queued-aaaaaaaa")
        assert await stream.next() == {"deleted": "queued-aaaaaaaa"}


async def test_nobody_looks_at_what_nobody_watches(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks: list[str] = []
    read = ServiceContext.read_job

    def counted(self: ServiceContext, request: Request) -> object:
        looks.append(request.name)
        return read(self, request)

    monkeypatch.setattr(ServiceContext, "read_job", counted)
    for name, owner in (("mine-aaaaaaaa", "me"), ("hers-aaaaaaaa", "eve")):
        exchanges.add(place.exchange, name, owner=owner)
        place.feed.mark(name)
    await until(lambda: len(looks) == 2, "the feed knows whose they are")
    first = await place.follow("me")
    assert (await first.next())["name"] == "mine-aaaaaaaa"
    first.writer.close()
    agent = Agent(place, "mine-aaaaaaaa")
    await agent.claim()
    del looks[:]
    second = await place.follow("eve")
    await second.next()
    await until(lambda: not any(o.streams for n, o in place.feed._owners.items() if n == "me"), "")
    del looks[:]
    for _ in range(3):
        await agent.print()
    place.feed.mark("hers-aaaaaaaa")
    await until(lambda: looks, "a look")
    assert set(looks) == {"hers-aaaaaaaa"}
    again = await place.follow("me")  # who comes back hears of all that happened meanwhile
    assert (await again.next())["journal"] == agent.sent


async def test_only_some_jobs(place: Place) -> None:
    for name in ("one-aaaaaaaa", "two-aaaaaaaa"):
        exchanges.add(place.exchange, name)
    everything = await place.follow("me")
    place.feed.mark("one-aaaaaaaa")
    place.feed.mark("two-aaaaaaaa")
    assert len([await everything.next() for _ in range(2)]) == 2
    stream = await place.follow("me", "?name=two-aaaaaaaa,three-aaaaaaaa")
    assert (await stream.next())["name"] == "two-aaaaaaaa"
    for name in ("one-aaaaaaaa", "two-aaaaaaaa"):
        assert (await place.ask("POST", f"jobs/{name}/cancel", "me")).code == 202
    assert (await stream.next())["cancel_requested"]
    assert {(await everything.next())["name"] for _ in range(2)} == {"one-aaaaaaaa", "two-aaaaaaaa"}
    hers = await place.follow("eve", "?name=one-aaaaaaaa")
    assert await hers.all_now() == []
    assert await stream.all_now() == []


async def test_what_a_wait_hears(place: Place, tmp_path: Path) -> None:
    """The command line asks for the jobs that it waits for: others of the user cost it nothing."""
    (tmp_path / "token").write_text("me")
    url, caller = f"http://127.0.0.1:{place.port}", Caller("me", str(tmp_path))
    for name in ("other-aaaaaaaa", JOB):
        exchanges.add(place.exchange, name)
        place.feed.mark(name)

    def wait() -> list[str]:
        names = []
        for job in RemoteJobs(url, tmp_path / "token", caller).changes([JOB]):
            if job is not None:
                names.append(job.name)
            elif len(names) == 1:  # a heartbeat, so nothing else came with it
                return names
        return names

    assert await asyncio.to_thread(wait) == [JOB]


async def test_a_slow_reader_gets_the_latest(exchange: FileExchange) -> None:
    """What it did not read yet is replaced, so that it costs an event of each job at most."""
    jobs = [exchanges.add(exchange, name, parameters={"x": "y" * 20_000}) for name in names(60)]
    async with gateway(exchange) as place:
        slow = await place.follow("me")
        slow.writer.transport.pause_reading()  # type: ignore[attr-defined]
        fast = await place.follow("me")
        for _ in range(60):
            await fast.next()
        for change in (layout.CANCEL, layout.DELETE):
            for directory in jobs:
                documents.write_document(directory / change, CANCEL)
                place.feed.mark(directory.name)
            for _ in range(60):
                await fast.next()
        slow.writer.transport.resume_reading()  # type: ignore[attr-defined]
        heard: list[Event] = []
        while len([event for event in heard if "deleted" in event]) < 60:
            heard.append(await slow.next())
        assert len(heard) < 3 * 60
        assert {event["deleted"] for event in heard if "deleted" in event} == set(names(60))


async def test_who_does_not_read_is_dropped(
    exchange: FileExchange, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(handler, "SEND_TIMEOUT", 5.0)
    for name in names(200):
        exchanges.add(exchange, name, parameters={"x": "y" * 30_000})
    async with gateway(exchange) as place:
        stuck = await place.follow("me")
        stuck.writer.transport.pause_reading()  # type: ignore[attr-defined]
        reading = await place.follow("me")
        heard = {(await reading.next())["name"] for _ in range(200)}
        assert heard == set(names(200))
        hearing = asyncio.create_task(reading.ended())  # which reads on
        await until(lambda: len(place.feed._owners["me"].streams) == 1, "one is dropped")
        assert not hearing.done()
        hearing.cancel()


async def test_who_disconnects_is_forgotten(place: Place) -> None:
    for _ in range(10):
        stream = await place.follow("me")
        stream.writer.transport.abort()
    await until(lambda: not place.feed._owners["me"].streams, "all are gone")


async def test_a_stream_ends_with_its_pod(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events, "VALIDITY_INTERVAL", 0.0)
    gone, other = await place.follow("me"), await place.follow("eve")
    place.tokens.faults["eve"] = Unavailable("The API server is away.")
    place.tokens.faults["me"] = Refused("The pod of this token is gone.")
    await gone.ended()
    exchanges.add(place.exchange, JOB, owner="eve")
    place.feed.mark(JOB)
    assert (await other.next())["name"] == JOB


async def test_who_may_follow(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    assert (await place.ask("GET", "events", f"agent:{JOB}")).code == 404
    place.tokens.faults["nobody"] = Refused("This token is not accepted.")
    assert (await place.ask("GET", "events", "nobody")).code == 403
    monkeypatch.setattr(gateway_feed, "MAX_STREAMS", 2)
    for _ in range(2):
        await place.follow("me")
    assert (await place.ask("GET", "events", "me")).code == 503
    await place.follow("eve")


async def test_one_that_cannot_be_read_keeps_nobody_waiting(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = ServiceContext.read_job

    def broken(self: ServiceContext, request: Request) -> object:
        if request.name == "bad-aaaaaaaa":
            raise RuntimeError("a fault of ours")
        return read(self, request)

    monkeypatch.setattr(ServiceContext, "read_job", broken)
    stream = await place.follow("me")
    for name in ("bad-aaaaaaaa", "good-aaaaaaaa"):
        exchanges.add(place.exchange, name)
        place.feed.mark(name)
    assert (await stream.next())["name"] == "good-aaaaaaaa"


async def test_a_network_that_fails_deletes_no_job(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    job, look, failures = exchanges.add(place.exchange, JOB), os.lstat, []

    def fail(path: Path, **options: int) -> os.stat_result:
        if path == job:
            failures.append(path)
            raise TimeoutError(errno.ETIMEDOUT, os.strerror(errno.ETIMEDOUT))
        return look(path, **options)

    stream = await place.follow("me")
    place.feed.mark(JOB)
    assert (await stream.next())["name"] == JOB
    with monkeypatch.context() as patch:
        patch.setattr(os, "lstat", fail)
        place.feed.mark(JOB)
        await until(lambda: failures, "it is looked at")
    documents.write_document(job / layout.CANCEL, CANCEL)
    place.feed.mark(JOB)
    assert (await stream.next())["cancel_requested"] is True
