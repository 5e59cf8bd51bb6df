"""The reconciler while the API server takes long to create Jobs, as with a webhook that hangs."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from job_runner.protocol import documents, layout, times
from job_runner.protocol.outcome import read_outcome
from jupyter_to_job.controller.reconciling import reconciler as reconciler_module
from jupyter_to_job.controller.reconciling.create_limit import CreateLimit
from jupyter_to_job.controller.reconciling.reconciler import Reconciler

from .test_groups_on_a_cluster import submit, until
from .test_reconciler import NAME, Life

SWEEP = [f"run-{first}{second}aaaaaa" for first in "abcde" for second in "abcdefghij"]
CREATES = 8
"""Jobs that are being created at a time."""


class HangingCreates:
    """Holds each create of a Job until `answer` is set."""

    def __init__(self, life: Life) -> None:
        self._create_job = life.cluster.create_job
        life.cluster.create_job = self._hang  # type: ignore[method-assign]
        self.answer = asyncio.Event()
        self.creating: set[str] = set()
        self.most = 0
        self.created: list[str] = []

    async def _hang(self, manifest: Any) -> str:
        name = manifest["metadata"]["name"]
        self.creating.add(name)
        self.most = max(self.most, len(self.creating))
        await self.answer.wait()
        self.creating.discard(name)
        self.created.append(name)
        return await self._create_job(manifest)


@asynccontextmanager
async def running(reconciler: Reconciler) -> AsyncIterator[None]:
    task = asyncio.create_task(reconciler.run())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def cancel(life: Life, name: str) -> None:
    """Cancel a job as the gateway does."""
    directory = life.exchange.directory(name)
    documents.write_document_once(directory / layout.CANCEL, {"time": times.now()})
    life.reconciler.enqueue(name)


def has_ended(life: Life, name: str) -> bool:
    return read_outcome(life.exchange.directory(name) / "attempt-1") is not None


@pytest.fixture(autouse=True)
def _no_resync(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whose turn it is must not depend on the look at all jobs."""
    monkeypatch.setattr(reconciler_module, "RESYNC_INTERVAL", 3600.0)


def test_creates_that_hang_hold_up_nothing_else(tmp_path: Path) -> None:
    async def live() -> None:
        life = Life(tmp_path, 0)
        await life.settle()
        for step in (life._watch_jobs, life._pod, life._schedule, life._claim, life._watch_pods):
            step()
        assert layout.attempts(life.directory) == [1]
        for number, name in enumerate(SWEEP):
            submit(life.exchange, name, number, limit=None)
        creates = HangingCreates(life)
        async with running(life.reconciler):
            await until(lambda: len(creates.creating) == CREATES)
            cancelled = [name for name in SWEEP if name not in creates.creating][::2]
            for name in (NAME, *cancelled):
                cancel(life, name)
            await until(lambda: life._any_pod(deleting=True))
            life._end()
            life._watch_pods()
            await until(lambda: all(has_ended(life, name) for name in (NAME, *cancelled)))
            assert creates.created == []
            creates.answer.set()
            await until(lambda: len(creates.created) == len(SWEEP) - len(cancelled))
        assert set(creates.created) == set(SWEEP) - set(cancelled)
        assert creates.most == CREATES

    asyncio.run(live())


def test_places_are_given_in_order() -> None:
    enqueued: list[str] = []
    limit = CreateLimit(enqueued.append)
    first, second, third, *_ = SWEEP[CREATES:]
    assert all(limit.admit(name) for name in SWEEP[:CREATES])
    assert not any(limit.admit(name) for name in (first, second, first, third))
    limit.release(first)  # a worker is done with it, and it has not created its Job
    assert enqueued == []
    limit.release(SWEEP[0])
    assert enqueued == [first] and not limit.is_waiting(first) and limit.is_waiting(second)
    assert not limit.admit(second) and limit.admit(first)
    limit.release(first)  # it was cancelled
    limit.release(SWEEP[1])
    assert enqueued == [first, second, third]
