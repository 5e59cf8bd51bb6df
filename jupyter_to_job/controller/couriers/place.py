"""Where a result goes, by the origin.json of its job: the volume, and who may write there.

The dev pod may be gone. So all of this is read of it at submission, once.
"""

from __future__ import annotations

import posixpath
from dataclasses import dataclass, field

from ...backends.kubernetes import explain_refusal
from ...backends.kubernetes.mounts import mount_of
from ...backends.kubernetes.records import Manifest
from ...domain.errors import CannotDeliver, JobsError
from ...exchange import Request

SHARED = "ReadWriteMany"
_LATER = "It is tried again later. A dev pod that has the folder delivers it at once."
_NEVER = "The result can be read until its retention is over, and the job run again."


def never(message: str) -> CannotDeliver:
    """Return why nobody can ever deliver a result."""
    return CannotDeliver(message, _NEVER, is_final=True)


def cannot_start(why: str) -> CannotDeliver:
    """Return why no courier can be started now."""
    return CannotDeliver(f"No courier can be started: {why}", _LATER)


def refused(error: JobsError) -> CannotDeliver:
    """Return why no courier can be started, by the cluster's answer."""
    return cannot_start(explain_refusal(error.message).message)


@dataclass(frozen=True)
class Place:
    """A mounted claim of a dev pod, and the user who writes there.

    `path` is where it is mounted, in the courier as in the dev pod; `sub_path` is what of it.
    `node`: the only node on which a pod can have the claim now, "" for any.
    """

    claim: str
    claim_uid: str
    path: str
    sub_path: str
    read_only: bool
    security_context: Manifest
    tolerations: list[Manifest] = field(default_factory=list)
    node: str = ""


def folder_of(request: Request) -> str:
    """Return the absolute folder in which a job's result appears, on the dev pod's side."""
    if request.output is None:
        return posixpath.dirname(request.source)
    output = posixpath.join(request.workspace, request.output)
    return output if output.endswith("/") else posixpath.dirname(output)


def claim_mount_of(request: Request, origin: Manifest) -> Manifest | None:
    """Return the mount of a claim that a result's folder is on; None if only the dev pod has it."""
    mount = mount_of(origin, folder_of(request))
    return mount if mount is not None and mount.get("claim_uid") else None


def place_at(mount: Manifest, origin: Manifest) -> Place:
    """Return where a courier delivers that has this mount of the dev pod.

    Raises CannotDeliver where no courier can have it, or write as the user does.
    """
    if mount.get("sub_path") is None:
        raise CannotDeliver(
            f"The dev pod mounts {mount['path']} with a subPathExpr, which only its node knows: no "
            "courier can mount the same.",
            "A dev pod that has the volume delivers it.",
        )
    context: Manifest = origin.get("security_context") or {}
    if not context.get("runAsUser"):
        user = "runs as root" if context.get("runAsUser") == 0 else "names no runAsUser"
        raise CannotDeliver(
            f"The dev pod {user}: no courier can write as its user.",
            "A dev pod that has the volume delivers it.",
        )
    return Place(
        claim=mount["claim"],
        claim_uid=mount["claim_uid"],
        path=mount["path"],
        sub_path=mount["sub_path"],
        read_only=mount["read_only"],
        security_context=context,
        tolerations=origin.get("tolerations") or [],
    )
