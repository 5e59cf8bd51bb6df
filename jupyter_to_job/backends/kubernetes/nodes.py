"""Nodes as the controller knows them: which of them have a device, and could take its jobs."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal

from ...domain.errors import BadInput
from ...domain.quantities import parse_quantity
from ...flavors.catalog import Choice
from .records import Manifest
from .strategic_merge import merge

ARCHITECTURE = "kubernetes.io/arch"
"""The label of a node's processor architecture."""
OPERATING_SYSTEM = "kubernetes.io/os"
"""The label of a node's operating system."""
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
"""The part of a node affinity that the scheduler has to keep."""
_PASSING = "node.kubernetes.io/"
"""Taints of this prefix come and go with a node's health, or while it is cordoned."""
_BARRING = ("NoSchedule", "NoExecute")
"""Effects of taints that keep pods away."""


@dataclass(frozen=True)
class NodeRecord:
    """A node: `capacity` has what it offers, by resource, also what is in use or unhealthy now.

    `allocatable` is without what is unhealthy, or kept for the system.
    """

    name: str
    uid: str
    labels: Mapping[str, str] = field(default_factory=dict)
    capacity: Mapping[str, Decimal] = field(default_factory=dict)
    allocatable: Mapping[str, Decimal] = field(default_factory=dict)
    taints: tuple[Manifest, ...] = ()
    namespace: str = ""

    @property
    def architecture(self) -> str | None:
        """The processor's architecture, None where the node does not say it."""
        return self.labels.get(ARCHITECTURE)


@dataclass(frozen=True)
class NodeNeeds:
    """What a node must have for the jobs of a flavor and a device.

    Of `resources` those in `limits` may be only a scheduler's, such as the share of a GPU's memory:
    no node reports them. `has_affinity`: the administrator's patch requires more of a node, which
    is the scheduler's matter, too.
    """

    selector: Mapping[str, str] = field(default_factory=dict)
    resources: Mapping[str, Decimal] = field(default_factory=dict)
    tolerations: tuple[Manifest, ...] = ()
    limits: frozenset[str] = frozenset()
    has_affinity: bool = False

    @classmethod
    def of(
        cls,
        choice: Choice,
        architecture: str | None = None,
        patch: Manifest = {},  # noqa: B006 - it is never changed
    ) -> NodeNeeds:
        """Return what a choice in the catalog needs, but for cores and memory.

        `architecture` is that of the dev pod's image, in which most jobs run. `patch` is the
        administrator's, for the pods of all jobs.
        """
        device = choice.device
        own_image = choice.flavor.image or device.image
        by_image = {} if own_image else selector_of(architecture)
        placement = {
            "nodeSelector": {**by_image, **device.node_selector},
            "tolerations": [t.model_dump(exclude_none=True) for t in device.tolerations],
            "affinity": {},
        }
        changes = patch.get("spec") or {}
        changed = merge(placement, {key: changes[key] for key in placement if key in changes})
        of_nodes = (changed.get("affinity") or {}).get("nodeAffinity") or {}
        return cls(
            selector=changed.get("nodeSelector") or {},
            resources=choice.accelerators,
            tolerations=tuple(changed.get("tolerations") or ()),
            limits=frozenset(device.limits),
            has_affinity=bool(of_nodes.get(REQUIRED)),
        )

    def comparable(self, nodes: Collection[NodeRecord]) -> Mapping[str, Decimal]:
        """Return the resources that can be looked for on nodes, by what these report."""
        reported = {name for node in nodes for name in node.capacity}
        return {
            name: amount
            for name, amount in self.resources.items()
            if name in reported or name not in self.limits
        }

    def nodes(self, nodes: Collection[NodeRecord]) -> Collection[NodeRecord]:
        """Return the nodes that have the device, whether or not it is free now."""
        resources = self.comparable(nodes)
        if self.resources and not resources:
            return []
        return [node for node in nodes if self._fit(node, resources)]

    def _fit(self, node: NodeRecord, resources: Mapping[str, Decimal]) -> bool:
        labels, capacity = node.labels, node.capacity
        return (
            all(labels.get(key) == value for key, value in self.selector.items())
            and all(capacity.get(name, 0) >= amount for name, amount in resources.items())
            and self._tolerates(_lasting(node.taints))
        )

    def having(
        self, unit: Mapping[str, Decimal], nodes: Collection[NodeRecord]
    ) -> Collection[NodeRecord]:
        """Return the nodes that have so much of the device, however much a flavor asks for."""
        return replace(self, resources=unit).nodes(nodes)

    def takes_pods(self, node: NodeRecord) -> bool:
        """Tell whether no taint keeps pods away from a node now, as while it is cordoned."""
        return self._tolerates(node.taints)

    def _tolerates(self, taints: Iterable[Manifest]) -> bool:
        barring = (taint for taint in taints if taint.get("effect") in _BARRING)
        return all(any(tolerates(t, taint) for t in self.tolerations) for taint in barring)


def _lasting(taints: Iterable[Manifest]) -> Iterable[Manifest]:
    """Return the taints of a node but for those that pass."""
    return (taint for taint in taints if not str(taint.get("key", "")).startswith(_PASSING))


def tolerates(toleration: Manifest, taint: Manifest) -> bool:
    """Tell whether a toleration lets its pod onto a node with a taint, as the scheduler does.

    Of the comparisons of numbers it is not known, so they count as not tolerating.
    """
    if toleration.get("effect") not in (None, "", taint.get("effect")):
        return False
    if not toleration.get("key"):
        return toleration.get("operator") == "Exists"
    if toleration["key"] != taint.get("key"):
        return False
    operator = toleration.get("operator") or "Equal"
    same_value = toleration.get("value", "") == (taint.get("value") or "")
    return operator == "Exists" or (operator == "Equal" and same_value)


def selector_of(architecture: str | None) -> dict[str, str]:
    """Return the labels of nodes that can run an image; none where its architecture is unknown."""
    return {} if architecture is None else {ARCHITECTURE: architecture}


def node_record(document: Manifest) -> NodeRecord:
    """Project a node as the API answers it."""
    metadata = document["metadata"]
    status = document.get("status") or {}
    return NodeRecord(
        name=metadata["name"],
        uid=metadata["uid"],
        labels=metadata.get("labels") or {},
        capacity=amounts(status.get("capacity") or {}),
        allocatable=amounts(status.get("allocatable") or {}),
        taints=tuple(document.get("spec", {}).get("taints") or ()),
    )


def amounts(quantities: Mapping[str, str]) -> dict[str, Decimal]:
    """Return quantities of resources as numbers, without those that are none."""
    parsed = {name: _amount(text) for name, text in quantities.items()}
    return {name: amount for name, amount in parsed.items() if amount is not None}


def _amount(text: str) -> Decimal | None:
    try:
        return parse_quantity(str(text))
    except BadInput:
        return None
