"""Eve, who may do everything in the dev pods' namespace, and what the API server refuses her."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from tests.cluster.box.cluster import Cluster, KubectlError, until_taken
from tests.cluster.box.wait import wait_for
from tests.cluster.product import TEAM
from tests.cluster.side_by_side import once

EVE = "eve@example.org"
RBAC = "rbac.authorization.k8s.io"
RIGHTS: list[dict[str, Any]] = [
    {
        "apiVersion": f"{RBAC}/v1",
        "kind": "RoleBinding",
        "metadata": {"name": "eve", "namespace": TEAM},
        "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": "cluster-admin"},
        "subjects": [{"apiGroup": RBAC, "kind": "User", "name": EVE}],
    },
]


@once
def allow_eve(cluster: Cluster) -> None:
    """Give her every right there is in the namespace."""
    cluster.apply(*RIGHTS)
    until_allowed(cluster, EVE, TEAM)


def until_allowed(cluster: Cluster, user: str, namespace: str) -> None:
    """Wait until new rights of a user hold: the API server learns of them in its own time."""
    question = ("auth", "can-i", "create", "configmaps", f"--as={user}", "-n", namespace)
    until_taken(f"{user} has rights", lambda: cluster.kubectl(*question))  # "no" is an error, too


def as_user(cluster: Cluster, user: str, *command: str, stdin: object = None) -> str:
    """Run a command of kubectl for a user in the namespace, with a manifest as its input."""
    text = None if stdin is None else json.dumps(stdin)
    return cluster.kubectl("-n", TEAM, f"--as={user}", *command, stdin=text)


def refusal(cluster: Cluster, *command: str, by: str, stdin: object = None, user: str = EVE) -> str:
    """Return why the API server refuses what a user asks for: it must, in these words."""
    return _refusal_of(partial(as_user, cluster, user, *command, stdin=stdin), by)


def create(cluster: Cluster, manifest: Any, user: str = EVE, *, trial: bool = False) -> None:
    """Create an object for a user in the namespace; `trial`: nothing is stored."""
    cluster.create(manifest, user, TEAM, trial=trial)


def refusal_to_create(
    cluster: Cluster, manifest: Any, *, by: str, user: str = EVE, trial: bool = False
) -> str:
    """Return why the API server refuses to create an object: it must, in these words."""
    return _refusal_of(partial(create, cluster, manifest, user, trial=trial), by)


def _refusal_of(ask: Callable[[], object], by: str) -> str:
    with pytest.raises(KubectlError) as refused:
        ask()
    said = str(refused.value)
    assert by in said, said
    return said


def check_types(cluster: Cluster, name: str) -> None:
    """Check that the API server finds no fault in the types of a policy's expressions."""

    kind = "validatingadmissionpolicy"

    def status() -> Any:
        policy = json.loads(cluster.kubectl("get", kind, name, "-o=json"))
        seen = policy.get("status", {})
        return seen if seen.get("observedGeneration") == policy["metadata"]["generation"] else None

    wait_for("its types are checked", status)
    assert status()["typeChecking"].get("expressionWarnings", []) == []
