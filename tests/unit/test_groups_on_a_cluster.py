"""The reconciler and a group's limit: who gets a Job, in which order, and what the others say."""

from __future__ import annotations

import asyncio
from pathlib import Path

from jupyter_to_job.controller.reconciling.reconciler import Reconciler
from jupyter_to_job.exchange import FileExchange

from . import exchanges
from .test_reconciler import NAMESPACE, ORIGIN, PODS, PretendCluster

NAMES = ["run-aaaaaaaa", "run-bbbbbbbb", "run-cccccccc"]


def submit(exchange: FileExchange, name: str, limit: int | None = 1) -> None:
    asked = exchanges.request(
        name, backend="kubernetes", demand={"cpu": "1", "memory": "1"}, group="night",
        group_limit=limit, submitted=f"2026-11-21T09:30:0{NAMES.index(name)}.000Z",
    )  # fmt: skip
    assert exchange.create(asked, exchanges.RESULT, origin=ORIGIN)


class World:
    """Jobs of one group, and a reconciler that looks at each of them when it is told to."""

    def __init__(self, root: Path) -> None:
        self.exchange = FileExchange(root, is_private=False)
        for name in NAMES:
            submit(self.exchange, name)
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
