"""How many units of a device nodes have, and how many of them no pod has asked for.

It is what the scheduler counts: requests of pods, whether or not these use what they asked for.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from decimal import Decimal

from ...flavors.catalog import Choice, device_unit
from ..port import Units
from .nodes import NodeNeeds, NodeRecord, amounts
from .records import Manifest

Amounts = Mapping[str, Decimal]
_NONE = Decimal(0)


@dataclass(frozen=True)
class PodRequests:
    """A pod on a node that has not ended, and what it asked for of resources of devices."""

    namespace: str
    name: str
    uid: str
    node: str
    amounts: Amounts


def pod_requests(document: Manifest) -> PodRequests:
    """Project any pod of the cluster as the API answers it."""
    metadata, spec = document["metadata"], document["spec"]
    return PodRequests(
        namespace=metadata["namespace"],
        name=metadata["name"],
        uid=metadata["uid"],
        node=spec.get("nodeName") or "",
        amounts=_asked(spec),
    )


def _asked(spec: Manifest) -> Amounts:
    """Return what a pod needs at its most, of the resources that devices have.

    Containers and sidecars run beside each other, and an init container beside the sidecars that
    are listed before it.
    """
    sidecars: dict[str, Decimal] = defaultdict(Decimal)
    most: dict[str, Decimal] = defaultdict(Decimal)
    for container in spec.get("initContainers") or ():
        is_sidecar = container.get("restartPolicy") == "Always"
        for name, amount in _requests(container).items():
            most[name] = max(most[name], sidecars[name] + amount)
            if is_sidecar:
                sidecars[name] += amount
    amounts = dict(sidecars)
    for container in spec.get("containers") or ():
        for name, amount in _requests(container).items():
            amounts[name] = amounts.get(name, _NONE) + amount
    together = {name: max(amounts.get(name, _NONE), most[name]) for name in {*amounts, *most}}
    return {name: amount for name, amount in together.items() if amount}


def _requests(container: Manifest) -> Amounts:
    """Return a container's requests. A device's resource has its vendor's name before a slash."""
    requests = (container.get("resources") or {}).get("requests") or {}
    return amounts({name: text for name, text in requests.items() if "/" in name})


def count_units(
    choice: Choice,
    nodes: Collection[NodeRecord],
    pods: Collection[PodRequests],
    architecture: str | None = None,
    patch: Manifest = {},  # noqa: B006 - it is never changed
) -> Units:
    """Count the units of a choice's device on nodes that take its jobs now.

    Nothing is known of a device that some scheduler alone counts, or where the administrator's
    patch requires more of a node. Of an autoscaled device there is no total.
    """
    device = choice.device
    unit = device_unit(device)
    needs = NodeNeeds.of(choice, architecture, patch)
    reported = {name for node in nodes for name in node.capacity}
    is_counted = device.resource is not None or unit.keys() <= reported
    if not unit or not is_counted or needs.has_affinity:
        return Units()
    used: dict[str, dict[str, Decimal]] = defaultdict(lambda: defaultdict(Decimal))
    for pod in pods:
        for name, amount in pod.amounts.items():
            used[pod.node][name] += amount
    taking = [node for node in needs.having(unit, nodes) if needs.takes_pods(node)]
    total = sum(_fitting(unit, node.allocatable) for node in taking)
    free = sum(_fitting(unit, _left(node.allocatable, used[node.name])) for node in taking)
    return Units(free, None if device.autoscaled else total)


def _left(total: Amounts, used: Amounts) -> Amounts:
    return {name: amount - used.get(name, _NONE) for name, amount in total.items()}


def _fitting(unit: Amounts, total: Amounts) -> int:
    """Return how many units fit into what is there."""
    return max(0, min(int(total.get(name, _NONE) // amount) for name, amount in unit.items()))
