"""Jobs that begin in a queue of Kueue: held back where it is not, and never without a word."""

from __future__ import annotations

from ...backends.kubernetes.queues import placement_of_suspended, refuse_queue
from ...domain.errors import Unavailable
from ...domain.state import Placement
from ...exchange import Request
from ...exchange.records import ClusterJob
from ..cluster.api_groups import ApiGroups
from ..cluster.job_objects import JobObjects


def require_queue(request: Request, groups: ApiGroups) -> None:
    """Raise Refused for a job that would wait for a Kueue that is not there.

    Raises Unavailable until that is known.
    """
    queue = request.flavor_spec.get("queue")
    if not queue:
        return
    if groups.is_starting():
        raise Unavailable("Whether Kueue is installed is not known yet.", "It is tried again.")
    if groups.lacks_kueue():
        raise refuse_queue(request.flavor, queue)


def suspended_placement(
    job: ClusterJob, objects: JobObjects, groups: ApiGroups
) -> Placement | None:
    """Return where a job stands whose Job is suspended; None if it is not."""
    record = objects.record_of(job)
    if record is None or not record.suspended or record.finished:
        return None
    return placement_of_suspended(record, lacks_kueue=groups.lacks_kueue())
