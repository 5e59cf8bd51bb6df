"""Records of Jobs and pods: the few fields that the reconciler decides by."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

from job_runner.protocol import times

from ...domain.job import ClusterEvent

PREFIX = "jupyter-to-job.io"
JOB_LABEL = f"{PREFIX}/job"
NONCE = f"{PREFIX}/nonce"
"""An annotation of the Job: a secret of its job's origin.json until then, so nobody forges it."""
REQUEST_ID = f"{PREFIX}/request-id"
"""An annotation of Jobs and pods: the id by which log lines about the job are found."""
NOTEBOOK = "notebook"
AGENT = "agent"
"""Names of the two containers of a job pod."""
COURIER = "courier"
"""Name of the container of a courier's pod."""
_OURS = (NOTEBOOK, AGENT, COURIER)
QUEUE_LABEL = "kueue.x-k8s.io/queue-name"
"""Kueue's label of a Job: the local queue in which it waits."""
COMPONENT = "app.kubernetes.io/component"
"""The label that tells the Jobs of couriers from those that run jobs."""

MAX_EVENT = 1024
"""Characters of an event's message: Kubernetes' own are no longer, those of others may be."""

Manifest = dict[str, Any]


@dataclass(frozen=True)
class JobRecord:
    """A Kubernetes Job with our label. `nonce` is what the controller gave the Job that it made.

    `message` says why it failed. `courier_of` is the job that it delivers, "" if it runs one. A
    `suspended` one gets no pods; `queue` is the queue of Kueue that it waits in, "" without one.
    """

    namespace: str
    name: str
    uid: str
    finished: bool
    message: str = ""
    nonce: str = ""
    deleting: bool = False
    courier_of: str = ""
    suspended: bool = False
    queue: str = ""


@dataclass(frozen=True)
class ContainerEnd:
    """How a container of a pod ended."""

    exit_code: int
    reason: str
    message: str


@dataclass(frozen=True)
class RefusalRecord:
    """An event of a Job whose pod was refused, as by a quota: why.

    `uid` is the event's. `last_time` is when it happened last, in unix time.
    """

    namespace: str
    name: str
    uid: str
    job_uid: str
    message: str
    last_time: float = 0.0


@dataclass(frozen=True)
class PodRecord:
    """A job pod. `job_uid` is the Job that made it, "" for a pod that only carries our label.

    `reason` is the pod's own (Evicted, DeadlineExceeded); `disruption` that of the cluster which
    ends or has ended it (EvictionByEvictionAPI, ...), "" without one; `waiting` why it waits.
    `begun`: its main container has started, the notebook's or the courier's; `ended` is how that
    ended, `failed_init` the name of an init container that failed before it, and how.
    `deletion_grace` is how many seconds a pod has that is being deleted. `gone`: it was removed;
    `lost`: its node is away, and nothing more is heard of it; `lingers`: it has one of these two
    ends for a while, and its agent has not ended. `created` is unix time. `has_foreign_containers`:
    some that others put into it run, such as a proxy.
    """

    namespace: str
    name: str
    uid: str
    job: str
    job_uid: str
    phase: str
    reason: str
    message: str
    disruption: str
    node: str
    deleting: bool
    deletion_grace: int
    created: float
    scheduled: bool
    begun: bool
    waiting: str
    waiting_message: str
    ended: ContainerEnd | None
    failed_init: tuple[str, ContainerEnd] | None = None
    has_foreign_containers: bool = False
    gone: bool = False
    lost: bool = False
    lingers: bool = False

    @property
    def terminal(self) -> bool:
        """Whether no container of the pod runs any more."""
        return self.phase in ("Succeeded", "Failed")

    @property
    def is_over(self) -> bool:
        """Whether nothing more is heard of the pod: its containers have ended, or it is away."""
        return self.terminal or self.gone or self.lost


def job_record(document: Manifest) -> JobRecord:
    """Project a Job as the API answers it."""
    metadata = document["metadata"]
    labels = metadata.get("labels") or {}
    conditions = document.get("status", {}).get("conditions") or []
    ends = [c for c in conditions if c["type"] in _JOB_ENDS and c["status"] == "True"]
    return JobRecord(
        namespace=metadata["namespace"],
        name=metadata["name"],
        uid=metadata["uid"],
        finished=bool(ends),
        message=next((c.get("message", "") for c in ends), ""),
        nonce=(metadata.get("annotations") or {}).get(NONCE, ""),
        deleting="deletionTimestamp" in metadata,
        courier_of=labels[JOB_LABEL] if labels.get(COMPONENT) == COURIER else "",
        suspended=bool(document.get("spec", {}).get("suspend")),
        queue=labels.get(QUEUE_LABEL, ""),
    )


def pod_record(document: Manifest) -> PodRecord:
    """Project a pod as the API answers it."""
    metadata, status = document["metadata"], document.get("status", {})
    conditions = {c["type"]: c for c in status.get("conditions") or []}
    scheduled: Manifest = conditions.get("PodScheduled", {})
    disruption: Manifest = conditions.get("DisruptionTarget", {})
    states = {
        c["name"]: c.get("state", {})
        for c in [*status.get("initContainerStatuses", []), *status.get("containerStatuses", [])]
    }
    waits = [s["waiting"] for s in states.values() if s.get("waiting")]
    # A pod restarts sidecars only. Once all have begun, the job goes on beside one that crashes.
    has_begun = conditions.get("Initialized", {}).get("status") == "True"
    normal = {*_NORMAL, "CrashLoopBackOff"} if has_begun else _NORMAL
    waiting: Manifest = next((w for w in waits if w.get("reason") not in normal), {})
    if scheduled.get("status") == "False":
        waiting = scheduled
    main = states.get(NOTEBOOK) or states.get(COURIER, {})
    ended = main.get("terminated")
    others = [c for c in status.get("containerStatuses", []) if c["name"] not in _OURS]
    return PodRecord(
        namespace=metadata["namespace"],
        name=metadata["name"],
        uid=metadata["uid"],
        job=metadata["labels"][JOB_LABEL],
        job_uid=job_uid_of(document),
        phase=status.get("phase", "Pending"),
        reason=status.get("reason", ""),
        message=status.get("message") or disruption.get("message", ""),
        disruption=disruption.get("reason", "") if disruption.get("status") == "True" else "",
        node=document.get("spec", {}).get("nodeName", ""),
        deleting="deletionTimestamp" in metadata,
        deletion_grace=metadata.get("deletionGracePeriodSeconds") or 0,
        created=_unix_time(metadata.get("creationTimestamp")),
        begun=bool({"running", "terminated"} & main.keys()),
        scheduled=scheduled.get("status") == "True",
        waiting=waiting.get("reason", ""),
        waiting_message=waiting.get("message", ""),
        ended=_ended(ended) if ended else None,
        failed_init=_failed_init(document.get("spec", {}), states),
        has_foreign_containers=any("running" in c.get("state", {}) for c in others),
    )


def refusal_record(document: Manifest) -> RefusalRecord:
    """Project an event of a Job as the API answers it."""
    metadata, job = document["metadata"], document["involvedObject"]
    return RefusalRecord(
        namespace=metadata["namespace"],
        name=job["name"],
        uid=metadata["uid"],
        job_uid=job.get("uid", ""),
        message=document.get("message", ""),
        last_time=_last_time(document).timestamp(),
    )


def cluster_event(document: Manifest) -> ClusterEvent:
    """Project an event of a Job or a pod as the API answers it."""
    return ClusterEvent(
        time=times.rfc3339(_last_time(document)),
        reason=document.get("reason") or "",
        message=(document.get("message") or "")[:MAX_EVENT],
    )


def _last_time(event: Manifest) -> datetime:
    """Return when an event happened last.

    Which of its times it has depends on who recorded it, and by which of two interfaces.
    """
    moments = (
        (event.get("series") or {}).get("lastObservedTime"),
        event.get("lastTimestamp"),
        event.get("eventTime"),
        event.get("firstTimestamp"),
        event["metadata"]["creationTimestamp"],
    )
    return times.parse(next(filter(None, moments)))


def job_uid_of(pod: Manifest) -> str:
    """Return the uid of the Job that made a pod, "" if none did."""
    owners = pod["metadata"].get("ownerReferences") or []
    jobs = [o["uid"] for o in owners if o.get("controller") and o.get("kind") == "Job"]
    return str(jobs[0]) if jobs else ""


class ClaimNode(NamedTuple):
    """The node of a pod that names a claim. The least of them is the surest.

    A pod that runs has the claim mounted; another one may be stuck because it has not.
    """

    is_doubtful: bool
    node: str


def claim_node(pod: Manifest, claim: str) -> ClaimNode | None:
    """Return the node of a pod that has a claim mounted, or is about to; None for any other pod."""
    spec, phase = pod["spec"], pod.get("status", {}).get("phase")
    sources = (v.get("persistentVolumeClaim") or {} for v in spec.get("volumes") or [])
    is_over = phase in ("Succeeded", "Failed")
    if is_over or not spec.get("nodeName") or claim not in (s.get("claimName") for s in sources):
        return None
    is_doubtful = phase != "Running" or "deletionTimestamp" in pod["metadata"]
    return ClaimNode(is_doubtful, spec["nodeName"])


def _unix_time(text: str | None) -> float:
    return 0.0 if text is None else times.parse(text).timestamp()


_JOB_ENDS = ("Complete", "Failed")
_NORMAL = ("ContainerCreating", "PodInitializing")


def _ended(terminated: Manifest) -> ContainerEnd:
    return ContainerEnd(
        int(terminated.get("exitCode", -1)),
        terminated.get("reason", ""),
        terminated.get("message", ""),
    )


def _failed_init(spec: Manifest, states: dict[str, Manifest]) -> tuple[str, ContainerEnd] | None:
    """Return name and end of the init container that failed. A sidecar's end is no failure."""
    for container in spec.get("initContainers") or []:
        ended = states.get(container["name"], {}).get("terminated")
        if ended and ended.get("exitCode") != 0 and container.get("restartPolicy") != "Always":
            return container["name"], _ended(ended)
    return None
