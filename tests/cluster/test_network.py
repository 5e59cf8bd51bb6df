"""The network policies that we ship select the right pods, and leave them what they need.

Nothing is sent: the box enforces no policy (`network.py`).
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.cluster.box.boot import Box
from tests.cluster.box.cluster import Cluster
from tests.cluster.box.images import Images
from tests.cluster.box.wait import wait_for
from tests.cluster.controllers import controller_pods
from tests.cluster.deliveries import Place, until_delivered
from tests.cluster.network import (
    Pod,
    admits_address,
    peers,
    pods,
    policy_of,
    ports,
    selected,
)
from tests.cluster.product import DEV_PODS, NAMESPACE, RIVALS, TEAM, DevPod, start_dev_pod
from tests.cluster.scenes import SubmittedJob
from tests.cluster.side_by_side import once

pytestmark = pytest.mark.side_by_side
DNS = {(protocol, port) for protocol in ("UDP", "TCP") for port in (53, 5353)}
METADATA_SERVER = "169.254.169.254"
BYSTANDERS = "bystanders"
"""A namespace without dev pods."""


@once
def start_bystander(cluster: Cluster, images: Images) -> DevPod:
    """Start a pod like a dev pod in a namespace that has no label of ours."""
    pod = start_dev_pod(cluster, images, BYSTANDERS)
    cluster.kubectl("label", "namespace", BYSTANDERS, f"{DEV_PODS}-")
    return pod


@once
def start_rival(cluster: Cluster, images: Images) -> DevPod:
    """Start a dev pod in another namespace of dev pods."""
    return start_dev_pod(cluster, images, RIVALS, "jupyter-network")


def gateway_port(cluster: Cluster) -> Any:
    """Return the port at which the Service finds the gateway in its pod."""
    (port,) = cluster.get("service", "gateway", NAMESPACE)["spec"]["ports"]
    deployment = cluster.get("deployment", "controller", NAMESPACE)
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    (found,) = (p for p in container["ports"] if p["name"] == port["targetPort"])
    return found["containerPort"]


def check_reaches_gateway(cluster: Cluster, policy: Any) -> None:
    """Check that the first rule leads to the gateway alone, and the second one to DNS."""
    to_gateway, to_dns = policy["spec"]["egress"][:2]
    namespace = policy["metadata"]["namespace"]
    controllers = controller_pods(cluster)
    found = peers(cluster, namespace, to_gateway["to"])
    assert found == {(NAMESPACE, name) for name in controllers}
    assert [p["port"] for p in to_gateway["ports"]] == [gateway_port(cluster)]
    assert ports([to_dns]) == DNS


def test_the_gateway_hears_namespaces_of_dev_pods_alone(
    cluster: Cluster, images: Images, dev_pod: DevPod
) -> None:
    bystander, rival = start_bystander(cluster, images), start_rival(cluster, images)
    job = SubmittedJob.counting(dev_pod, "networked", "-f", "crowd")
    job.until_printed()
    policy = policy_of(cluster, "gateway")
    controllers = controller_pods(cluster)
    assert selected(cluster, policy) == {(NAMESPACE, name) for name in controllers}

    (rule,) = policy["spec"]["ingress"]
    heard = peers(cluster, NAMESPACE, rule["from"])
    assert heard >= {(TEAM, dev_pod.name), (TEAM, job.pod()), (RIVALS, rival.name)}
    assert (BYSTANDERS, bystander.name) not in heard
    assert not heard & selected(cluster, policy)
    assert [p["port"] for p in rule["ports"]] == [gateway_port(cluster)]
    job.let_end()
    assert job.until_ended()["state"] == "succeeded"


def test_the_controller_reaches_the_api_server_and_dns(cluster: Cluster, dev_pod: DevPod) -> None:
    assert dev_pod.cluster is cluster  # the product is installed
    policy = policy_of(cluster, "gateway")
    slices = ("-l=kubernetes.io/service-name=kubernetes", "-o=json")
    found = json.loads(cluster.kubectl("get", "endpointslices", *slices))["items"]
    of_api_server = {("TCP", p["port"]) for item in found for p in item["ports"]}
    allowed = ports(policy["spec"]["egress"])
    assert allowed >= of_api_server | DNS
    assert allowed == {("TCP", 443), ("TCP", 6443)} | DNS


def test_jobs_reach_the_gateway_and_the_internet(cluster: Cluster, dev_pod: DevPod) -> None:
    """Neither other pods nor nodes nor the API server, and nobody reaches them."""
    job = SubmittedJob.counting(dev_pod, "on-the-net", "-f", "crowd")
    job.until_printed()
    policy = policy_of(cluster, "jobs")
    has_label = {"matchExpressions": [{"key": "jupyter-to-job.io/job", "operator": "Exists"}]}
    before = pods(cluster, TEAM, has_label)  # those of other tests come and go
    mine = selected(cluster, policy)
    assert (TEAM, job.pod()) in mine
    assert mine <= before | pods(cluster, TEAM, has_label)
    assert (TEAM, dev_pod.name) not in mine
    check_reaches_gateway(cluster, policy)

    *_, internet = policy["spec"]["egress"]
    assert "ports" not in internet
    nodes = json.loads(cluster.kubectl("get", "nodes", "-o=json"))["items"]
    inside = [
        METADATA_SERVER,
        cluster.get("pod", dev_pod.name, TEAM)["status"]["podIP"],
        cluster.get("service", "gateway", NAMESPACE)["spec"]["clusterIP"],
        *(
            a["address"]
            for n in nodes
            for a in n["status"]["addresses"]
            if a["type"] == "InternalIP"
        ),
    ]
    assert [address for address in inside if admits_address(internet["to"], address)] == []
    assert admits_address(internet["to"], "8.8.8.8")
    assert admits_address(internet["to"], "2001:4860:4860::8888")
    assert policy["spec"]["policyTypes"] == ["Ingress", "Egress"]
    assert "ingress" not in policy["spec"]
    job.let_end()
    assert job.until_ended()["state"] == "succeeded"


def test_the_pod_of_doctor_reaches_the_gateway_and_nothing_else(
    cluster: Cluster, dev_pod: DevPod
) -> None:
    """A unit test compares its labels with those that the policy selects."""
    assert dev_pod.cluster is cluster  # the product is installed
    policy = policy_of(cluster, "doctor")
    check_reaches_gateway(cluster, policy)
    assert len(policy["spec"]["egress"]) == 2
    assert (TEAM, dev_pod.name) not in selected(cluster, policy)


@pytest.mark.side_by_side(-1)
def test_a_courier_reaches_the_gateway_and_nothing_else(
    box: Box, images: Images, dev_pod: DevPod
) -> None:
    assert dev_pod.cluster is box  # the product is installed
    policy, of_jobs = policy_of(box, "couriers"), policy_of(box, "jobs")
    check_reaches_gateway(box, policy)
    assert len(policy["spec"]["egress"]) == 2
    assert policy["spec"]["policyTypes"] == ["Ingress", "Egress"]
    assert "ingress" not in policy["spec"]

    place = Place.make(dev_pod, images, "networked")
    job = place.begin()
    runner = (TEAM, job.pod())
    place.stop()
    job.let_end()
    seen: set[Pod] = set()

    def is_seen() -> bool:
        seen.update(selected(box, policy))
        assert not seen & selected(box, of_jobs)
        return any(name.startswith(f"{job.name}-c") for _, name in seen)

    wait_for("there is a courier", is_seen, timeout=150)
    assert runner not in seen
    until_delivered(job)
