"""The catalog as users see it: what they may choose, and why not."""

from __future__ import annotations

from typing import Any

from ..flavors import Catalog


def describe(catalog: Catalog, groups: frozenset[str]) -> dict[str, Any]:
    """Return `{default, flavors, devices}` as `GET flavors` answers it."""
    flavors = {}
    for name, flavor in catalog.flavors.items():
        allowed = not flavor.allowed.groups or bool(groups.intersection(flavor.allowed.groups))
        reason = None if allowed else f"For the groups {', '.join(flavor.allowed.groups)}."
        shown = flavor.model_dump(mode="json", exclude={"allowed", "env", "labels", "annotations"})
        flavors[name] = {**shown, "allowed": allowed, "unavailable_reason": reason}
    devices = {
        name: {
            "title": device.title,
            "description": device.description,
            "isolation": device.isolation,
            "free": None,
            "total": None,
        }
        for name, device in catalog.devices.items()
    }
    return {"default": catalog.default.model_dump(), "flavors": flavors, "devices": devices}
