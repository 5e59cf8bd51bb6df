"""Records of Jobs and pods: the few fields that the reconciler decides by."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

PREFIX = "jupyter-to-job.io"
JOB_LABEL = f"{PREFIX}/job"
NOTEBOOK = "notebook"
AGENT = "agent"
"""Names of the two containers of a job pod."""

Manifest = dict[str, Any]


@dataclass(frozen=True)
class JobRecord:
    """A Kubernetes Job of ours."""

    namespace: str
    name: str
    uid: str
    finished: bool


@dataclass(frozen=True)
class ContainerEnd:
    """How the notebook container ended."""

    exit_code: int
    reason: str
    message: str


@dataclass(frozen=True)
class PodRecord:
    """A job pod. `job_uid` is the Job that made it, "" for a pod that only carries our label.

    `reason` is the pod's own (Evicted, DeadlineExceeded); `waiting` why it waits.
    """

    namespace: str
    name: str
    uid: str
    job: str
    job_uid: str
    phase: str
    reason: str
    message: str
    scheduled: bool
    waiting: str
    waiting_message: str
    ended: ContainerEnd | None

    @property
    def terminal(self) -> bool:
        """Whether no container of the pod runs any more."""
        return self.phase in ("Succeeded", "Failed")


def job_record(document: Manifest) -> JobRecord:
    """Project a Job as the API answers it."""
    metadata = document["metadata"]
    conditions = document.get("status", {}).get("conditions") or []
    finished = any(
        c["type"] in ("Complete", "Failed") and c["status"] == "True" for c in conditions
    )
    return JobRecord(metadata["namespace"], metadata["name"], metadata["uid"], finished)


def pod_record(document: Manifest) -> PodRecord:
    """Project a pod as the API answers it."""
    metadata, status = document["metadata"], document.get("status", {})
    conditions = {c["type"]: c for c in status.get("conditions") or []}
    scheduled: Manifest = conditions.get("PodScheduled", {})
    states = {
        c["name"]: c.get("state", {})
        for c in [*status.get("initContainerStatuses", []), *status.get("containerStatuses", [])]
    }
    waits = [s["waiting"] for s in states.values() if s.get("waiting")]
    waiting: Manifest = next((w for w in waits if w.get("reason") not in _NORMAL), {})
    if scheduled.get("status") == "False":
        waiting = scheduled
    ended = states.get(NOTEBOOK, {}).get("terminated")
    return PodRecord(
        namespace=metadata["namespace"],
        name=metadata["name"],
        uid=metadata["uid"],
        job=metadata["labels"][JOB_LABEL],
        job_uid=job_uid_of(document),
        phase=status.get("phase", "Pending"),
        reason=status.get("reason", ""),
        message=status.get("message", ""),
        scheduled=scheduled.get("status") == "True",
        waiting=waiting.get("reason", ""),
        waiting_message=waiting.get("message", ""),
        ended=_ended(ended) if ended else None,
    )


def job_uid_of(pod: Manifest) -> str:
    """Return the uid of the Job that made a pod, "" if none did."""
    owners = pod["metadata"].get("ownerReferences") or []
    jobs = [o["uid"] for o in owners if o.get("controller") and o.get("kind") == "Job"]
    return str(jobs[0]) if jobs else ""


_NORMAL = ("ContainerCreating", "PodInitializing")


def _ended(terminated: Manifest) -> ContainerEnd:
    return ContainerEnd(
        int(terminated.get("exitCode", -1)),
        terminated.get("reason", ""),
        terminated.get("message", ""),
    )
