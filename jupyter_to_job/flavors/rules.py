"""Rules between fields of the catalog: names must exist, accelerators must match.

The rules look at plain values, not at models: so these faults show together with the models' own.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from ..domain.suggestions import nearest_name
from .yaml_reader import clip

ALLOWED_HINT = "List one group, or delete `allowed` if the flavor is for everybody."


class Finding(NamedTuple):
    """A fault at a path of keys and indices; `at_key` puts it at the key instead of the value."""

    path: tuple[Any, ...]
    message: str
    hint: str
    at_key: bool = False


def check_rules(catalog: Any) -> Iterator[Finding]:
    """Yield the contradictions between parts of `catalog`, plain values of any shape."""
    document = _mapping(catalog)
    flavors = {k: _mapping(v) for k, v in _mapping(document.get("flavors")).items()}
    devices = {k: _mapping(v) for k, v in _mapping(document.get("devices")).items()}
    for name, flavor in flavors.items():
        yield from _check_devices(("flavors", name), flavor, devices)
        yield from _check_allowed(("flavors", name, "allowed"), flavor.get("allowed"))
    for name, device in devices.items():
        yield from _check_limits(("devices", name, "limits"), device)
    yield from _check_default(_mapping(document.get("default")), flavors)


def name_hint(name: str, names: Iterable[str], fallback: str) -> str:
    """Return the nearest of `names` as a question, or `fallback`."""
    nearest = nearest_name(name, names)
    return f"Did you mean `{nearest}`?" if nearest else fallback


def _check_devices(
    path: tuple[str, ...], flavor: dict[str, Any], devices: dict[str, dict[str, Any]]
) -> Iterator[Finding]:
    """Check the devices that a flavor offers."""
    offered = _list(flavor.get("devices"))
    gpus = str(flavor.get("gpus", 0))
    has_gpus = int(gpus[:9]) > 0 if gpus.isdecimal() else None
    existing = []
    for index, device in enumerate(offered):
        item = (*path, "devices", index)
        if not isinstance(device, str):
            continue
        if device not in devices:
            message = f"There is no device `{clip(device)}`."
            yield Finding(item, message, name_hint(device, devices, _one_of(devices)))
            continue
        if offered.index(device) != index:
            yield Finding(item, f"`{device}` is listed twice.", "List it once.")
        existing.append(devices[device])
        if has_gpus is False and devices[device].get("resource") is not None:
            message = f"Device `{device}` has a `resource`, but this flavor has no `gpus`."
            yield Finding(item, message, "Give the flavor `gpus: 1`, or take the device out.")
    plain = [not (d.get("resource") or d.get("limits")) for d in existing]
    if has_gpus and plain and all(plain) and len(plain) == len(offered):
        message = "This flavor has `gpus`, but none of its devices has a `resource`."
        hint = "Add a device with a `resource` or `limits`, or delete `gpus`."
        yield Finding((*path, "gpus"), message, hint)


def _check_allowed(path: tuple[str, ...], allowed: Any) -> Iterator[Finding]:
    """Check that `allowed` names a group: whoever empties the list may mean nobody."""
    if allowed in ({}, {"groups": []}):
        yield Finding(path, "`allowed` names no group.", ALLOWED_HINT)


def _check_limits(path: tuple[str, ...], device: dict[str, Any]) -> Iterator[Finding]:
    """Check that nothing in the `limits` of a device is told elsewhere, too."""
    resource, limits = device.get("resource"), _mapping(device.get("limits"))
    if isinstance(resource, str) and resource in limits:
        message = f"`{clip(resource)}` is in `resource` and in `limits`."
        hint = "Keep `resource` if the flavor's `gpus` counts it, else `limits`."
        yield Finding((*path, resource), message, hint, at_key=True)
    for name in ("cpu", "memory"):
        if name in limits:
            message = f"`{name}` belongs to a flavor, not to the `limits` of a device."
            hint = f"Delete it, and give each flavor of this device the `{name}` it needs."
            yield Finding((*path, name), message, hint, at_key=True)


def _check_default(
    default: dict[str, Any], flavors: dict[str, dict[str, Any]]
) -> Iterator[Finding]:
    flavor, device = default.get("flavor"), default.get("device")
    if not isinstance(flavor, str):
        return
    if flavor not in flavors:
        hint = name_hint(flavor, flavors, _one_of(flavors))
        yield Finding(("default", "flavor"), f"There is no flavor `{clip(flavor)}`.", hint)
        return
    names = [n for n in _list(flavors[flavor].get("devices")) if isinstance(n, str)]
    if isinstance(device, str) and names and device not in names:
        message = f"Flavor `{clip(flavor)}` does not offer device `{clip(device)}`."
        yield Finding(("default", "device"), message, name_hint(device, names, _one_of(names)))


def _one_of(names: Any) -> str:
    return clip(f"There are: {', '.join(names)}", 200) + "." if names else "There is none yet."


def _mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
