"""The catalog as users see it: which flavors they may choose, what is free, and why not."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from ..backends.port import Resource, Units
from ..domain.errors import Refused
from ..domain.quantities import format_resource
from ..domain.suggestions import no_device, no_flavor

if TYPE_CHECKING:
    from ..flavors.catalog import Catalog
    from ..flavors.models import Device

Resources = Mapping[str, Resource]
"""A backend's resources by name; it has none of a resource that is not listed."""


def describe(
    catalog: Catalog,
    groups: frozenset[str],
    resources: Resources | None = None,
    units: Mapping[str, Units] = {},
) -> dict[str, Any]:
    """Return `{default, flavors, devices}` as `GET flavors` answers it.

    `resources` is the backend's view; None where it has none: then everything may fit. What tells
    nodes apart does not count there, so that two devices may be the same (`same_as`). `units` has
    the numbers of devices that somebody else has counted.
    """
    flavors = {}
    for name, flavor in catalog.flavors.items():
        entry = flavor.model_dump(mode="json", exclude={"allowed", "env", "labels", "annotations"})
        allowed, reason = _available(catalog, name, groups, resources)
        flavors[name] = {**entry, "allowed": allowed, "unavailable_reason": reason}
    devices = {}
    for name, device in catalog.devices.items():
        counted = units.get(name) or _units(device, resources)
        has_twins = resources is not None and counted.total != 0
        devices[name] = {
            "title": device.title,
            "description": device.description,
            "isolation": device.isolation,
            "autoscaled": device.autoscaled,
            "same_as": _twin(catalog, name) if has_twins else None,
            **counted._asdict(),
        }
    return {"default": catalog.default.model_dump(), "flavors": flavors, "devices": devices}


def require_choice(catalog: Mapping[str, Any], flavor: str | None, device: str | None) -> None:
    """Check a flavor and a device by what `describe` returned; None: what the catalog takes.

    Raises UnknownChoice and Refused, as `Catalog.choose` does.
    """
    flavor = catalog["default"]["flavor"] if flavor is None else flavor
    entry = catalog["flavors"].get(flavor)
    if entry is None:
        raise no_flavor(flavor, catalog["flavors"])
    if device is not None and device not in entry["devices"]:
        raise no_device(device, flavor, entry["devices"])
    if not entry["allowed"]:
        raise Refused(
            f"Flavor {flavor!r} is not for you. {entry['unavailable_reason']}",
            "Choose another flavor, or ask your administrator.",
        )


def fitting(
    catalog: Catalog, resources: Resources | None, groups: frozenset[str] = frozenset()
) -> list[str]:
    """Return the names of the flavors that a member of `groups` may use and that can run here."""
    return [
        name
        for name in catalog.flavors
        if _available(catalog, name, groups, resources) == (True, None)
    ]


def _available(
    catalog: Catalog, name: str, groups: frozenset[str], resources: Resources | None
) -> tuple[bool, str | None]:
    """Return whether the groups allow a flavor, and why it is unavailable; None if it is not."""
    flavor = catalog.flavors[name]
    if not flavor.permits(groups):
        return False, f"For the groups {', '.join(flavor.allowed.groups)}."
    return True, None if resources is None else _misfit(catalog, name, resources)


def _misfit(catalog: Catalog, name: str, resources: Resources) -> str | None:
    """Return why no device of a flavor fits, of the one that lacks least; None if one fits."""
    totals = {key: resource.total for key, resource in resources.items()}
    reasons = []
    for choice in catalog.choices(name):
        lack = choice.lacking(totals)
        if lack is None:
            return None
        resource, need, total = lack
        has = "there is none here"
        if total:
            has = f"there {'is' if total == 1 else 'are'} {format_resource(resource, total)} in all"
        reasons.append((not total, f"Needs {format_resource(resource, need)}; {has}."))
    return min(reasons, key=lambda reason: reason[0])[1]


def _twin(catalog: Catalog, name: str) -> str | None:
    """Return the first device of a catalog that takes the same resources; None for the first."""
    from ..flavors.catalog import device_unit

    unit = device_unit(catalog.devices[name])
    twins = (twin for twin, device in catalog.devices.items() if device_unit(device) == unit)
    first_twin = next(twins)
    return None if first_twin == name or not unit else first_twin


def _units(device: Device, resources: Resources | None) -> Units:
    """Return how many units of a device a backend with these resources has."""
    from ..flavors.catalog import device_unit  # pydantic: not while a server starts

    unit = device_unit(device)
    if resources is None or not unit:
        return Units()
    none = Resource(Decimal(0), Decimal(0))
    amounts = [(resources.get(name, none), amount) for name, amount in unit.items()]
    total = min(int(r.total // amount) for r, amount in amounts)
    free = [int(r.free // amount) for r, amount in amounts if r.free is not None]
    is_known = len(free) == len(amounts) or total == 0
    return Units(min(total, *free) if is_known else None, total)
