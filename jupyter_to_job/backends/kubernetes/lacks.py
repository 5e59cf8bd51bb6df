"""What no node has for a choice of flavor and device: a job of it would wait for a new node.

What is free now is the scheduler's matter.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal

from ...domain.quantities import EPHEMERAL_STORAGE, format_resource
from ...flavors.catalog import Choice
from .nodes import NodeNeeds, NodeRecord, amounts
from .records import Manifest
from .sidecars import sidecar_requests

_ANY = Decimal("0.000001")
"""An amount that a node has of each resource that it has at all."""
_NONE = Decimal(0)


@dataclass(frozen=True)
class Lack:
    """What happened, and what to do."""

    message: str
    hint: str


def find_lack(
    choice: Choice,
    nodes: Collection[NodeRecord] | None,
    architecture: str | None = None,
    patch: Manifest = {},  # noqa: B006 - it is never changed
) -> Lack | None:
    """Return what no node has of what a choice needs; None if one has it all, or none is known.

    The pod's sidecars ask for their part of the same node. Of an autoscaled device nothing is
    missing: a node is added that has it.
    `architecture` is that of the dev pod's image, `patch` the administrator's. What a node affinity
    in it requires is not looked at.
    """
    if nodes is None or choice.device.autoscaled:
        return None
    needs = NodeNeeds.of(choice, architecture, patch)
    having = replace(needs, resources=dict.fromkeys(needs.resources, _ANY)).nodes(nodes)
    title = choice.device.title or choice.device_name
    if not having:
        return Lack(
            f"No node has the device {title} now.",
            "The job waits until one joins, as in a pool that grows from nothing. "
            "Another device may start at once.",
        )
    comparable = needs.comparable(nodes)
    requests = {
        name: amount
        for name, amount in _requests(choice).items()
        if name in comparable or name not in needs.resources
    }
    sidecars = sidecar_requests(patch)
    demand = {
        name: requests.get(name, _NONE) + sidecars.get(name, _NONE)
        for name in {**requests, **sidecars}
    }
    offers = [_offer(node, needs) for node in having]
    if any(all(offer.get(name, _NONE) >= demand[name] for name in demand) for offer in offers):
        return None
    hint = "The job waits until a larger one joins. A smaller flavor may start at once."
    largest = {name: max(offer.get(name, _NONE) for offer in offers) for name in demand}
    missing = next((name for name, need in demand.items() if need > largest[name]), None)
    if missing is None:
        return Lack("No node has as much of everything as this flavor asks for.", hint)
    request = requests.get(missing, _NONE)
    wish = f"This flavor asks for {format_resource(missing, request)}"
    if request <= largest[missing]:
        wish += f", the sidecars of its pod for {format_resource(missing, sidecars[missing])}"
    most = format_resource(missing, largest[missing])
    return Lack(f"{wish}, and no node with {title} has over {most}.", hint)


def _requests(choice: Choice) -> Mapping[str, Decimal]:
    """Return what the notebook's container asks for."""
    storage = choice.flavor.ephemeral_storage or choice.device.ephemeral_storage
    return {**choice.demand, **({} if storage is None else amounts({EPHEMERAL_STORAGE: storage}))}


def _offer(node: NodeRecord, needs: NodeNeeds) -> Mapping[str, Decimal]:
    """Return what a node has for pods: of cores, memory and disk without the system's part.

    Devices count also while they are unhealthy: they may come back.
    """
    devices = {name: node.capacity[name] for name in needs.resources if name in node.capacity}
    return {**node.capacity, **node.allocatable, **devices}
