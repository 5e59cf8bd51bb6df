"""How many units of a device are free: what nodes have, less what pods on them asked for."""

from __future__ import annotations

from typing import Any

import pytest

from jupyter_to_job.backends.kubernetes.device_counts import count_units, pod_requests
from jupyter_to_job.backends.kubernetes.nodes import node_record
from jupyter_to_job.backends.port import Units
from jupyter_to_job.flavors import parse_catalog

CATALOG = """
apiVersion: jupyter-to-job.io/v1
default: {flavor: small, device: cpu}
flavors:
  small: {devices: [cpu]}
  gpu-4: {gpus: 4, devices: [any, t4, kept, grows, mixed]}
  share: {devices: [half, tenth]}
devices:
  cpu: {title: CPU}
  any: {resource: nvidia.com/gpu}
  t4: {resource: nvidia.com/gpu, node_selector: {product: T4}}
  kept: {resource: nvidia.com/gpu, node_selector: {product: A100},
         tolerations: [{key: kept, operator: Exists}]}
  grows: {resource: nvidia.com/gpu, node_selector: {product: T4}, autoscaled: true}
  half: {limits: {example.org/share: 50}}
  tenth: {limits: {nvidia.com/gpu: 1, nvidia.com/gpumem-percentage: 10}}
  mixed: {resource: nvidia.com/gpu, limits: {nvidia.com/gpumem: 3000}, node_selector: {product: T4}}
"""
GPU = "nvidia.com/gpu"


def node(name: str, product: str, spec: Any = None, **there: str) -> Any:
    amounts = {key.replace("gpu", GPU).replace("_", "/"): text for key, text in there.items()}
    labels = {"product": product, "kubernetes.io/arch": "amd64"}
    metadata = {"name": name, "uid": name, "labels": labels}
    status = {"capacity": amounts, "allocatable": amounts}
    return {"metadata": metadata, "spec": spec or {}, "status": status}


def taints(*keys: str) -> Any:
    return {"taints": [{"key": key, "effect": "NoSchedule"} for key in keys]}


def container(gpus: object = None, **more: Any) -> Any:
    requests = {} if gpus is None else {GPU: str(gpus), "cpu": "1"}
    return {"name": "c", "resources": {"requests": requests}, **more}


def pod(on: str, *containers: Any, init: Any = ()) -> Any:
    spec = {"nodeName": on, "containers": list(containers), "initContainers": list(init)}
    return {"metadata": {"namespace": "team", "name": "p", "uid": "u"}, "spec": spec}


T4, OTHER_T4 = node("t4", "T4", gpu="4"), node("other", "T4", gpu="2")
A100 = node("a100", "A100", taints("kept"), gpu="8")
SHARES = node("shares", "none", **{"example.org_share": "100"})
CORDONED = node("t4", "T4", taints("node.kubernetes.io/unschedulable"), gpu="4")
SICK = {**T4, "status": {"capacity": {GPU: "4"}, "allocatable": {GPU: "3"}}}
CASES = {
    "idle": ("any", [T4, OTHER_T4, A100], [], Units(6, 6)),
    "in use": ("any", [T4, OTHER_T4], [pod("t4", container(3))], Units(3, 6)),
    "by its label": ("t4", [T4, A100], [pod("a100", container(8))], Units(4, 4)),
    "behind its taint": ("kept", [T4, A100], [pod("a100", container(1))], Units(7, 8)),
    "cordoned": ("t4", [CORDONED, OTHER_T4], [pod("t4", container(1))], Units(2, 2)),
    "an unhealthy one": ("t4", [SICK], [pod("t4", container(1))], Units(2, 3)),
    "fewer than a flavor asks for": ("t4", [OTHER_T4], [], Units(2, 2)),
    "more asked for than there is": ("t4", [SICK], [pod("t4", container(4))], Units(0, 3)),
    "no node": ("t4", [A100], [], Units(0, 0)),
    "no nodes at all": ("t4", [], [], Units(0, 0)),
    "an autoscaled one": ("grows", [T4], [pod("t4", container(1))], Units(3, None)),
    "an autoscaled one without nodes": ("grows", [A100], [], Units(0, None)),
    "cores and memory are none": ("cpu", [T4], [], Units()),
    "jobs that fit its limits": ("half", [SHARES, T4], [], Units(2, 2)),
    "what only a scheduler counts": ("tenth", [T4], [], Units()),
    "a resource beside such": ("mixed", [T4], [pod("t4", container(1))], Units(3, 4)),
}


@pytest.mark.parametrize(("device", "nodes", "pods", "expected"), CASES.values(), ids=CASES)
def test_units(device: str, nodes: list[Any], pods: list[Any], expected: Units) -> None:
    catalog = parse_catalog(CATALOG.encode(), "test")
    flavor = next(name for name, f in catalog.flavors.items() if device in f.devices)
    choice = catalog.choose(flavor, device)
    counted = count_units(
        choice, [node_record(n) for n in nodes], [pod_requests(p) for p in pods], "amd64"
    )
    assert counted == expected


def test_nodes_of_another_architecture_do_not_count() -> None:
    choice = parse_catalog(CATALOG.encode(), "test").choose("gpu-4", "any")
    assert count_units(choice, [node_record(T4)], [], "arm64") == Units(0, 0)


def test_what_a_patch_says_of_nodes() -> None:
    choice = parse_catalog(CATALOG.encode(), "test").choose("gpu-4", "any")
    nodes = [node_record(n) for n in (T4, A100)]
    tolerant = {"spec": {"tolerations": [{"key": "kept", "operator": "Exists"}]}}
    assert count_units(choice, nodes, [], patch=tolerant) == Units(12, 12)
    rule: Any = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{}]}}
    unknown = {"spec": {"affinity": {"nodeAffinity": rule}}}
    assert count_units(choice, nodes, [], patch=unknown) == Units()


@pytest.mark.parametrize(
    ("containers", "init", "asked"),
    [
        ([container()], [], None),
        ([container(1), container(2)], [], 3),
        ([container(1)], [container(4)], 4),  # it ends before the others begin
        ([container(1)], [container(2, restartPolicy="Always")], 3),
        ([], [container(2, restartPolicy="Always"), container(3)], 5),
        ([container(1)], [container(3), container(1, restartPolicy="Always")], 3),
        ([container("one")], [], None),  # what nobody can read takes nothing
    ],
)
def test_what_a_pod_asks_for(containers: list[Any], init: list[Any], asked: int | None) -> None:
    found = pod_requests(pod("t4", *containers, init=init)).amounts
    assert found == ({} if asked is None else {GPU: asked})
