"""Checks the volume of the exchange: bound, of one node at a time, with room."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from job_runner.protocol.units import format_bytes

from ....domain.errors import JobsError, NotFound
from ....domain.quantities import parse_quantity
from ....exchange.disk_use import available_bytes
from ..result import CheckResult, ok, problem, warning
from .api import ClusterApi, Manifest
from .installation import Installation

_ONE_NODE = {"ReadWriteOnce", "ReadWriteOncePod"}
_FULL = 0.1
"""The share of free space below which there is a warning."""


def check(api: ClusterApi, installation: Installation) -> Iterator[CheckResult]:
    """Check the claim of the exchange, its storage class, and its free space."""
    volume = installation.volume_at(installation.setting("exchange"))
    name = (volume[0].get("persistentVolumeClaim") or {}).get("claimName") if volume else None
    if name is None:
        yield problem(
            "The exchange is on no volume claim: all jobs are lost with the controller's pod.",
            "Mount the claim `exchange` of k8s/base/storage.yaml at JUPYTER_TO_JOB_EXCHANGE.",
        )
        return
    try:
        claim = api.get(
            f"/api/v1/namespaces/{installation.namespace}/persistentvolumeclaims/{name}"
        )
    except NotFound:
        yield problem(f"There is no claim {name}.", "Apply k8s/base/storage.yaml.")
        return
    if claim.get("status", {}).get("phase") != "Bound":
        yield _unbound(api, name, claim)
        return
    yield _bound(name, claim)
    yield _space(api, installation, name)


def _unbound(api: ClusterApi, name: str, claim: Manifest) -> CheckResult:
    """Return why a claim may wait for a volume."""
    message = f"The claim {name} is {claim.get('status', {}).get('phase', 'Pending')}"
    storage_class = claim["spec"].get("storageClassName")
    classes = {
        c["metadata"]["name"]: c for c in api.items("/apis/storage.k8s.io/v1/storageclasses")
    }
    if storage_class and storage_class not in classes:
        names = ", ".join(sorted(classes)) or "none"
        return problem(
            f"{message}: there is no storage class {storage_class}.",
            f"Name one that there is ({names}) in a patch of the claim.",
        )
    if not storage_class:
        return problem(
            f"{message}: it names no storage class, and no volume fits it.",
            "Name a storage class in a patch of the claim, or add a volume for it.",
        )
    provisioner = classes[storage_class].get("provisioner")
    return problem(
        f"{message}, of the storage class {storage_class} ({provisioner}).",
        f"kubectl describe -n {claim['metadata']['namespace']} pvc {name}",
    )


def _bound(name: str, claim: Manifest) -> CheckResult:
    modes = claim["status"].get("accessModes") or claim["spec"].get("accessModes") or []
    size = (claim["status"].get("capacity") or {}).get("storage", "?")
    kind = claim["spec"].get("storageClassName") or "no storage class"
    message = f"The claim {name} is bound: {size}, {', '.join(modes)}, {kind}"
    if set(modes) <= _ONE_NODE:
        return ok(message)
    return warning(
        f"{message}. Volumes that many nodes share are mostly network file systems: each small "
        "write waits for the server, and not all of them keep locks.",
        "Use a block volume, ReadWriteOnce.",
    )


def _space(api: ClusterApi, installation: Installation, claim: str) -> CheckResult:
    """Check the free space of the volume, as the kubelet of its node measures it."""
    try:
        volume = _volume_stats(api, installation, claim)
    except JobsError as error:
        return warning(
            f"How much of it is free is not known: {error.message}",
            "An administrator who may `get nodes/proxy` is told.",
        )
    if volume is None:
        return ok("How much of it is free is not told: not by this driver, or not yet")
    free, size = int(volume["availableBytes"]), int(volume["capacityBytes"])
    free_inodes, inodes = int(volume.get("inodesFree", 0)), int(volume.get("inodes", 0))
    amounts = f"{format_bytes(free)} of {format_bytes(size)}"
    remedy = "Enlarge the claim, or shorten JUPYTER_TO_JOB_RETENTION."
    available = available_bytes(free, size, free_inodes, inodes)
    if available < free:
        amounts += f" and {free_inodes} of {inodes} inodes"
        remedy = "Enlarge the claim, or have old jobs deleted: each keeps most of its inodes."
    message = f"{amounts} are free"
    if available < parse_quantity(installation.setting("disk_reserve")):
        return problem(f"Only {message}: no job can be submitted.", remedy)
    return warning(f"Only {message}.", remedy) if available < _FULL * size else ok(message)


def _volume_stats(api: ClusterApi, installation: Installation, claim: str) -> dict[str, Any] | None:
    """Return what the kubelet says of a claim's volume; None if it says nothing."""
    pods = [pod for pod in installation.pods() if pod["spec"].get("nodeName")]
    if not pods:
        return None
    pod = pods[-1]
    path = f"/api/v1/nodes/{pod['spec']['nodeName']}/proxy/stats/summary"
    for pod_stats in api.get(path).get("pods") or ():
        if pod_stats["podRef"]["uid"] == pod["metadata"]["uid"]:
            for volume in pod_stats.get("volume") or ():
                if (volume.get("pvcRef") or {}).get("name") == claim and "capacityBytes" in volume:
                    return dict(volume)
    return None
