"""Kueue's local queues: a flavor may name one, in which its Jobs wait, suspended."""

from __future__ import annotations

from ...domain.errors import Refused
from ...domain.state import Placement
from .records import JobRecord

KUEUE = "kueue.x-k8s.io"
"""Its API group, which is there where it is installed."""
_HINT = (
    "Choose another flavor, or ask your administrator: Kueue is installed, or `queue` taken out of "
    "the flavor in the catalog."
)


def refuse_queue(flavor: str, queue: str) -> Refused:
    """Return the error of a flavor whose jobs would wait for a Kueue that is not there."""
    return Refused(
        f"Jobs of the flavor {flavor} wait in the queue {queue!r} of Kueue, and this cluster has "
        "no Kueue.",
        _HINT,
    )


def why_suspended(queue: str) -> str:
    """Return why a Job is suspended, as the end of a sentence. `queue` is "" without one."""
    if queue:
        return f"it waits in the queue {queue!r} of Kueue"
    return (
        "its Kubernetes Job is suspended, because Kueue or another controller manages Jobs without "
        "a queue here"
    )


def placement_of_suspended(record: JobRecord, *, lacks_kueue: bool) -> Placement:
    """Return where a job stands whose Job is suspended: it has no pod, and no event may say why."""
    why = why_suspended(record.queue)
    why = why[0].upper() + why[1:]
    if not record.queue:
        message = (
            f"{why}. Cancel it, and submit it again once your administrator has given the flavor a "
            "`queue`."
        )
        return Placement(reason="BackendError", message=message)
    if lacks_kueue:
        message = (
            f"{why}, and this cluster has no Kueue by now. Cancel it and choose another flavor, or "
            "ask your administrator."
        )
        return Placement(reason="BackendError", message=message)
    return Placement(message=f"{why}.")
