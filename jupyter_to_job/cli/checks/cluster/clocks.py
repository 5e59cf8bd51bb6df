"""Checks the clocks of the controller and of the nodes against the API server's.

Tokens are refused before and after their time, and users compare the times that jobs tell.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from ....domain.errors import JobsError
from ...display import formats
from ..result import CheckResult, ok, problem, warning
from .api import ClusterApi, Manifest
from .installation import Installation

TOLERATED = 3.0
"""Seconds that clocks may differ: one of them is told in whole seconds."""
TOO_MUCH = 60.0
"""Seconds from which on fresh tokens may be refused."""
_LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
_FIX = "Let the machine follow a time server: chronyc tracking, or timedatectl."


def check(api: ClusterApi, installation: Installation) -> Iterator[CheckResult]:
    """Check each clock that tells the time in what it writes or answers."""
    try:
        theirs = api.seconds_ahead(installation.health_path())
    except JobsError as error:
        yield warning(f"The controller's clock is not known: {error.message}", error.hint)
    else:
        reference = api.seconds_ahead("/version")
        if theirs is not None and reference is not None:
            yield _told("The controller", theirs - reference)
    skews = {
        lease["metadata"]["name"]: skew
        for lease in api.items(_LEASES)
        if (skew := _skew(lease)) is not None
    }
    wrong = {name: skew for name, skew in skews.items() if abs(skew) > TOLERATED}
    for name, skew in sorted(wrong.items()):
        yield _told(f"The node {name}", skew)
    if skews and not wrong:
        count = formats.plural(len(skews), "node")
        yield ok(f"{count} and the API server agree on the time, within {TOLERATED:g} s")


def _skew(lease: Manifest) -> float | None:
    """Return how far a node's clock is ahead, by its last heartbeat; None if it does not tell.

    The kubelet writes its own time, and the API server beside it when that was written.
    """
    renewed = lease.get("spec", {}).get("renewTime")
    written = [
        entry.get("time")
        for entry in lease["metadata"].get("managedFields") or ()
        if "f:renewTime" in entry.get("fieldsV1", {}).get("f:spec", {})
    ]
    if not renewed or not written or not written[0]:
        return None
    return (_time(renewed) - _time(written[0])).total_seconds() - 0.5  # the latter is cut off


def _time(text: str) -> datetime:
    return datetime.fromisoformat(text.replace("Z", "+00:00"))


def _told(machine: str, skew: float) -> CheckResult:
    side = "ahead of" if skew > 0 else "behind"
    if abs(skew) <= TOLERATED:
        return ok(f"{machine} and the API server agree on the time, within {TOLERATED:g} s")
    message = f"{machine} is {abs(skew):.0f} s {side} the API server."
    return problem(message, _FIX) if abs(skew) > TOO_MUCH else warning(message, _FIX)
