"""Where a job stands that does not run: what its pod waits for, or why it has none."""

from __future__ import annotations

from dataclasses import replace

from ...backends.kubernetes import PodRecord, placement_of, placement_of_refusal
from ...backends.kubernetes.kueue import placement_of_suspended
from ...domain.state import Placement
from ...exchange.records import ClusterJob
from ..cluster.api_groups import ApiGroups
from ..cluster.job_objects import JobObjects


def find_placement(
    job: ClusterJob, pod: PodRecord | None, objects: JobObjects, groups: ApiGroups
) -> Placement | None:
    """Return where a job stands, by its Job on record and its pod; None if nothing is known yet.

    A job is held whose pod is over while no other pod can come: nothing of it runs meanwhile.
    """
    if pod is not None and not pod.is_over:
        return placement_of(pod)
    waits = _without_pod(job, pod, objects, groups)
    if pod is None:
        return waits
    return placement_of(pod) if waits is None else replace(waits, interrupted=True)


def _without_pod(
    job: ClusterJob, last_pod: PodRecord | None, objects: JobObjects, groups: ApiGroups
) -> Placement | None:
    """Return why a Job has no pod, or none after its last; None if it has ended, or gets one."""
    record = objects.record_of(job)
    if record is not None and record.finished:
        return None
    if record is not None and record.suspended:
        return placement_of_suspended(record, lacks_kueue=groups.lacks_kueue())
    refusal = objects.refusal_of(job, last_pod.created if last_pod is not None else 0.0)
    return placement_of_refusal(refusal) if refusal else None
