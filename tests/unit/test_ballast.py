"""A full exchange of a controller: room can be made there, by users and by the retention."""

from __future__ import annotations

import asyncio
import errno
import os
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import httpx
import pytest

from job_runner.protocol import documents, layout, times
from jupyter_to_job.controller.intake import housekeeping
from jupyter_to_job.controller.intake.budgets import Budgets, Caps
from jupyter_to_job.controller.intake.housekeeping import Housekeeping
from jupyter_to_job.controller.metrics import Metrics
from jupyter_to_job.controller.reconciling.reconciler import Reconciler
from jupyter_to_job.dispatcher import tasks
from jupyter_to_job.exchange import FileExchange
from jupyter_to_job.exchange.ballast import release_for_end
from jupyter_to_job.exchange.retention import Policy

from .. import full_disks
from ..gateways import FullCluster, context_of, serving
from ..processes import until
from . import exchanges
from .test_reconciler import PODS, PretendCluster

BALLAST = [4 << 10] * 64
WAITING, OLD, OLDER = "train-abcdabcd", "train-bcdebcde", "train-cdefcdef"


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    with full_disks.small_disk(tmp_path / "disk") as disk:
        yield disk


@pytest.fixture
def exchange(disk: Path) -> FileExchange:
    """An exchange with a job that waits, and two that are delivered, each with its Job."""
    made = FileExchange(disk / "exchange")
    for folder in (
        exchanges.add(made, WAITING, owner="ada"),
        exchanges.settle(made, OLD, owner="ada"),
        exchanges.settle(made, OLDER, owner="ada"),
    ):
        job = {"namespace": "dev", "name": folder.name, "uid": f"u-{folder.name}"}
        documents.write_document(folder / layout.JOB, job)
        documents.write_document(folder / layout.ORIGIN, {"namespace": "dev"})
    with keeping(made, Policy(None)):
        until(lambda: ballast_of(made) == BALLAST, "there is a ballast")
    return made


def ballast_of(exchange: FileExchange) -> list[int]:
    with suppress(FileNotFoundError):  # it is being replaced
        return [path.stat().st_size for path in (exchange.root / ".ballast").iterdir()]
    return []


@contextmanager
def keeping(exchange: FileExchange, policy: Policy) -> Iterator[None]:
    """Keep house as the controller does."""
    house = Housekeeping(exchange, Budgets(exchange, Caps(reserve=0)), policy, Metrics())
    house.start()
    try:
        yield
    finally:
        house.stop()


def reconcile_until(exchange: FileExchange, condition: Callable[[], bool]) -> None:
    """Let a reconciler work on the jobs, whose Jobs are gone."""

    async def reconcile() -> None:
        cluster: Any = PretendCluster()
        reconciler = Reconciler(cluster, exchange, PODS, frozenset(["dev"]), lambda _: None)
        work = asyncio.create_task(reconciler.run())
        await asyncio.to_thread(until, condition, "the reconciler has done its work")
        work.cancel()
        await asyncio.gather(work, return_exceptions=True)

    asyncio.run(reconcile())


@pytest.mark.parametrize("kind", full_disks.FULL_OF)
def test_cancel_and_delete_over_http(exchange: FileExchange, disk: Path, kind: str) -> None:
    with context_of(exchange, backend=FullCluster) as context, serving(context) as url:
        headers = {"Authorization": "Bearer ada"}
        with httpx.Client(base_url=f"{url}/api/jobs/", headers=headers, timeout=30) as client:
            full_disks.fill(disk, kind)
            cancelled = client.post(f"{WAITING}/cancel")
            assert (cancelled.status_code, cancelled.json()["cancel_requested"]) == (202, True)
            for name in (OLD, WAITING):
                assert client.delete(name).status_code == 204
                assert client.get(name).status_code == 404
                assert exchange.has(name, layout.DELETE)  # the controller removes it with its Job
    reconcile_until(exchange, lambda: exchange.jobs() == {OLDER})


@pytest.mark.parametrize("kind", full_disks.FULL_OF)
def test_cancel_takes_the_last_room(exchange: FileExchange, disk: Path, kind: str) -> None:
    """Then the ballast is for the end of the job."""
    full_disks.fill(disk, kind, left=2)
    exchange.write_wish(WAITING, layout.CANCEL, {"time": times.now(), "who": "ada"})
    assert ballast_of(exchange) == BALLAST
    reconcile_until(exchange, lambda: exchange.outcome(WAITING, 1) is not None)


@pytest.mark.parametrize("kind", full_disks.FULL_OF)
def test_delete_where_the_wishes_took_all_room(
    exchange: FileExchange, disk: Path, kind: str
) -> None:
    for wish in (layout.CANCEL, layout.DELETE):
        exchange.write_wish(WAITING, wish, {"time": times.now(), "who": "ada"})
    shutil.rmtree(exchange.root / ".ballast")
    full_disks.fill(disk, kind)
    reconcile_until(exchange, lambda: exchange.jobs() == {OLD, OLDER})


def test_it_stays_where_an_end_fails_for_another_reason(exchange: FileExchange) -> None:
    exchange.write_wish(WAITING, layout.CANCEL, {"time": times.now(), "who": "ada"})
    release_for_end(exchange.root, WAITING)
    assert ballast_of(exchange) == BALLAST


@pytest.mark.parametrize("kind", full_disks.FULL_OF)
def test_retention(exchange: FileExchange, disk: Path, kind: str) -> None:
    full_disks.fill(disk, kind)
    with keeping(exchange, Policy(0)):
        cleared = [exchange.root / name / layout.CLEARED for name in (OLD, OLDER)]
        snapshots = [exchange.root / name / layout.SNAPSHOT for name in (OLD, OLDER)]
        until(lambda: all(path.exists() for path in cleared), "both are cleared")
        until(lambda: not any(path.exists() for path in snapshots), "both are cleared away")


def test_it_is_neither_a_job_nor_a_leftover(exchange: FileExchange) -> None:
    long_ago = time.time() - 7200
    os.utime(exchange.root / ".ballast", (long_ago, long_ago))
    exchange.remove_leftovers()
    assert exchange.jobs() == {WAITING, OLD, OLDER}
    assert ballast_of(exchange) == BALLAST


def test_a_dispatchers_retention_makes_it(exchange: FileExchange) -> None:
    shutil.rmtree(exchange.root / ".ballast")
    tasks.retain(exchange)
    assert ballast_of(exchange) == BALLAST


def test_it_is_made_where_the_blobs_cannot_be_read(
    exchange: FileExchange, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_root: Path) -> int:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(housekeeping, "collect", fail)
    shutil.rmtree(exchange.root / ".ballast")
    with keeping(exchange, Policy(None)):
        until(lambda: ballast_of(exchange) == BALLAST, "it is there")


def test_it_is_completed_where_a_process_was_killed_that_removed_it(exchange: FileExchange) -> None:
    next((exchange.root / ".ballast").iterdir()).unlink()
    with keeping(exchange, Policy(None)):
        until(lambda: ballast_of(exchange) == BALLAST, "it is whole")
