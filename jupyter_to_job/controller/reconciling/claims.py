"""Whether the claims that a job mounts are still those of its dev pod.

A pod names a claim, and names come back: a user's claim may have been deleted while the job waited,
and another one, perhaps another user's, be there under its name. That is asked before the Job is
made, when the job can go on waiting, and again before each run begins (`run_admission`).
"""

from __future__ import annotations

from typing import Protocol

from ...backends.kubernetes.records import Manifest
from ...domain.errors import Conflict, NotFound
from ...exchange import Request

_HINT = "Cancel the job, and submit its notebook again from a server that runs now."


class ClaimsCluster(Protocol):
    """The part of the cluster that this needs."""

    async def claim(self, namespace: str, name: str) -> Manifest:
        """Return a persistent volume claim. Raises NotFound."""
        ...

    async def has_namespace(self, namespace: str) -> bool:
        """Tell whether a namespace exists."""
        ...


async def require_same_claims(cluster: ClaimsCluster, request: Request, origin: Manifest) -> None:
    """Raise Conflict if a claim that `request` mounts is gone, or another one by now.

    Raises what `Cluster.claim` does but NotFound. Of a namespace that is gone it says nothing: that
    is told of the whole job.
    """
    mounts = [mount for mount in origin.get("mounts") or [] if mount["path"] in request.mounts]
    for name, uid in {mount["claim"]: mount["claim_uid"] for mount in mounts}.items():
        if not name:
            continue
        try:
            claim = await cluster.claim(origin["namespace"], name)
        except NotFound as error:
            if not await cluster.has_namespace(origin["namespace"]):
                return
            raise Conflict(f"The volume claim {name} is gone.", _HINT) from error
        if claim["metadata"]["uid"] != uid:
            raise Conflict(f"The volume claim {name} is another one by now.", _HINT)
