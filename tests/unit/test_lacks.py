"""What no node has for a flavor and a device."""

from __future__ import annotations

from typing import Any

import pytest

from jupyter_to_job.backends.kubernetes.lacks import find_lack
from jupyter_to_job.backends.kubernetes.nodes import node_record
from jupyter_to_job.flavors import parse_catalog

CATALOG = """
apiVersion: jupyter-to-job.io/v1
default: {flavor: small, device: cpu}
flavors:
  small: {cpu: 500m, memory: 1Gi, devices: [cpu, scratch]}
  gpu-1: {cpu: 2, memory: 8Gi, gpus: 1, devices: [any, a100, tainted, grows]}
  gpu-8: {cpu: 2, memory: 8Gi, gpus: 8, devices: [any]}
  wide: {cpu: 64, memory: 1Gi, devices: [cpu]}
  both: {cpu: 8, memory: 48Gi, devices: [cpu]}
  slice: {cpu: 1, memory: 4Gi, devices: [tenth, share]}
  whole: {cpu: 4, memory: 1Gi, devices: [cpu]}
  disk: {cpu: 1, memory: 1Gi, ephemeral_storage: 500Gi, devices: [cpu]}
  gpus-of: {cpu: 1, memory: 4Gi, gpus: 1, devices: [mixed]}
devices:
  cpu: {title: CPU}
  scratch: {ephemeral_storage: 80Gi}
  any: {title: Any GPU, resource: nvidia.com/gpu}
  a100: {resource: nvidia.com/gpu, node_selector: {product: A100}}
  tenth: {limits: {nvidia.com/gpu: 1, nvidia.com/gpumem-percentage: 10, nvidia.com/gpucores: 10}}
  share: {limits: {example.org/share: 10}}
  mixed: {resource: nvidia.com/gpu, limits: {nvidia.com/gpumem: 3000}}
  grows: {resource: nvidia.com/gpu, node_selector: {product: H100}, autoscaled: true}
  tainted: {resource: nvidia.com/gpu, tolerations: [{key: gpu, operator: Exists}]}
"""
TAINT = {"key": "gpu", "value": "a", "effect": "NoSchedule"}


def node(name: str, spec: Any = None, **capacity: str) -> Any:
    amounts = {key.replace("gpu", "nvidia.com/gpu"): value for key, value in capacity.items()}
    metadata = {"name": name, "uid": name, "labels": {"kubernetes.io/arch": "amd64"}}
    return {"metadata": metadata, "spec": spec or {}, "status": {"capacity": amounts}}


WIDE = node("wide", cpu="16", memory="32Gi")
DEEP = node("deep", cpu="4", memory="64Gi")
DISK = node("disk", cpu="4020m", memory="8Gi", **{"ephemeral-storage": "50Gi"})
GPU = node("gpu", cpu="8", memory="32Gi", gpu="2")


def reserving(capacity: dict[str, str], allocatable: dict[str, str]) -> Any:
    """Return a node that keeps some for the system, and whose devices are unhealthy now."""
    status = {
        "capacity": {**capacity, "nvidia.com/gpu": "8"},
        "allocatable": {**allocatable, "nvidia.com/gpu": "0"},
    }
    return {**node("reserving"), "status": status}


SMALL = reserving({"cpu": "2", "memory": "8Gi"}, {"cpu": "1930m", "memory": "7Gi"})
LARGE = reserving({"cpu": "4", "memory": "16Gi"}, {"cpu": "3920m", "memory": "14Gi"})
TAINTED = node("tainted", {"taints": [TAINT]}, cpu="8", memory="32Gi", gpu="2")
CASES = {
    "it fits": ("gpu-1", "any", [WIDE, GPU], None),
    "no such device": ("gpu-1", "any", [WIDE], "No node has the device Any GPU now."),
    "a node is added": ("gpu-1", "grows", [GPU], None),
    "no such label": ("gpu-1", "a100", [GPU], "No node has the device a100 now."),
    "no nodes at all": ("small", "cpu", [], "No node has the device CPU now."),
    "a taint": ("gpu-1", "any", [TAINTED], "No node has the device Any GPU now."),
    "a taint that it tolerates": ("gpu-1", "tainted", [TAINTED], None),
    "fewer than asked for": (
        "gpu-8", "any", [GPU],
        "This flavor asks for 8 nvidia.com/gpu, and no node with Any GPU has over "
        "2 nvidia.com/gpu.",
    ),
    "cores that are kept for the system": (
        "gpu-1", "any", [SMALL],
        "This flavor asks for 2 CPUs, and no node with Any GPU has over 1.93 CPUs.",
    ),
    "devices that are unhealthy now": ("gpu-8", "any", [LARGE], None),
    "too wide": (
        "wide", "cpu", [WIDE, DEEP],
        "This flavor asks for 64 CPUs, and no node with CPU has over 16 CPUs.",
    ),
    "a share that HAMi's nodes do not report": ("slice", "tenth", [WIDE, GPU], None),
    "the same without a GPU": ("slice", "tenth", [WIDE], "No node has the device tenth now."),
    "a share of which nothing is reported": (
        "slice", "share", [WIDE, GPU], "No node has the device share now.",
    ),
    "a share beside a GPU": ("gpus-of", "mixed", [WIDE, GPU], None),
    "a share without its GPU": ("gpus-of", "mixed", [WIDE], "No node has the device mixed now."),
    "a share of which nodes report too little": (
        "gpus-of", "mixed", [{**GPU, "status": {"capacity": {**GPU["status"]["capacity"],
                                                           "nvidia.com/gpumem": "2000"}}}],
        "This flavor asks for 3000 nvidia.com/gpumem, and no node with mixed has over "
        "2000 nvidia.com/gpumem.",
    ),
    "all cores of a node, and none for the agent": (
        "whole", "cpu", [DEEP],
        "This flavor asks for 4 CPUs, the sidecars of its pod for 0.02 CPUs, and no node with CPU "
        "has over 4 CPUs.",
    ),
    "cores for the agent, too": ("whole", "cpu", [DISK], None),
    "disk": (
        "disk", "cpu", [DISK],
        "This flavor asks for 500 GiB of ephemeral storage, and no node with CPU has over "
        "50 GiB of ephemeral storage.",
    ),
    "disk of a device": (
        "small", "scratch", [DISK],
        "This flavor asks for 80 GiB of ephemeral storage, and no node with scratch has over "
        "50 GiB of ephemeral storage.",
    ),
    "each, but not both": (
        "both", "cpu", [WIDE, DEEP], "No node has as much of everything as this flavor asks for.",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("flavor", "device", "nodes", "message"), CASES.values(), ids=CASES)
def test_a_lack(flavor: str, device: str, nodes: list[Any], message: str | None) -> None:
    choice = parse_catalog(CATALOG.encode(), "test").choose(flavor, device)
    lack = find_lack(choice, [node_record(n) for n in nodes])
    assert (lack.message if lack else None) == message


def test_nodes_that_are_not_known() -> None:
    choice = parse_catalog(CATALOG.encode(), "test").choose("wide", None)
    assert find_lack(choice, None) is None


def test_an_architecture_that_no_node_has() -> None:
    choice = parse_catalog(CATALOG.encode(), "test").choose("small", None)
    assert find_lack(choice, [node_record(WIDE)], "amd64") is None
    assert find_lack(choice, [node_record(WIDE)], "arm64") is not None


def test_sidecars_with_a_patch() -> None:
    """It may change the agent's requests, and add sidecars; their limits count as requests."""
    choice = parse_catalog(CATALOG.encode(), "test").choose("whole", None)
    nodes = [node_record(node("node", cpu="4500m", memory="64Gi"))]
    agent = {"name": "agent", "resources": {"requests": {"cpu": "100m"}}}
    proxy = {"name": "proxy", "restartPolicy": "Always", "resources": {"limits": {"cpu": "500m"}}}
    fetch = {"name": "fetch", "resources": {"requests": {"cpu": "4"}}}  # it ends before the others

    def lack(*containers: Any) -> str | None:
        found = find_lack(choice, nodes, None, {"spec": {"initContainers": list(containers)}})
        return None if found is None else found.message

    assert lack(agent, fetch) is None
    assert lack(agent, proxy) == (
        "This flavor asks for 4 CPUs, the sidecars of its pod for 0.6 CPUs, and no node with CPU "
        "has over 4.5 CPUs."
    )
