"""Kubernetes takes the Job and the pod of every flavor and device that we ship.

They are created for a trial (`--dry-run=server`) in a namespace that enforces the strictest Pod
Security: the Job as our controller would, the pod as the Job controller would.
"""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from tests.cluster.box.cluster import Cluster, KubectlError
from tests.cluster.product import NAMESPACE, TEAM, DevPod
from tests.cluster.side_by_side import once
from tests.golden_manifests import FOLDER

pytestmark = pytest.mark.side_by_side

CONTROLLER = f"system:serviceaccount:{NAMESPACE}:controller"
JOB_CONTROLLER = "system:serviceaccount:kube-system:job-controller"
RUNTIME_CLASS = {
    "apiVersion": "node.k8s.io/v1",
    "kind": "RuntimeClass",
    "metadata": {"name": "nvidia"},
    "handler": "nvidia",
}


@once
def add_runtime_class(cluster: Cluster) -> None:
    """Add what clusters with NVIDIA's runtime have."""
    cluster.apply(RUNTIME_CLASS)


def pod_of(job: Any) -> dict[str, Any]:
    """Return the pod that the Job controller would make."""
    metadata, template = job["metadata"], job["spec"]["template"]
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": metadata["name"], "controller": True}
    place = {
        "name": f"{metadata['name']}-abcde",
        "namespace": metadata["namespace"],
        "ownerReferences": [{**owner, "uid": "00000000-0000-0000-0000-000000000000"}],
    }
    pod = {"apiVersion": "v1", "kind": "Pod", "spec": template["spec"]}
    return {**pod, "metadata": {**template["metadata"], **place}}


@pytest.mark.parametrize("file", sorted(FOLDER.iterdir()), ids=lambda file: file.stem)
def test_it_would_be_created(cluster: Cluster, dev_pod: DevPod, file: Any) -> None:
    assert dev_pod.namespace == TEAM  # its namespace and the controller's rights are there
    add_runtime_class(cluster)
    job = yaml.safe_load(file.read_text())
    assert job["metadata"]["namespace"] == TEAM

    stored = cluster.create(job, CONTROLLER, trial=True)
    pod = cluster.create(pod_of(job), JOB_CONTROLLER, trial=True)

    assert stored["spec"]["podFailurePolicy"] == job["spec"]["podFailurePolicy"]
    (asked,), (taken,) = job["spec"]["template"]["spec"]["containers"], pod["spec"]["containers"]
    assert taken["resources"] == asked["resources"]


def test_pod_security_is_enforced_there(cluster: Cluster, dev_pod: DevPod) -> None:
    """Else the test above would say little."""
    assert dev_pod.namespace == TEAM
    job = yaml.safe_load((FOLDER / "k8s-small-cpu.yaml").read_text())
    pod = pod_of(job)
    del pod["spec"]["securityContext"]["runAsNonRoot"]
    with pytest.raises(KubectlError, match="violates PodSecurity"):
        cluster.create(pod, JOB_CONTROLLER, trial=True)
