"""What fields of the catalog must say together: names that exist, accelerators that add up.

Looks at plain values, not at models, so that these faults show together with those of the models.
"""

from __future__ import annotations

from collections.abc import Iterator
from difflib import get_close_matches
from typing import Any, NamedTuple

from .yaml_reader import clip

_LONGEST_GUESS = 64


class Finding(NamedTuple):
    """A fault at a path of keys and indices; `at_key` puts it at the key instead of the value."""

    path: tuple[Any, ...]
    message: str
    hint: str
    at_key: bool = False


def findings(catalog: Any) -> Iterator[Finding]:
    """Yield what is wrong between the parts of `catalog`, plain values of any shape."""
    whole = _mapping(catalog)
    flavors = {k: _mapping(v) for k, v in _mapping(whole.get("flavors")).items()}
    devices = {k: _mapping(v) for k, v in _mapping(whole.get("devices")).items()}
    for name, flavor in flavors.items():
        yield from _offered(("flavors", name), flavor, devices)
    for name, device in devices.items():
        resource, limits = device.get("resource"), _mapping(device.get("limits"))
        if isinstance(resource, str) and resource in limits:
            path = ("devices", name, "limits", resource)
            message = f"`{clip(resource)}` is in `resource` and in `limits`."
            hint = "Keep `resource` if the flavor's `gpus` counts it, else `limits`."
            yield Finding(path, message, hint, at_key=True)
    yield from _default(_mapping(whole.get("default")), flavors)


def did_you_mean(name: str, names: list[str], otherwise: str) -> str:
    """Return the nearest of `names` as a question, or `otherwise`."""
    near = get_close_matches(name, names, 1) if len(name) <= _LONGEST_GUESS else []
    return f"Did you mean `{near[0]}`?" if near else otherwise


def _offered(
    path: tuple[str, ...], flavor: dict[str, Any], devices: dict[str, dict[str, Any]]
) -> Iterator[Finding]:
    """Check the devices that a flavor offers."""
    listed = flavor.get("devices")
    offered = listed if isinstance(listed, list) else []
    gpus = str(flavor.get("gpus", 0))
    none = gpus.isdecimal() and int(gpus[:9]) == 0
    some = gpus.isdecimal() and not none
    known = []
    for index, device in enumerate(offered):
        here = (*path, "devices", index)
        if not isinstance(device, str):
            continue
        if device not in devices:
            message = f"There is no device `{clip(device)}`."
            yield Finding(here, message, did_you_mean(device, list(devices), _one_of(devices)))
            continue
        if offered.index(device) != index:
            yield Finding(here, f"`{device}` is listed twice.", "List it once.")
        known.append(devices[device])
        resource = devices[device].get("resource")
        if none and resource is not None:
            message = f"Device `{device}` has a `resource`, but this flavor has no `gpus`."
            yield Finding(here, message, "Give the flavor `gpus: 1`, or take the device out.")
    plain = [not (d.get("resource") or d.get("limits")) for d in known]
    if some and plain and all(plain) and len(plain) == len(offered):
        message = "This flavor has `gpus`, but none of its devices has a `resource`."
        hint = "Add a device with a `resource` or `limits`, or delete `gpus`."
        yield Finding((*path, "gpus"), message, hint)


def _default(default: dict[str, Any], flavors: dict[str, dict[str, Any]]) -> Iterator[Finding]:
    flavor, device = default.get("flavor"), default.get("device")
    if not isinstance(flavor, str):
        return
    if flavor not in flavors:
        hint = did_you_mean(flavor, list(flavors), _one_of(flavors))
        yield Finding(("default", "flavor"), f"There is no flavor `{clip(flavor)}`.", hint)
        return
    offered = flavors[flavor].get("devices")
    names = [n for n in offered if isinstance(n, str)] if isinstance(offered, list) else []
    if isinstance(device, str) and names and device not in names:
        message = f"Flavor `{clip(flavor)}` does not offer device `{clip(device)}`."
        yield Finding(("default", "device"), message, did_you_mean(device, names, _one_of(names)))


def _one_of(names: Any) -> str:
    return clip(f"There are: {', '.join(names)}", 200) + "." if names else "There is none yet."


def _mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
