"""What a job gets of its surroundings, in few characters: preflight tells it, and a submission may
send it back.

Nodes, claims, catalog and dev pod may change between a dialog and its SEND. Whoever says what they
were told gets a job that runs so, or hears what is another now. The words are digests: they are
compared and nothing else.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from ...domain.errors import PlanChanged
from ...exchange import Request

DIGITS = 16
_SHOWN_ONLY = frozenset(["title", "description", "allowed"])
"""Fields of flavors and devices that no job notices."""
_PARTS = {
    "flavor": "the flavor",
    "device": "the device",
    "folders": "which folders the job sees",
    "image": "the image",
    "pod": "the user or the variables of your pod",
}
"""The parts of a plan, and what they are called."""


def plan_of(request: Request, origin: Mapping[str, Any] | None) -> dict[str, str]:
    """Return the plan of a request from the dev pod that `origin` describes, None for no pod."""
    pod = origin or {}
    mounts = [m for m in pod.get("mounts") or [] if m["path"] in request.mounts]
    own_image = request.flavor_spec.get("image") or request.device_spec.get("image")
    contents: dict[str, Any] = {
        "flavor": [request.flavor, _resources(request.flavor_spec)],
        "device": [request.device, _resources(request.device_spec)],
        "folders": [request.isolated, request.mounts, mounts],
        "image": own_image or [pod.get("image"), pod.get("architecture")],
        "pod": [pod.get(key) for key in ("security_context", "env", "env_sources", "env_from")],
    }
    return {part: _digest(contents[part]) for part in _PARTS}


def require_plan(promise: Mapping[str, str] | None, plan: Mapping[str, str]) -> None:
    """Raise PlanChanged, naming the parts, where `plan` is not what `promise` says.

    That is the plan that somebody was told. None, or a part that is missing: nothing was said of
    it.
    """
    differences = [part for part, digest in (promise or {}).items() if plan.get(part) != digest]
    if differences:
        names = ", ".join(_PARTS.get(part, part) for part in differences)
        raise PlanChanged(
            f"What the job would get has changed since you were told: {names}.",
            "Look at what is said of it now, and send it again.",
        )


def _resources(spec: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in spec.items() if key not in _SHOWN_ONLY}


def _digest(content: object) -> str:
    text = json.dumps(content, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:DIGITS]
