"""A strategic merge patch of a pod, with the merge keys of Kubernetes' own API.

The API server merges only what it has stored, and a job's pod is made of a template that is not.
"""

from __future__ import annotations

from typing import Any

from ...domain.errors import BadInput
from .records import Manifest

MERGE_KEYS = {
    "containers": "name",
    "initContainers": "name",
    "volumes": "name",
    "env": "name",
    "volumeMounts": "mountPath",
    "volumeDevices": "devicePath",
    "ports": "containerPort",
    "imagePullSecrets": "name",
    "hostAliases": "ip",
    "topologySpreadConstraints": "topologyKey",
    "resourceClaims": "name",
}
"""Lists of objects that are merged one by one, and what tells these apart: `patchMergeKey`."""
APPENDED = frozenset(["tolerations"])
"""Lists to which a patch adds, though Kubernetes would replace them: the device has its own."""
_RETAIN_KEYS = frozenset(["volumes", "resourceClaims"])
"""Lists whose objects are one of several kinds: another kind replaces the whole object."""
_DIRECTIVE = "$patch"


def merge(value: Manifest, patch: Manifest, where: str = "") -> Manifest:
    """Return `value` with `patch` merged into it. A null takes a field away.

    Raises BadInput for a patch of another shape; `where` is its place in messages.
    """
    directive = patch.get(_DIRECTIVE)
    patch = {key: part for key, part in patch.items() if key != _DIRECTIVE}
    if directive == "replace":
        return patch
    if directive is not None:
        raise _wrong(where, f"{_DIRECTIVE} may be `replace` here, and `delete` in lists")
    merged = dict(value)
    for key, part in patch.items():
        place = f"{where}.{key}".lstrip(".")
        if part is None:
            merged.pop(key, None)
        elif key.startswith("$"):
            raise _wrong(place, "this directive is not known")
        else:
            merged[key] = _merged(key, merged.get(key), part, place)
    return merged


def _merged(key: str, value: Any, part: Any, where: str) -> Any:
    """Return what becomes of one field."""
    if isinstance(part, dict):
        if value is not None and not isinstance(value, dict):
            raise _wrong(where, "it is no mapping")
        return merge(value or {}, part, where)
    if value is not None and isinstance(value, dict | list) and not isinstance(part, type(value)):
        raise _wrong(where, "it is a list" if isinstance(value, list) else "it is a mapping")
    if isinstance(part, list) and key in APPENDED:
        return [*(value or []), *(entry for entry in part if entry not in (value or []))]
    if isinstance(part, list) and key in MERGE_KEYS:
        return _merged_list(key, value or [], part, where)
    return part


def _merged_list(key: str, value: list[Manifest], part: list[Any], where: str) -> list[Manifest]:
    """Merge objects by their key; new ones come last, and those to delete go."""
    merge_key = MERGE_KEYS[key]
    merged = {entry[merge_key]: entry for entry in value}
    for entry in part:
        if not isinstance(entry, dict) or merge_key not in entry:
            raise _wrong(where, f"each entry needs {merge_key!r}")
        name = entry[merge_key]
        place = f"{where}[{name}]"
        if entry.get(_DIRECTIVE) == "delete":
            merged.pop(name, None)
        elif key in _RETAIN_KEYS and name in merged:
            is_same_kind = entry.keys() & merged[name].keys() - {merge_key}
            merged[name] = merge(merged[name] if is_same_kind else {}, entry, place)
        else:
            merged[name] = merge(merged.get(name, {}), entry, place)
    return list(merged.values())


def _wrong(where: str, problem: str) -> BadInput:
    return BadInput(f"The pod patch is wrong at {where or 'its beginning'}: {problem}.")
