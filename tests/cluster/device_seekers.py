"""Ways to ask Kubernetes for a device, as objects that somebody would create."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

from tests.cluster.box.images import Images
from tests.cluster.box.node import GPU
from tests.cluster.product import TEAM, dev_pod_manifest

Manifest = dict[str, Any]
ONE = {"limits": {GPU: 1}}
CLAIM = "resourceClaims/gpu"
OVERHEAD = "with-a-gpu"
"""The RuntimeClass that adds a GPU to its pods."""
RUNTIME_CLASS: Manifest = {
    "apiVersion": "node.k8s.io/v1",
    "kind": "RuntimeClass",
    "metadata": {"name": OVERHEAD},
    "handler": "runc",
    "overhead": {"podFixed": {GPU: 1}},
}
OF_PODS = {
    "ReplicaSet": "apps/v1",
    "Deployment": "apps/v1",
    "StatefulSet": "apps/v1",
    "DaemonSet": "apps/v1",
    "ReplicationController": "v1",
    "Job": "batch/v1",
    "CronJob": "batch/v1",
}
"""What makes pods of a template, with its version."""


def plain_pod(images: Images, name: str = "seeker") -> Manifest:
    """Return a dev pod that asks for no device."""
    return dev_pod_manifest(images, TEAM, name, "eve")


def pod_with(images: Images, **fields: Any) -> Manifest:
    """Return a pod whose only container has these fields, too."""
    pod = plain_pod(images)
    pod["spec"]["containers"][0].update(fields)
    return pod


def pod_with_init_container(images: Images, **fields: Any) -> Manifest:
    """Return a pod with one more container, which has these fields and runs first."""
    pod = plain_pod(images)
    init = {**copy.deepcopy(pod["spec"]["containers"][0]), "name": "init", **fields}
    pod["spec"]["initContainers"] = [init]
    return pod


def pod_of_spec(images: Images, **fields: Any) -> Manifest:
    """Return a pod whose specification has these fields, too."""
    pod = plain_pod(images)
    pod["spec"].update(fields)
    return pod


def pod_of_metadata(images: Images, **fields: Any) -> Manifest:
    """Return a pod whose metadata have these fields, too."""
    pod = plain_pod(images)
    pod["metadata"].update(fields)
    return pod


def pod_with_claim(images: Images, **source: str) -> Manifest:
    """Return a pod with a claim for a device, which its container uses."""
    pod = pod_with(images, resources={"claims": [{"name": "gpu"}]})
    pod["spec"]["resourceClaims"] = [{"name": "gpu", **source}]
    return pod


def maker_of_pods(kind: str, pod: Manifest) -> Manifest:
    """Return an object of a kind that makes pods like this one."""
    labels = {"app": "seeker"}
    template: Manifest = {"metadata": {"labels": labels}, "spec": copy.deepcopy(pod["spec"])}
    spec: Manifest = {"template": template}
    if kind in ("Job", "CronJob"):
        template["spec"]["restartPolicy"] = "Never"
    else:
        spec["selector"] = labels if kind == "ReplicationController" else {"matchLabels": labels}
    if kind == "StatefulSet":
        spec["serviceName"] = "seeker"
    if kind == "CronJob":
        spec = {"schedule": "0 0 1 1 *", "jobTemplate": {"spec": spec}}
    metadata = {"name": "seeker", "namespace": TEAM}
    return {"apiVersion": OF_PODS[kind], "kind": kind, "metadata": metadata, "spec": spec}


SEEKERS: dict[str, tuple[str, Callable[[Images], Manifest]]] = {
    "limits": (GPU, lambda images: pod_with(images, resources=ONE)),
    "a part of a GPU": (
        "nvidia.com/mig-1g.5gb",
        lambda images: pod_with(images, resources={"limits": {"nvidia.com/mig-1g.5gb": 1}}),
    ),
    "another vendor": (
        "amd.com/gpu",
        lambda images: pod_with(images, resources={"limits": {"amd.com/gpu": 1}}),
    ),
    "device class": (
        "deviceclass.resource.kubernetes.io/gpu",
        lambda images: pod_with(
            images, resources={"limits": {"deviceclass.resource.kubernetes.io/gpu": 1}}
        ),
    ),
    "init container": (GPU, lambda images: pod_with_init_container(images, resources=ONE)),
    "sidecar": (
        GPU,
        lambda images: pod_with_init_container(images, resources=ONE, restartPolicy="Always"),
    ),
    "overhead": (GPU, lambda images: pod_of_spec(images, runtimeClassName=OVERHEAD)),
    "claim": (CLAIM, lambda images: pod_with_claim(images, resourceClaimName="gpu")),
    "template of a claim": (
        CLAIM,
        lambda images: pod_with_claim(images, resourceClaimTemplateName="gpu"),
    ),
    "part of a GPU by annotation": (
        "annotations/gpu-fraction",
        lambda images: pod_of_metadata(images, annotations={"gpu-fraction": "0.5"}),
    ),
    "memory of a GPU by annotation": (
        "annotations/gpu-memory",
        lambda images: pod_of_metadata(images, annotations={"gpu-memory": "2000"}),
    ),
}
"""What is asked for, as the refusal names it, and the pod that does, by how it asks."""
UNKNOWN_TO_KUBERNETES: dict[str, tuple[str, Callable[[Images], Manifest]]] = {
    "requests alone": (
        "Limit must be set for non overcommitable resources",
        lambda images: pod_with(images, resources={"requests": {GPU: 1}}),
    ),
    "resources of the pod": (
        "supported values: ",
        lambda images: pod_of_spec(images, resources=ONE),
    ),
    "device file": (
        'violates PodSecurity "restricted',
        lambda images: pod_of_spec(
            images, volumes=[{"name": "token", "hostPath": {"path": "/dev/nvidia0"}}]
        ),
    ),
}
"""What Kubernetes refuses without us, with its words."""
