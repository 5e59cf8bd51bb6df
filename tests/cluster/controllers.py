"""What is done to a controller, and controllers beside the first one.

Another controller is a copy of the first one, and has its account, which the cluster's policies
know. It has settings, an exchange and a namespace of its own: whatever a test does to it disturbs
no other test.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from tests.cluster.box.boot import T4, Box
from tests.cluster.box.cluster import Cluster
from tests.cluster.box.images import Images
from tests.cluster.box.wait import wait_for
from tests.cluster.product import (
    FIRST,
    NAMESPACE,
    Controller,
    DevPod,
    add_namespace,
    add_variables,
    start_dev_pod,
)

OTHER = "example.org/other-controller"
"""The label of what is another controller's."""
NOT_OF_OTHERS = f"--selector=!{OTHER}"
"""The flag of kubectl that leaves that out."""


def add_controller(
    box: Box,
    images: Images,
    name: str,
    settings: Mapping[str, str],
    *,
    size: str | None = None,
) -> DevPod:
    """Start a controller for the namespace of its name; return a dev pod there.

    With a `size` (`64m`) its exchange can be filled up.
    """
    controller = Controller(name)
    add_namespace(box, name)
    claim = controller.own("exchange")
    volume = box.add_volume(
        claim, "ReadWriteOnce", claim=f"{NAMESPACE}/{claim}", node=T4.name, size=size
    )
    gateway = {"JUPYTER_TO_JOB_NAMESPACES": name, "JUPYTER_TO_JOB_GATEWAY_URL": controller.gateway}
    box.apply(
        {**(claimed := volume.claim_manifest()), "metadata": {**claimed["metadata"], **_LABELS}},
        _service(box, controller),
        _deployment(box, controller, {**gateway, **settings}),
    )
    until_rolled_out(box, controller)
    return start_dev_pod(box, images, name, controller=controller)


_LABELS = {"labels": {OTHER: "true"}}


def _service(box: Box, controller: Controller) -> dict[str, Any]:
    """Return the first controller's Service for another one."""
    (port,) = box.get("service", "gateway", NAMESPACE)["spec"]["ports"]
    kept = {key: port[key] for key in ("name", "port", "targetPort")}
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": controller.own("gateway"), "namespace": NAMESPACE, **_LABELS},
        "spec": {"selector": _pod_label(controller), "ports": [kept]},
    }


def _deployment(box: Box, controller: Controller, settings: Mapping[str, str]) -> dict[str, Any]:
    """Return the first controller's Deployment for another one."""
    found = box.get("deployment", "controller", NAMESPACE)
    spec = found["spec"]
    add_variables(found, settings)
    spec["selector"] = {"matchLabels": _pod_label(controller)}
    template = spec["template"]
    template["metadata"]["labels"] = {**_pod_label(controller), OTHER: "true"}
    (container,) = template["spec"]["containers"]
    container["resources"]["requests"] = {"cpu": "20m"}  # the rest of the node is for jobs
    (exchange,) = (v for v in template["spec"]["volumes"] if v["name"] == "exchange")
    exchange["persistentVolumeClaim"] = {"claimName": controller.own("exchange")}
    metadata = {"name": controller.own("controller"), "namespace": NAMESPACE, **_LABELS}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": spec}


def _pod_label(controller: Controller) -> dict[str, str]:
    return {"app.kubernetes.io/name": controller.own("jupyter-to-job-controller")}


def until_rolled_out(cluster: Cluster, controller: Controller = FIRST) -> None:
    """Wait until a controller's pod is the one of its Deployment, and serves."""
    flags = (*controller.deployment, "--timeout=90s")
    cluster.kubectl("rollout", "status", *flags, timeout=100)


def until_served(dev_pod: DevPod) -> None:
    """Wait until the gateway answers."""
    command = "jupyter-to-job list >/dev/null 2>&1 && echo yes"
    wait_for(
        "the gateway answers",
        lambda: "yes" in dev_pod.run("sh", "-c", command, check=False),
        timeout=90,
    )


def set_variable(dev_pod: DevPod, name: str, value: str) -> None:
    """Give the controller of a dev pod another setting; it serves again afterwards."""
    cluster, controller = dev_pod.cluster, dev_pod.controller
    cluster.kubectl("set", "env", *controller.deployment, f"{name}={value}")
    until_rolled_out(cluster, controller)
    until_served(dev_pod)


def controller_pods(cluster: Cluster, controller: Controller = FIRST) -> set[str]:
    """Return the names of a controller's pods."""
    return set(cluster.kubectl("get", "pods", *controller.pods, "-o=name").split())


def controller_restarts(cluster: Cluster) -> list[tuple[str, int]]:
    """Return uid and restarts of the first controller's pods."""
    answer = cluster.kubectl("get", "pods", *FIRST.pods, "-o=json")
    return [
        (pod["metadata"]["uid"], pod["status"]["containerStatuses"][0]["restartCount"])
        for pod in json.loads(answer)["items"]
    ]


def kill_controller(dev_pod: DevPod) -> None:
    """Kill a dev pod's controller without a word to it, and wait until another pod serves."""
    cluster, controller = dev_pod.cluster, dev_pod.controller
    killed = controller_pods(cluster, controller)
    cluster.kubectl("delete", "pods", *controller.pods, "--grace-period=0", "--force")
    wait_for(
        "there is another controller",
        lambda: controller_pods(cluster, controller) - killed,
        timeout=60,
    )
    ready = ("--for=condition=Ready", "--timeout=60s")
    cluster.kubectl("wait", "pods", *controller.pods, *ready, timeout=70)
    until_served(dev_pod)


@contextmanager
def without_controller(dev_pod: DevPod) -> Iterator[None]:
    """Take a dev pod's controller away for as long as the context lasts; it serves again after."""
    cluster, controller = dev_pod.cluster, dev_pod.controller
    scale = ("scale", *controller.deployment)
    cluster.kubectl(*scale, "--replicas=0")
    wait_for("the controller is gone", lambda: not controller_pods(cluster, controller), timeout=60)
    try:
        yield
    finally:
        cluster.kubectl(*scale, "--replicas=1")
        until_served(dev_pod)
