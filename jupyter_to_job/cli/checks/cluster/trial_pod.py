"""The pod that tries what a dev pod does. It satisfies Pod Security `restricted`.

It has the resources of agents, and their part of the pod patch: what keeps agents from starting, or
from reaching the gateway, keeps this pod from it, too.
"""

from __future__ import annotations

import secrets
from typing import Any

from ....backends.kubernetes.agent_patch import with_agent_patch
from ....backends.kubernetes.manifest import AUDIENCE
from ....backends.kubernetes.sidecars import AGENT_RESOURCES
from .api import Manifest
from .installation import Installation

DEADLINE = 120
"""Seconds after which Kubernetes ends the pod, whatever became of whoever started it."""
TOKEN_FOLDER = "/var/run/secrets/jupyter-to-job"  # noqa: S105 - a folder
_AUTHORITY = "jupyter-to-job.io/gateway-ca"
"""The annotation of which the kubelet makes a file: certificates are no secret."""
_TMP = "doctor-tmp"
"""Name of the volume for temporary files, which no volume of a pod patch has."""
_DOCTOR = "from jupyter_to_job.cli.main import main; main(['doctor', '--json'])"


def trial_pod(installation: Installation, namespace: str) -> Manifest:
    """Return a pod that runs `doctor` as a dev pod would, and prints what that says of a gateway.

    Its owner is what the owner rule makes of it, called `doctor`.
    """
    metadata: dict[str, Any] = {
        "name": f"jupyter-to-job-doctor-{secrets.token_hex(4)}",
        "namespace": namespace,
        "labels": {"app.kubernetes.io/name": "jupyter-to-job-doctor"},
    }
    token = {"audience": AUDIENCE, "expirationSeconds": 600, "path": "token"}
    sources: list[Manifest] = [{"serviceAccountToken": token}]
    if installation.authority:
        metadata["annotations"] = {_AUTHORITY: installation.authority}
        field = {"fieldPath": f"metadata.annotations['{_AUTHORITY}']"}
        sources.append({"downwardAPI": {"items": [{"path": "ca.crt", "fieldRef": field}]}})
    source, key = installation.owner_rule
    if source in ("annotation", "label"):
        metadata[f"{source}s"] = {**metadata.get(f"{source}s", {}), key: "doctor"}
    spec: Manifest = {
        "restartPolicy": "Never",
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "activeDeadlineSeconds": DEADLINE,
        "terminationGracePeriodSeconds": 0,
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": 1000,
            "runAsGroup": 1000,
            "fsGroup": 1000,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "containers": [_container(installation)],
        "volumes": [
            {"name": "token", "projected": {"sources": sources}},
            {"name": _TMP, "emptyDir": {}},
        ],
    }
    pull_secrets = installation.pod_spec.get("imagePullSecrets")
    if pull_secrets:
        spec["imagePullSecrets"] = pull_secrets
    template: Manifest = {"metadata": metadata, "spec": spec}
    template = with_agent_patch(template, installation.pod_patch, TOKEN_FOLDER)
    return {"apiVersion": "v1", "kind": "Pod", **template}


def _container(installation: Installation) -> Manifest:
    variables = {
        "JUPYTER_TO_JOB_GATEWAY": installation.setting("gateway_url"),
        "HOME": "/tmp",  # noqa: S108 - a volume of its own
    }
    if installation.authority:
        variables["JUPYTER_TO_JOB_GATEWAY_CA"] = f"{TOKEN_FOLDER}/ca.crt"
    return {
        "name": installation.setting("container"),
        "image": installation.setting("agent_image"),
        "command": ["python3", "-c", _DOCTOR],
        "workingDir": "/tmp",  # noqa: S108
        "env": [{"name": name, "value": value} for name, value in variables.items()],
        "resources": AGENT_RESOURCES,
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
        "volumeMounts": [
            {"name": "token", "mountPath": TOKEN_FOLDER, "readOnly": True},
            {"name": _TMP, "mountPath": "/tmp"},  # noqa: S108
        ],
    }
