"""Checks the catalog against the nodes: which have each device, whether each flavor fits one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING

from ....backends.kubernetes.kueue import KUEUE
from ....backends.kubernetes.lacks import find_lack
from ....backends.kubernetes.nodes import NodeNeeds, NodeRecord, node_record
from ....domain.errors import BadCatalog
from ....domain.quantities import format_resource
from ...display import formats
from ..result import CheckResult, Level, ok, problem, warning
from .api import ClusterApi, Manifest
from .installation import Installation

if TYPE_CHECKING:
    from ....flavors.catalog import Catalog, Choice


def check(api: ClusterApi, installation: Installation) -> Iterator[CheckResult]:
    """Check the catalog that the controller reads, and what the nodes have of it."""
    from ....flavors import SHIPPED, parse_catalog

    setting = installation.setting("catalog")
    path = setting or "The catalog that is shipped"
    text = installation.file(setting) if setting else SHIPPED.read_text()
    if text is None:
        yield warning(
            f"The catalog at {path} comes from no ConfigMap: it is not checked.",
            "In the controller's pod `jupyter-to-job flavors check` does it.",
        )
        return
    try:
        catalog = parse_catalog(text.encode(), path)
    except BadCatalog as error:
        for fault in error.faults:
            place = f"{path}:{fault.line}:{fault.column}"
            yield problem(f"{place}: {fault.message}", fault.hint or "Fix that line.")
        return
    nodes = [node_record(node) for node in api.items("/api/v1/nodes")]
    patch = installation.pod_patch
    if (patch_fault := installation.pod_patch_fault) is not None:
        hint = patch_fault.hint or "Mend the file of JUPYTER_TO_JOB_POD_PATCH."
        yield problem(patch_fault.message, hint)
    flavors = formats.plural(len(catalog.flavors), "flavor")
    devices = formats.plural(len(catalog.devices), "device")
    yield ok(f"{path}: {flavors}, {devices}; {formats.plural(len(nodes), 'node')}")
    fitting: set[str] = set()
    for name, choice in _by_device(catalog).items():
        result = _device(name, choice, nodes, patch)
        yield result
        fitting |= {name} if result.level is Level.OK else set()
    yield from _queues(api, catalog)
    for name in catalog.flavors:
        yield from _flavor(catalog, name, nodes, patch, fitting)


def _queues(api: ClusterApi, catalog: Catalog) -> Iterator[CheckResult]:
    """Yield whether Kueue is there, if flavors have queues of it."""
    having = [name for name, flavor in catalog.flavors.items() if flavor.queue]
    if not having:
        return
    groups = {group["name"] for group in api.get("/apis")["groups"]}
    flavors = f"{formats.plural(len(having), 'flavor')} with a queue ({', '.join(having)})"
    if KUEUE in groups:
        yield ok(f"Kueue is installed, for {flavors}")
    else:
        yield problem(
            f"Kueue is not installed, and there is {flavors}: such jobs are refused.",
            "Install Kueue, or take `queue` out of these flavors.",
        )


def _by_device(catalog: Catalog) -> dict[str, Choice]:
    """Return each device that a flavor offers, with that flavor."""
    choices = {c.device_name: c for name in catalog.flavors for c in catalog.choices(name)}
    return {name: choices[name] for name in catalog.devices if name in choices}


def _device(name: str, choice: Choice, nodes: Sequence[NodeRecord], patch: Manifest) -> CheckResult:
    from ....flavors.catalog import device_unit

    unit = device_unit(choice.device)
    having = NodeNeeds.of(choice, None, patch).having(unit, nodes)
    if having:
        sums = (
            format_resource(r, sum((n.allocatable.get(r, Decimal(0)) for n in having), Decimal(0)))
            for r in unit
            if any(r in node.capacity for node in having)
        )
        parts = [formats.plural(len(having), "node"), *sums]
        return ok(f"Device {name}: {', '.join(parts)}")
    why = _missing(choice, nodes, patch)
    if choice.device.autoscaled:
        return ok(f"Device {name}: no node now ({why}); it is autoscaled")
    return problem(
        f"No node has the device {name}: {why}.",
        "Correct resource, node_selector and tolerations in the catalog, or the node's labels and "
        "taints. If nodes are added when jobs wait, say `autoscaled: true`.",
    )


def _missing(choice: Choice, nodes: Sequence[NodeRecord], patch: Manifest) -> str:
    """Return which of a device's conditions no node satisfies, beside the others."""
    needs = NodeNeeds.of(choice, None, patch)
    if needs.resources and not needs.comparable(nodes):
        return f"no node reports any of {', '.join(needs.resources)}"
    for resource in needs.comparable(nodes):
        if not any(node.capacity.get(resource) for node in nodes):
            return f"no node has {resource}"
    having = [n for n in nodes if all(n.capacity.get(r) for r in needs.comparable(nodes))]
    for key, value in needs.selector.items():
        values = sorted({node.labels[key] for node in having if key in node.labels})
        if value not in values:
            others = f", but {', '.join(values)}" if values else " at all"
            return f"no such node has the label {key}={value}{others}"
    labelled = [n for n in having if all(n.labels.get(k) == v for k, v in needs.selector.items())]
    if not labelled:
        return "no node has all its labels at once"
    taints = sorted({str(t.get("key")) for node in labelled for t in node.taints})
    return f"its nodes have taints that it does not tolerate, of {', '.join(taints)}"


def _flavor(
    catalog: Catalog, name: str, nodes: Sequence[NodeRecord], patch: Manifest, devices: set[str]
) -> Iterator[CheckResult]:
    """Yield a problem of a flavor that fits no node with any of its devices."""
    choices = [c for c in catalog.choices(name) if c.device_name in devices]
    lacks = [find_lack(choice, nodes, None, patch) for choice in choices]
    missing = [lack for lack in lacks if lack is not None]
    if missing and len(missing) == len(lacks):
        yield problem(
            f"Flavor {name} fits no node: {missing[0].message}",
            "Give it less in the catalog, or add a node that has so much.",
        )
