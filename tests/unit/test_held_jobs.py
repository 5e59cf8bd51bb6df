"""Jobs whose run was stopped while no other pod of them can come: they are not said to run."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

from job_runner.protocol import times
from job_runner.protocol.outcome import CellCounts, Outcome, write_outcome
from jupyter_to_job.backends.kubernetes import ContainerEnd, PodRecord
from jupyter_to_job.backends.kubernetes.records import RefusalRecord
from jupyter_to_job.domain.job import State
from jupyter_to_job.domain.state import Placement
from jupyter_to_job.service.reading.view import JobReader

from .test_reconciler import NAME, NAMESPACE, Life


def stopped_run(life: Life) -> PodRecord:
    """Let a job's pod claim an attempt, run, and be drained; return the pod."""
    life._pod()
    life._schedule()
    life._watch_pods()
    life._claim()
    attempt = life.directory / "attempt-1"
    moment = times.now()
    outcome = Outcome(
        "failed",
        "Terminated",
        "It ended.",
        0,
        CellCounts(done=0, total=1),
        moment,
        moment,
        {},
        None,
    )
    write_outcome(attempt, outcome)
    (pod,) = life.cluster.pod_records.values()
    drained: PodRecord = replace(
        pod,
        phase="Failed",
        disruption="EvictionByEvictionAPI",
        ended=ContainerEnd(143, "Error", ""),
    )
    life.cluster.pod_records[NAMESPACE, pod.uid] = drained
    life._watch_pods()
    return drained


def state_of(life: Life) -> tuple[State, str | None]:
    """Return how the job stands for its readers, with what the reconciler knows."""
    placement = life.reconciler.placement_of(NAME) or Placement()
    reader = JobReader(life.exchange, lambda *_: True)
    job = reader.job(life.exchange.request(NAME), placement)
    return job.state, job.reason


def test_a_stopped_run_whose_next_pod_is_refused_does_not_run(tmp_path: Path) -> None:
    async def live() -> None:
        life = Life(tmp_path, 0)
        await life.settle()
        life._watch_jobs()
        pod = stopped_run(life)
        await life.settle()
        assert (
            state_of(life)[0] is State.RUNNING
        )  # its end, or its next pod, is a matter of moments
        (job,) = life.cluster.job_records.values()
        refusal = RefusalRecord(NAMESPACE, NAME, "e", job.uid, "exceeded quota: gpus.")
        life.cluster.refusal_records[NAMESPACE, job.uid] = refusal  # of a time before this pod
        life.cluster.refusal_records.watch()
        assert state_of(life)[0] is State.RUNNING
        life.cluster.refusal_records[NAMESPACE, job.uid] = replace(
            refusal, last_time=pod.created + 1
        )
        life.cluster.refusal_records.watch()
        assert state_of(life) == (State.QUEUED, "QuotaExceeded")
        life.cluster.pod_records[NAMESPACE, "pod-2"] = replace(
            pod, uid="pod-2", phase="Pending", created=pod.created + 2, ended=None, disruption=""
        )
        life._watch_pods()
        await life.settle()
        assert state_of(life)[0] is State.STARTING

    asyncio.run(live())


def test_a_stopped_run_whose_job_waits_in_a_queue_again_does_not_run(tmp_path: Path) -> None:
    async def live() -> None:
        life = Life(tmp_path, 0)
        await life.settle()
        life._watch_jobs()
        stopped_run(life)
        key, job = next(iter(life.cluster.job_records.items()))
        life.cluster.job_records[key] = replace(job, suspended=True, queue="gpus")
        life._watch_jobs()
        await life.settle()
        assert state_of(life) == (State.QUEUED, None)

    asyncio.run(live())
