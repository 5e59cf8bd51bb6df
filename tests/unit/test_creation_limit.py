"""A webhook of the cluster that hangs holds up the creation of Jobs, and nothing else."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from job_runner.protocol import documents, layout, times
from jupyter_to_job.backends.kubernetes import PodRecord
from jupyter_to_job.controller.reconciling import reconciler as reconciler_module
from jupyter_to_job.controller.reconciling.reconciler import WORKERS
from jupyter_to_job.domain.errors import Unavailable

from . import exchanges
from .test_groups_on_a_cluster import until
from .test_reconciler import NAME, ORIGIN, Life

WAITING = [f"wait-{'abcdefghij'[n // 10] * 4}{'abcdefghij'[n % 10] * 4}" for n in range(100)]


class Webhook:
    """Lets no creation of a Job pass until it is `mended`."""

    def __init__(self, life: Life) -> None:
        self._create = life.cluster.create_job
        life.cluster.create_job = self.create_job  # type: ignore[method-assign]
        self.calls: set[str] = set()
        self.most_calls = 0
        self.mended = asyncio.Event()

    async def create_job(self, manifest: Any) -> str:
        name = manifest["metadata"]["name"]
        self.calls.add(name)
        self.most_calls = max(self.most_calls, len(self.calls))
        await self.mended.wait()
        self.calls.discard(name)
        return await self._create(manifest)


@pytest.fixture(autouse=True)
def _one_look_at_all_jobs(monkeypatch: pytest.MonkeyPatch) -> None:
    """No later one may help a job that was forgotten."""
    monkeypatch.setattr(reconciler_module, "RESYNC_INTERVAL", 3600)
    monkeypatch.setattr("os.fsync", lambda _: None)


async def life_with_a_run(root: Path) -> Life:
    """Return a cluster on which one job runs; all others that are submitted have no Job yet."""
    life = Life(root, 0)
    await life.settle()
    life._pod()
    life._schedule()
    life.restart()
    for name in WAITING:
        request = exchanges.request(
            name, backend="kubernetes", demand={"cpu": "1", "memory": "1"},
            flavor_spec={"cpu": "1", "memory": "1Gi"},
        )  # fmt: skip
        assert life.exchange.create(request, exchanges.RESULT, origin=ORIGIN)
    return life


@asynccontextmanager
async def working(life: Life) -> AsyncIterator[None]:
    """Run what looks at jobs by itself."""
    loops = [life.reconciler._resync(), *(life.reconciler._work() for _ in range(WORKERS))]
    tasks = [asyncio.create_task(loop) for loop in loops]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def test_a_cancel_is_not_held_up(tmp_path: Path) -> None:
    async def live() -> None:
        life = await life_with_a_run(tmp_path)
        webhook, deleted_pods = Webhook(life), list[str]()

        async def delete_pod(pod: PodRecord, _grace: int) -> None:
            deleted_pods.append(pod.job)

        life.cluster.delete_pod = delete_pod  # type: ignore[method-assign]
        async with working(life):
            await until(lambda: len(webhook.calls) >= WORKERS // 2)
            documents.write_document_once(life.directory / layout.CANCEL, {"time": times.now()})
            life.reconciler.enqueue(NAME)
            await until(lambda: deleted_pods)
            assert deleted_pods == [NAME] and webhook.calls
            webhook.mended.set()
            await until(lambda: life.cluster.made == 1 + len(WAITING))
        assert webhook.most_calls == WORKERS // 2

    asyncio.run(live())


def test_jobs_that_want_no_job_any_more_hold_up_nobody(tmp_path: Path) -> None:
    """All but the last are cancelled while they wait for their turn."""

    async def live() -> None:
        life = await life_with_a_run(tmp_path)
        webhook = Webhook(life)
        *cancelled, last = WAITING
        async with working(life):
            await until(lambda: len(webhook.calls) >= WORKERS // 2)
            await until(lambda: not life.reconciler._queue._waiting)
            creating = set(webhook.calls)
            for name in set(cancelled) - creating:
                directory = life.exchange.directory(name)
                documents.write_document_once(directory / layout.CANCEL, {"time": times.now()})
            webhook.mended.set()
            await until(lambda: last in life.reconciler._jobs)
            await until(lambda: life.cluster.made == 1 + len({*creating, last}))

    asyncio.run(live())


def test_a_job_that_was_refused_waits_ever_longer(tmp_path: Path) -> None:
    """Its turn is no success, so it does not come back at once."""

    async def live() -> None:
        life = await life_with_a_run(tmp_path)
        webhook = Webhook(life)
        first, *others = WAITING[: 1 + WORKERS // 2]
        life.cluster.error = Unavailable("Kubernetes answered 500: failed calling webhook.")
        webhook.mended.set()
        await life.reconciler._try_to_reconcile(first)
        life.reconciler._creations.release(first)  # as a worker does
        webhook.mended.clear()
        tries = [asyncio.create_task(life.reconciler._try_to_reconcile(name)) for name in others]
        await until(lambda: len(webhook.calls) == len(others))
        await life.reconciler._try_to_reconcile(first)
        assert life.reconciler._queue.is_failing(first)
        webhook.mended.set()
        await asyncio.gather(*tries)

    asyncio.run(live())
