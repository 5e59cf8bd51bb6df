"""The reconciler and a group's limit: who gets a Job, in which order, and what the others say."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from jupyter_to_job.controller.reconciling import reconciler as reconciler_module
from jupyter_to_job.controller.reconciling import work_queue
from jupyter_to_job.controller.reconciling.reconciler import Reconciler
from jupyter_to_job.domain.errors import Refused
from jupyter_to_job.exchange import FileExchange

from . import exchanges
from .test_reconciler import NAMESPACE, ORIGIN, PODS, PretendCluster

NAMES = ["run-aaaaaaaa", "run-bbbbbbbb", "run-cccccccc"]


def submit(exchange: FileExchange, name: str, number: int, limit: int | None = 1) -> None:
    asked = exchanges.request(
        name, backend="kubernetes", demand={"cpu": "1", "memory": "1"}, group="night",
        group_limit=limit, submitted=f"2026-11-21T09:30:00.{number:03}Z",
    )  # fmt: skip
    assert exchange.create(asked, exchanges.RESULT, origin=ORIGIN)


class World:
    """Jobs of one group, and a reconciler that looks at each of them when it is told to."""

    def __init__(self, root: Path, names: Sequence[str] = NAMES, limit: int | None = 1) -> None:
        self.exchange = FileExchange(root, is_private=False)
        for number, name in enumerate(names):
            submit(self.exchange, name, number, limit)
        self.cluster = PretendCluster()
        self.restart()

    def restart(self) -> None:
        self.reconciler = Reconciler(
            self.cluster,  # type: ignore[arg-type]
            self.exchange,
            PODS,
            frozenset([NAMESPACE]),
            lambda _job: None,
        )

    async def look_at(self, *names: str) -> list[str]:
        """Reconcile some jobs; return all that have a Job."""
        self.reconciler._groups.begin(NAMES)
        for name in names:
            await self.reconciler._reconcile(name)
            self.reconciler._groups.saw(name)
            self.cluster.job_records.watch()
        return sorted(name for _, name in self.cluster.job_records)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Run what looks at jobs by itself."""
        workers = (self.reconciler._work() for _ in range(reconciler_module.WORKERS))
        loops = [self.reconciler._resync(), *workers]
        tasks = [asyncio.create_task(loop) for loop in loops]
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    def queued(self) -> set[str]:
        return self.reconciler._queue._waiting


def test_one_at_a_time_and_the_others_say_why(tmp_path: Path) -> None:
    asyncio.run(one_at_a_time(World(tmp_path)))


async def one_at_a_time(world: World) -> None:
    assert await world.look_at(*NAMES) == []  # until all were seen once
    assert world.queued() == set(NAMES)
    assert await world.look_at(*NAMES) == NAMES[:1]
    placement = world.reconciler.placement_of(NAMES[2])
    assert placement is not None and placement.reason == "GroupLimit"
    assert placement.message is not None and "At most 1 job of the group night" in placement.message
    world.queued().clear()
    exchanges.end(world.exchange.directory(NAMES[0]))
    await world.look_at(NAMES[0])
    assert world.queued() - {NAMES[0]} == {NAMES[1]}
    assert await world.look_at(*NAMES[::-1]) == NAMES[2:]  # who asks first; the old Job is gone


def test_a_restart_counts_what_runs(tmp_path: Path) -> None:
    asyncio.run(restart(World(tmp_path)))


async def restart(world: World) -> None:
    await world.look_at(*NAMES)
    await world.look_at(*NAMES[:1])
    world.restart()
    assert await world.look_at(*NAMES[::-1], *NAMES) == NAMES[:1]
    exchanges.end(world.exchange.directory(NAMES[0]))
    assert await world.look_at(*NAMES) == NAMES[1:2]


@pytest.mark.parametrize("is_late", [False, True])
def test_a_job_counts_whose_creation_was_not_recorded(tmp_path: Path, is_late: bool) -> None:
    asyncio.run(not_recorded(World(tmp_path), is_late=is_late))


async def not_recorded(world: World, *, is_late: bool) -> None:
    """The controller is killed before it has the answer; perhaps the watch is late after that."""
    await world.look_at(*NAMES)
    world.cluster.crash = True
    with pytest.raises(RuntimeError):
        await world.look_at(NAMES[0])
    world.restart()
    if is_late:
        world.cluster.job_records.synced.clear()
        await world.look_at(*NAMES)
        world.cluster.job_records.synced.set()
    world.cluster.job_records.watch()
    await world.look_at(*NAMES[::-1])
    assert await world.look_at(*NAMES[::-1]) == NAMES[:1]
    world.queued().clear()
    exchanges.end(world.exchange.directory(NAMES[0]))
    await world.look_at(NAMES[0])
    assert NAMES[1] in world.queued()


async def until(condition: Callable[[], object]) -> None:
    async def wait() -> None:
        while not condition():
            await asyncio.sleep(0.01)

    await asyncio.wait_for(wait(), 60)


@pytest.fixture
def _short_delays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reconciler_module, "RESYNC_INTERVAL", 0.05)
    monkeypatch.setattr(work_queue, "MIN_RETRY_DELAY", 0.05)


@pytest.mark.usefixtures("_short_delays")
@pytest.mark.parametrize("limit", [2, None])
def test_a_sweep_that_the_cluster_refuses_backs_off(tmp_path: Path, limit: int | None) -> None:
    letters = "abcdefghij"
    names = [f"run-{first}{second}aaaaaa" for first in letters for second in letters]
    asyncio.run(backing_off(World(tmp_path, names, limit), names))


async def backing_off(world: World, names: list[str]) -> None:
    tries: Counter[str] = Counter()

    async def refuse(manifest: Any) -> str:
        await asyncio.sleep(0.001)  # others find the places taken meanwhile
        tries[manifest["metadata"]["name"]] += 1
        raise Refused("Kubernetes answered 403: exceeded quota: gpus.")

    world.cluster.create_job = refuse  # type: ignore[method-assign]
    async with world.running():
        await until(lambda: len(tries) == len(names) and max(tries.values()) >= 4)
    # The delay doubles with each failure that is remembered: none may be forgotten.
    assert world.reconciler._queue._failures == tries


@pytest.mark.usefixtures("_short_delays")
def test_a_refused_job_keeps_no_other_one_waiting(tmp_path: Path) -> None:
    asyncio.run(refused_beside(World(tmp_path, NAMES[:2])))


async def refused_beside(world: World) -> None:
    """One is refused for ever, and another one only once: that one finds the place taken then."""
    first, second = NAMES[:2]
    create, is_refused = world.cluster.create_job, {first, second}
    is_asked, may_answer = asyncio.Event(), asyncio.Event()

    async def refuse(manifest: Any) -> str:
        name = manifest["metadata"]["name"]
        if name == first:
            is_asked.set()
            await may_answer.wait()
        if name in is_refused:
            raise Refused("Kubernetes answered 403: exceeded quota: gpus.")
        return await create(manifest)

    world.cluster.create_job = refuse  # type: ignore[method-assign]
    await world.look_at(*NAMES)
    for _ in NAMES[:2]:  # they were woken when all had been seen
        world.reconciler._queue.done(await world.reconciler._queue.get())
    await world.reconciler._try_to_reconcile(second)
    asked = asyncio.create_task(world.reconciler._try_to_reconcile(first))
    await is_asked.wait()
    await world.reconciler._try_to_reconcile(second)
    assert world.reconciler._queue.is_failing(second)
    world.reconciler._queue._cancel_retry(second)  # that look was its retry
    may_answer.set()
    await asked
    assert world.queued() == set()
    is_refused.remove(second)
    async with world.running():
        await until(lambda: (NAMESPACE, second) in world.cluster.job_records)
