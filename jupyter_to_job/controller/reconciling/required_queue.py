"""Jobs that begin in a queue of Kueue: held back where it is not, and never without a word."""

from __future__ import annotations

from ...backends.kubernetes.kueue import refuse_queue
from ...domain.errors import Unavailable
from ...exchange import Request
from ..cluster.api_groups import ApiGroups


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
