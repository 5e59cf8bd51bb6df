"""The Kubernetes backend as the service sees it: a queue of the reconciler, and its records."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from decimal import Decimal
from pathlib import Path

from ...domain.errors import JobsError, Unavailable
from ...domain.state import Placement
from ...exchange import Request
from .records import PodRecord
from .refusals import WORD_OF_CLUSTER, explain_refusal


class KubernetesBackend:
    """Implements `backends.port.Backend`.

    `poke` puts a job into the reconciler's queue, from any thread; `find_placement` returns what it
    knows of a job that waits.
    """

    name = "kubernetes"
    has_queue = False

    def __init__(
        self, poke: Callable[[str], None], find_placement: Callable[[str], Placement | None]
    ) -> None:
        self._poke = poke
        self._find_placement = find_placement

    def admit(self, demand: Mapping[str, Decimal]) -> None:
        """See the port: the scheduler decides what fits."""

    def notify(self, *jobs: str) -> None:
        """See the port."""
        for job in jobs:
            self._poke(job)

    def alive(self, job: str, attempt: Path) -> bool:  # noqa: ARG002
        """See the port: only the reconciler declares an attempt dead, by writing its outcome."""
        return True

    def queue_status(self, waiting: Mapping[str, Request]) -> Mapping[str, Placement]:
        """See the port."""
        placements = {name: self._find_placement(name) for name in waiting}
        return {name: placement for name, placement in placements.items() if placement is not None}

    def resources(self) -> None:
        """See the port: only the cluster's scheduler knows that."""


_IMAGE_ERRORS = (
    "ErrImagePull",
    "ImagePullBackOff",
    "ErrImageNeverPull",
    "ImageInspectError",
    "InvalidImageName",
    "RegistryUnavailable",
    "SignatureValidationFailed",
)
"""What a node says of a container that waits for its image, from the kubelet's source."""


def waiting_reason(pod: PodRecord) -> str | None:
    """Return the job's reason for what keeps a pod from starting, None if that is nothing odd.

    The record of a pod on a node has no `waiting` for a pull that goes on. So whatever it has is an
    error, also one that is not known here.
    """
    if not pod.scheduled:
        return "Unschedulable" if pod.waiting == "Unschedulable" else None
    if pod.waiting in _IMAGE_ERRORS:
        return "ImageUnavailable"
    return "BackendError" if pod.waiting else None


def placement_of(pod: PodRecord) -> Placement:
    """Return the placement of a pod that has not started its run."""
    reason = waiting_reason(pod)
    message = pod.waiting_message or None if reason else None
    return Placement(starting=pod.scheduled, reason=reason, message=message)


def placement_of_refusal(answer: str) -> Placement:
    """Return where a job stands whose Job, or whose pod, the cluster refuses: it is tried again."""
    refusal = explain_refusal(answer)
    return Placement(reason=refusal.reason, message=refusal.sentence)


def placement_of_error(error: JobsError) -> Placement:
    """Return where a job stands whose Job cannot be made now, by the cluster's word or ours."""
    if isinstance(error, Unavailable):
        message = f"{error.message.rstrip('.')}. It is tried again."
        return Placement(reason="BackendError", message=message)
    if error.message.startswith(WORD_OF_CLUSTER):
        return placement_of_refusal(error.message)
    return Placement(reason="BackendError", message=str(error))
