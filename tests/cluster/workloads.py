"""Plain Jobs for tests of the cluster itself, and what became of them."""

from __future__ import annotations

from typing import Any

from tests.cluster.box.cluster import Cluster
from tests.cluster.box.node import GPU, GPU_PRODUCT, Hardware


def job(
    name: str, image: str, script: str, *, on: Hardware | None = None, gpus: int = 0
) -> dict[str, Any]:
    """Return a Job of one container that runs a shell script; `on` names its kind of node."""
    container: dict[str, Any] = {
        "name": "main",
        "image": image,
        "command": ["sh", "-c", script],
        "resources": {"requests": {"cpu": "20m"}},
    }
    if gpus:
        container["resources"]["limits"] = {GPU: gpus}
    pod = {
        "restartPolicy": "Never",
        "terminationGracePeriodSeconds": 1,
        "nodeSelector": {GPU_PRODUCT: on.gpu_product} if on else {},
        "containers": [container],
    }
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"backoffLimit": 0, "template": {"spec": pod}},
    }


def with_volume(job: dict[str, Any], claim: str, path: str, *, read_only: bool = False) -> Any:
    """Return the Job with a claim's volume at a path."""
    pod = job["spec"]["template"]["spec"]
    source = {"claimName": claim, "readOnly": read_only}
    pod["volumes"] = [{"name": claim, "persistentVolumeClaim": source}]
    pod["containers"][0]["volumeMounts"] = [{"name": claim, "mountPath": path}]
    return job


def pods(cluster: Cluster, *jobs: str) -> list[Any]:
    """Return the pods of Jobs."""
    return cluster.items("pods", "default", f"job-name in ({','.join(jobs)})")


def phases(cluster: Cluster, *jobs: str) -> list[str]:
    """Return the phases of the Jobs' pods, sorted."""
    return sorted(pod["status"]["phase"] for pod in pods(cluster, *jobs))


def delete_jobs(cluster: Cluster, *jobs: str) -> None:
    """Delete Jobs, and wait until their pods are gone."""
    cluster.kubectl("delete", "jobs", *jobs, "--cascade=foreground", "--ignore-not-found")
