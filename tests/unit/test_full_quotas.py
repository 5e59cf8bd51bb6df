"""A quota that is full for now is no error of the controller: none alerts an administrator."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from jupyter_to_job.domain.errors import JobsError, Refused, Unavailable

from .test_reconciler import NAME, Life

FORBIDDEN = "Kubernetes answered 403: "
QUOTA = FORBIDDEN + "exceeded quota: q, requested: {0}=1, used: {0}={1}, limited: {0}={1}"


@pytest.mark.parametrize(
    ("error", "count"),
    [
        (Refused(QUOTA.format("count/jobs.batch", 4)), 0),
        (Refused(f"{FORBIDDEN}exceeded quota: gpus."), 0),
        (Refused(QUOTA.format("count/jobs.batch", 0)), 1),  # it will never have room
        (Refused(f"{FORBIDDEN}failed quota: q: must specify limits.cpu"), 1),
        (Refused(f'{FORBIDDEN}admission webhook "a" denied the request: no'), 1),
        (Unavailable('Kubernetes answered 500: failed calling webhook "a".'), 1),
    ],
)
def test_what_counts_as_an_error(tmp_path: Path, error: JobsError, count: int) -> None:
    async def live() -> None:
        life = Life(tmp_path, 0)
        life.cluster.error = error
        await life.reconciler._try_to_reconcile(NAME)
        assert life.reconciler._queue.is_failing(NAME)  # it is tried again, ever later
        registry = life.reconciler.tracker.metrics.registry
        total = registry.get_sample_value("jupyter_to_job_job_errors_total", {"queue": "jobs"})
        assert total == count

    asyncio.run(live())
