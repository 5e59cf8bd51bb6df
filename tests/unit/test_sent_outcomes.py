"""The second step of an end: the controller puts the result together, then the job is ended."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

from job_runner.protocol import documents, layout
from job_runner.protocol.outcome import Outcome, read_outcome
from jupyter_to_job.backends.kubernetes import JobPods
from jupyter_to_job.controller.reconciling.reconciler import Reconciler
from jupyter_to_job.exchange import FileExchange

from . import exchanges

JOB = "train-abcdefgh"


class EmptyInformer:
    """Knows of no objects: all Jobs and pods are gone."""

    def __init__(self) -> None:
        self.records: dict[str, Any] = {}
        self.synced = asyncio.Event()
        self.synced.set()

    async def run(self) -> None:
        """Wait for ever."""
        await asyncio.Event().wait()


class EmptyCluster:
    """A cluster in which nothing is left of a job."""

    def jobs(self, _: str | None, on_change: Callable[..., None]) -> EmptyInformer:
        return EmptyInformer()

    pods = refusals = jobs


def test_a_sent_outcome_counts_though_its_pod_and_job_are_gone(tmp_path: Path) -> None:
    """As after a restart of the controller between the two steps."""
    exchange = FileExchange(tmp_path / "exchange")
    exchanges.add(exchange, JOB, owner="ada")
    attempt = exchange.directory(JOB) / "attempt-1"
    (attempt / layout.JOURNAL).mkdir(parents=True)
    documents.write_document(attempt / layout.RUNNER, {"pod": "pod-1"})
    sent = Outcome(
        "succeeded", None, None, 0, {"done": 1, "total": 1}, None, exchanges.ENDED, {}, "0" * 64
    )
    documents.write_document(attempt / layout.SENT_OUTCOME, vars(sent))

    async def run() -> None:
        pods = JobPods("image", "url")
        cluster: Any = EmptyCluster()
        reconciler = Reconciler(cluster, exchange, pods, frozenset([""]), lambda _: None)
        task = asyncio.create_task(reconciler.run())
        deadline = asyncio.get_running_loop().time() + 120
        while read_outcome(attempt) is None and asyncio.get_running_loop().time() < deadline:
            await asyncio.sleep(0.05)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    asyncio.run(run())
    outcome = read_outcome(attempt)
    assert outcome is not None
    assert (outcome.state, outcome.reason, outcome.message) == ("succeeded", None, None)
    assert (attempt / layout.RESULT).is_file()
