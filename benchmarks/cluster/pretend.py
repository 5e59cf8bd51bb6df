"""A cluster without a cluster: every token is taken at its word, and the running jobs' pods run."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import Any

from jupyter_to_job.backends.kubernetes import JobRecord, PodRecord
from jupyter_to_job.backends.kubernetes.records import (
    JOB_LABEL,
    RefusalRecord,
    job_record,
    pod_record,
)
from jupyter_to_job.controller.callers.identity import AgentPod, DevPod, Identity
from jupyter_to_job.domain.errors import Refused

from .record import NAMESPACE


class PretendIdentities:
    """Takes `dev:<owner>` for a dev pod's token, and `agent:<job>` for one of a job's agent."""

    async def authenticate(self, token: str) -> Identity:
        """Return the caller that a token names."""
        kind, _, name = token.partition(":")
        if kind == "dev":
            return DevPod(name, {})
        if kind == "agent":
            return AgentPod(name, f"pod-of-{name}")
        raise Refused("This token names nobody.")


class PretendInformer:
    """Has the same records for ever."""

    def __init__(self, records: dict[tuple[str, str], Any]) -> None:
        self.records = records
        self.synced = asyncio.Event()
        self.synced.set()

    async def run(self) -> None:
        """Wait for ever."""
        await asyncio.Event().wait()


class PretendCluster:
    """Has a Job and a running pod for each of `jobs`."""

    def __init__(self, jobs: Iterable[str]) -> None:
        self._names = tuple(jobs)

    def jobs(
        self,
        _: str | None,
        on_change: Callable[[JobRecord], None],  # noqa: ARG002
    ) -> PretendInformer:
        """Return the Jobs by namespace and name."""
        documents = [{"metadata": _metadata(name, f"job-of-{name}")} for name in self._names]
        records = map(job_record, documents)
        return PretendInformer({(record.namespace, record.name): record for record in records})

    def pods(
        self,
        _: str | None,
        on_change: Callable[[PodRecord], None],  # noqa: ARG002
    ) -> PretendInformer:
        """Return the pods by namespace and uid."""
        records = [pod_record(_pod(name)) for name in self._names]
        return PretendInformer({(record.namespace, record.uid): record for record in records})

    def refusals(
        self,
        _: str | None,
        on_change: Callable[[RefusalRecord], None],  # noqa: ARG002
    ) -> PretendInformer:
        """Return no events."""
        return PretendInformer({})


def _pod(name: str) -> dict[str, Any]:
    made_by = {"kind": "Job", "controller": True, "uid": f"job-of-{name}"}
    scheduled = {"type": "PodScheduled", "status": "True"}
    return {
        "metadata": {**_metadata(name, f"pod-of-{name}"), "ownerReferences": [made_by]},
        "status": {"phase": "Running", "conditions": [scheduled]},
    }


def _metadata(name: str, uid: str) -> dict[str, Any]:
    return {"namespace": NAMESPACE, "name": name, "uid": uid, "labels": {JOB_LABEL: name}}
