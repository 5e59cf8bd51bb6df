"""The manifest of a courier, a pure function: a Job with one pod that mounts the owner's claim.

It is a Job because the controller may create Jobs and no pods, and because a policy keeps Jobs with
our label ours.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ... import logs
from ...backends.kubernetes.agent_patch import with_agent_patch
from ...backends.kubernetes.manifest import (
    AUDIENCE,
    TOKEN_FOLDER,
    catalog_image,
    log_variables,
    trust_variables,
)
from ...backends.kubernetes.nodes import OPERATING_SYSTEM, selector_of
from ...backends.kubernetes.records import COMPONENT, COURIER, JOB_LABEL, REQUEST_ID, Manifest
from ...exchange import Request
from .place import Place

if TYPE_CHECKING:
    from ...wiring import Settings

DEADLINE_SECONDS = 1800
"""How long a courier may take: ten gigabytes in thirty minutes are six megabytes a second."""
WORKSPACE = "courier-workspace"
"""Name of the volume with the result's folder, which no volume of a pod patch has."""
TTL_SECONDS = 300
"""The controller deletes a courier's Job itself: this is for the time when it does not run."""


@dataclass(frozen=True)
class CourierPods:
    """The settings that all couriers of a controller have in common.

    `patience` is how many seconds a dev pod has for a result before a courier is started, and
    `start_limit` how many a courier has for its start. `patch` returns the administrator's patch of
    job pods, and `gateway_ca` the certificates that couriers trust, as agents do. `log_format` is
    that of couriers.
    """

    image: str
    gateway_url: str
    patience: float = 60.0
    start_limit: float = 600.0
    image_pull_policy: str = "IfNotPresent"
    patch: Callable[[], Manifest] = dict
    log_format: str = logs.TEXT
    gateway_ca: Callable[[], str] = str

    @classmethod
    def of(cls, settings: Settings, patch: Callable[[], Manifest], start_limit: int) -> CourierPods:
        """Return what the settings say, with the patch in force. A `start_limit` of 0 is none."""
        image, url = settings.agent_image, settings.gateway_url
        patience, log_format = settings.courier_patience(), settings.log_format
        limit = start_limit or DEADLINE_SECONDS
        return cls(image, url, patience, limit, patch=patch, log_format=log_format)


def courier_name(job: str) -> str:
    """Return a new name: each courier has its own, and none is the name of a job."""
    return f"{job}-c{secrets.token_hex(2)}"


def courier_manifest(
    name: str, request: Request, origin: Manifest, place: Place, pods: CourierPods
) -> Manifest:
    """Return the batch/v1 Job that delivers the result of the job of `request` at `place`.

    Raises BadInput if the administrator's patch has not the form of a pod.
    """
    labels = {JOB_LABEL: request.name, COMPONENT: COURIER}
    metadata: Manifest = {"labels": labels}
    if request.request_id is not None:
        metadata["annotations"] = {REQUEST_ID: request.request_id}
    template = {"metadata": metadata, "spec": _pod(request, origin, place, pods)}
    patch = pods.patch()
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "namespace": origin["namespace"], **metadata},
        "spec": {
            "backoffLimit": 0,
            "ttlSecondsAfterFinished": TTL_SECONDS,
            "template": with_agent_patch(template, patch, place.path) if patch else template,
        },
    }


def _pod(request: Request, origin: Manifest, place: Place, pods: CourierPods) -> Manifest:
    token = {"audience": AUDIENCE, "expirationSeconds": 3600, "path": "token"}
    claim = {"claimName": place.claim}
    spec: Manifest = {
        "restartPolicy": "Never",
        "activeDeadlineSeconds": DEADLINE_SECONDS,
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "serviceAccountName": origin["service_account"],
        "terminationGracePeriodSeconds": 5,
        "securityContext": {
            **place.security_context,
            "runAsNonRoot": True,
            "fsGroupChangePolicy": "OnRootMismatch",
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "imagePullSecrets": origin["image_pull_secrets"],
        "containers": [_container(request, place, pods)],
        "volumes": [
            {"name": WORKSPACE, "persistentVolumeClaim": claim},
            {"name": "token", "projected": {"sources": [{"serviceAccountToken": token}]}},
        ],
        "tolerations": place.tolerations,
    }
    if place.node:
        on_node = {"key": "metadata.name", "operator": "In", "values": [place.node]}
        terms = [{"matchFields": [on_node]}]
        required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
        spec["affinity"] = {"nodeAffinity": required}
        # It has to be this node, whatever else is kept away from there.
        spec["tolerations"] = [*place.tolerations, {"operator": "Exists", "effect": "NoSchedule"}]
    else:
        # Agents ran the same image, beside that of the dev pod, or one that the catalog names.
        by_image = {} if catalog_image(request) else selector_of(origin.get("architecture"))
        spec["nodeSelector"] = {OPERATING_SYSTEM: "linux", **by_image}
    return spec


def _container(request: Request, place: Place, pods: CourierPods) -> Manifest:
    mount: Manifest = {"name": WORKSPACE, "mountPath": place.path}
    if place.sub_path:
        mount["subPath"] = place.sub_path
    if place.read_only:
        mount["readOnly"] = True
    return {
        "name": COURIER,
        "image": pods.image,
        "imagePullPolicy": pods.image_pull_policy,
        "command": ["python3", "-m", "jupyter_to_job.agent.courier"],
        "args": [
            request.name,
            *("--gateway", pods.gateway_url),
            *("--token-file", f"{TOKEN_FOLDER}/token"),
            *("--root", place.path),
        ],
        "env": [
            {"name": "JUPYTER_TO_JOB_TERMINATION_LOG", "value": "/dev/termination-log"},
            *log_variables(request, pods.log_format),
            *trust_variables(pods.gateway_ca()),
        ],
        "resources": {
            "requests": {"cpu": "50m", "memory": "64Mi"},
            "limits": {"cpu": "1", "memory": "256Mi"},
        },
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
            "readOnlyRootFilesystem": True,
        },
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "volumeMounts": [mount, {"name": "token", "mountPath": TOKEN_FOLDER, "readOnly": True}],
    }
