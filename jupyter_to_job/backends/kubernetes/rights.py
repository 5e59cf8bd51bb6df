"""The controller's rights, as the Roles of k8s/ grant them. A test holds both to each other."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


class Right(NamedTuple):
    """One verb on one resource of an API group."""

    group: str
    resource: str
    verb: str

    def __str__(self) -> str:
        return f"{self.verb} {self.resource}"


def _rights(verbs_of: Mapping[tuple[str, str], str]) -> tuple[Right, ...]:
    return tuple(Right(*kind, verb) for kind, verbs in verbs_of.items() for verb in verbs.split())


IN_NAMESPACES = _rights(
    {
        ("", "pods"): "get list watch create delete",
        ("", "persistentvolumeclaims"): "get",
        ("", "events"): "list watch",
        ("events.k8s.io", "events"): "create",
        ("batch", "jobs"): "get list watch create delete",
    }
)
"""In each namespace of dev pods."""
IN_CLUSTER = _rights(
    {
        ("authentication.k8s.io", "tokenreviews"): "create",
        ("", "namespaces"): "get",
        ("", "nodes"): "list watch",
    }
)
"""On what belongs to no namespace."""
FOR_DEVICE_COUNTS = _rights({("", "pods"): "list watch"})
"""In all namespaces, where devices are counted."""
