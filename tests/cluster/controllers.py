"""What is done to a controller, and controllers beside the first one.

Another controller is installed from the same overlay, and has the account of the first one, which
the cluster's policies know. It has settings, an exchange and a namespace of its own: whatever a
test does to it disturbs no other test.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Any

import yaml

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
    write_overlay,
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
    components: Sequence[str] = (),
) -> DevPod:
    """Start a controller for the namespace of its name; return a dev pod there. Both stay.

    With a `size` (`64m`) its exchange can be filled up. `components` are those of `write_overlay`.
    """
    controller = Controller(name)
    add_namespace(box, name)
    claim = controller.own("exchange")
    volume = box.add_volume(
        claim, "ReadWriteOnce", claim=f"{NAMESPACE}/{claim}", node=T4.name, size=size
    )
    box.apply(_labelled(volume.claim_manifest()))
    deploy(box, images, controller, settings, components)
    dev_pod = start_dev_pod(box, images, name, cpu="100m", controller=controller)
    until_reached(dev_pod)
    return dev_pod


@contextmanager
def own_controller(
    box: Box,
    images: Images,
    name: str,
    settings: Mapping[str, str] = MappingProxyType({}),
    *,
    size: str | None = None,
    components: Sequence[str] = (),
) -> Iterator[DevPod]:
    """Have such a controller for as long as the context lasts; then its place is free again."""
    dev_pod = add_controller(box, images, name, settings, size=size, components=components)
    yield dev_pod
    controller = dev_pod.controller
    box.kubectl("delete", *controller.deployment, "--wait=false")
    box.kubectl("delete", "pod", dev_pod.name, "-n", dev_pod.namespace, "--wait=false")


def deploy(
    box: Box,
    images: Images,
    controller: Controller,
    settings: Mapping[str, str],
    components: Sequence[str] = (),
) -> None:
    """Apply what our overlay has for a controller under the names of another one; it is ready then.

    Again for another version of it.
    """
    with tempfile.TemporaryDirectory() as folder:
        overlay = write_overlay(Path(folder), images, components)
        manifests = list(yaml.safe_load_all(box.kubectl("kustomize", str(overlay))))
    deployment, service = (
        next(manifest for manifest in manifests if manifest["kind"] == kind)
        for kind in ("Deployment", "Service")
    )
    label = {"app.kubernetes.io/name": controller.own("jupyter-to-job-controller")}
    service["metadata"]["name"] = controller.own("gateway")
    service["spec"]["selector"] = label
    own = {
        "JUPYTER_TO_JOB_NAMESPACES": controller.name,
        "JUPYTER_TO_JOB_GATEWAY_URL": controller.gateway,
    }
    add_variables(deployment, {**own, **settings})
    deployment["metadata"]["name"] = controller.own("controller")
    spec = deployment["spec"]
    spec["selector"] = {"matchLabels": label}
    spec["template"]["metadata"]["labels"] = {**label, OTHER: "true"}
    pod = spec["template"]["spec"]
    pod["containers"][0]["resources"]["requests"]["cpu"] = "20m"  # the node is for jobs
    (exchange,) = (volume for volume in pod["volumes"] if volume["name"] == "exchange")
    exchange["persistentVolumeClaim"]["claimName"] = controller.own("exchange")
    box.apply(_labelled(service), _labelled(deployment))
    until_rolled_out(box, controller)


def _labelled(manifest: dict[str, Any]) -> dict[str, Any]:
    """Return an object of another controller."""
    return {**manifest, "metadata": {**manifest["metadata"], "labels": {OTHER: "true"}}}


def until_rolled_out(cluster: Cluster, controller: Controller = FIRST) -> None:
    """Wait until a controller's pod is the one of its Deployment, and serves."""
    flags = (*controller.deployment, "--timeout=90s")
    cluster.kubectl("rollout", "status", *flags, timeout=100)


def until_reached(dev_pod: DevPod) -> None:
    """Wait until a dev pod's node knows where the gateway's Service leads, whatever it speaks."""
    service = dev_pod.cluster.get("service", dev_pod.controller.own("gateway"), NAMESPACE)
    host = dev_pod.controller.gateway.partition("://")[2]
    port = service["spec"]["ports"][0]["port"]
    connect = f"import socket; socket.create_connection(({host!r}, {port}), 5)"
    command = f'python3 -c "{connect}" 2>/dev/null && echo yes'
    wait_for(
        "the gateway is reached",
        lambda: "yes" in dev_pod.run("sh", "-c", command, check=False),
    )


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
    return {pod["metadata"]["name"] for pod in cluster.items("pods", NAMESPACE, controller.label)}


def controller_restarts(cluster: Cluster) -> list[tuple[str, int]]:
    """Return uid and restarts of the first controller's pods."""
    return [
        (pod["metadata"]["uid"], pod["status"]["containerStatuses"][0]["restartCount"])
        for pod in cluster.items("pods", NAMESPACE, FIRST.label)
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
