"""What waits too long for its start is ended, and says why. The limits are short here."""

from __future__ import annotations

from typing import Any

import pytest

from tests.cluster.box.boot import Box
from tests.cluster.box.images import Images
from tests.cluster.box.wait import wait_for
from tests.cluster.controllers import add_controller
from tests.cluster.product import NAMESPACE, NOWHERE, DevPod, dev_pod_manifest, start_pod
from tests.cluster.scenes import SubmittedJob
from tests.cluster.side_by_side import once

pytestmark = pytest.mark.side_by_side
SETTINGS = {
    "JUPYTER_TO_JOB_START_LIMITS": "container=3s,agent=20s,unschedulable=5s",
    "JUPYTER_TO_JOB_GATEWAY_URL": f"http://nobody.{NAMESPACE}.svc",  # for agents
}
NO_NODE = ("-f", NOWHERE["flavor"], "-d", NOWHERE["device"])


@once
def start_beside(box: Box, images: Images) -> DevPod:
    """Start a controller with these settings; return a dev pod of it."""
    return add_controller(box, images, "hasty", SETTINGS)


def check_given_up(job: SubmittedJob, reason: str, message: str) -> None:
    """Check that a job ends without a result, and that nothing of it holds a place any more."""
    ended = job.until_ended()
    assert (ended["state"], ended["reason"]) == ("failed", reason), ended
    assert message in ended["message"], ended
    assert ended["delivery"]["state"] == "none", ended
    wait_for(
        "its pod has ended", lambda: {pod["status"]["phase"] for pod in job.pods()} <= {"Failed"}
    )


def test_no_node_takes_its_pod(box: Box, images: Images, dev_pod: DevPod) -> None:
    assert dev_pod.cluster is box  # the first controller is there
    mine = start_beside(box, images)
    job = SubmittedJob.submit(mine, "nowhere", *NO_NODE, cells=("print('never')",))
    check_given_up(job, "Unschedulable", "No node took the pod within 5 s: 0/2 nodes are available")


def test_its_agent_reaches_nobody(box: Box, images: Images, dev_pod: DevPod) -> None:
    assert dev_pod.cluster is box  # the first controller is there
    mine = start_beside(box, images)
    job = SubmittedJob.submit(mine, "agentless", cells=("print('never')",))
    check_given_up(job, "BackendError", "did not arrive within 20 s")


def test_its_container_cannot_be_created(box: Box, images: Images, dev_pod: DevPod) -> None:
    """It has a variable from a ConfigMap that is gone by now."""
    assert dev_pod.cluster is box  # the first controller is there
    mine = start_with_settings(start_beside(box, images), images)
    box.kubectl("delete", "configmap", "settings", "-n", mine.namespace)
    job = SubmittedJob.submit(mine, "unset", cells=("print('never')",))
    words = 'The container cannot be created within 3 s: configmap "settings" not found'
    check_given_up(job, "BackendError", words)


def start_with_settings(beside: DevPod, images: Images) -> DevPod:
    """Start a dev pod that has a variable from a ConfigMap, which jobs take over."""
    cluster, namespace = beside.cluster, beside.namespace
    names = {"name": "settings", "namespace": namespace}
    content = {"apiVersion": "v1", "kind": "ConfigMap", "data": {"region": "north"}}
    cluster.apply({**content, "metadata": names})
    pod: dict[str, Any] = dev_pod_manifest(
        images, namespace, "jupyter-settings", "ada", controller=beside.controller
    )
    source = {"configMapKeyRef": {"name": "settings", "key": "region"}}
    pod["spec"]["containers"][0]["env"].append({"name": "DATA_REGION", "valueFrom": source})
    return start_pod(cluster, pod, beside.controller)
