"""The controller has the rights that it uses, and no others: by what the other tests made it do.

The API server's audit log tells what was used, and its roles what was granted.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from tests.cluster.box.audit import Request
from tests.cluster.box.boot import Box
from tests.cluster.product import LATER, LEAVING, LISTED, NAMESPACE, DevPod

pytestmark = pytest.mark.last
CONTROLLER = f"system:serviceaccount:{NAMESPACE}:controller"
WITHOUT_RIGHTS = [
    f"system:serviceaccount:{NAMESPACE}:default",
    *(f"system:serviceaccount:{namespace}:default" for namespace in (*LISTED, LATER)),
]
"""Of dev pods, job pods and couriers."""
HAVE_NO_ROLE = (LATER, LEAVING)
"""Namespaces that a test makes or deletes: meanwhile the controller asks there, and is refused."""


@dataclass(frozen=True, order=True)
class Right:
    """A verb on a kind of resource, in a namespace or ("") in all of them."""

    namespace: str
    group: str
    resource: str
    verb: str

    def everywhere(self) -> Right:
        """Return the same in all namespaces."""
        return replace(self, namespace="")


def granted(box: Box) -> set[Right]:
    """Return what the bindings of the controller's account grant it."""
    account = {"kind": "ServiceAccount", "name": "controller", "namespace": NAMESPACE}
    kinds = "rolebindings,clusterrolebindings"
    found = json.loads(box.kubectl("get", kinds, "--all-namespaces", "-o=json"))["items"]
    bindings = [binding for binding in found if account in binding.get("subjects", [])]
    return {right for binding in bindings for right in rights_of(box, binding)}


def rights_of(box: Box, binding: Any) -> Iterator[Right]:
    """Yield what a binding grants."""
    role, namespace = binding["roleRef"], binding["metadata"].get("namespace", "")
    for rule in box.get(role["kind"], role["name"], namespace)["rules"]:
        for group in rule["apiGroups"]:
            for resource in rule["resources"]:
                for verb in rule["verbs"]:
                    yield Right(namespace, group, resource, verb)


def right_for(request: Request) -> Right:
    """Return the right that a request needs."""
    resource = "/".join(filter(None, (request.resource, request.subresource)))
    return Right(request.namespace, request.group, resource, request.verb)


def test_the_controller_asks_for_what_it_may(dev_pod: DevPod, box: Box) -> None:
    """Nothing is refused for want of a right, and nothing goes by a right that others gave it."""
    assert dev_pod.cluster is box  # the product is installed
    may = granted(box)
    asked = [request for request in box.audit.requests(CONTROLLER) if request.resource]
    assert asked
    assert {
        f"{request.verb} {request.uri}"
        for request in asked
        if request.namespace not in HAVE_NO_ROLE
        and not {right_for(request), right_for(request).everywhere()} & may
    } == set()


@pytest.mark.parametrize("account", WITHOUT_RIGHTS)
def test_pods_of_users_ask_for_nothing(dev_pod: DevPod, box: Box, account: str) -> None:
    """Neither dev pods nor agents nor couriers speak with the API server."""
    assert dev_pod.cluster is box  # the product is installed
    assert [f"{r.verb} {r.uri}" for r in box.audit.requests(account)] == []


def test_each_right_was_used(dev_pod: DevPod, box: Box, request: pytest.FixtureRequest) -> None:
    assert dev_pod.cluster is box  # the product is installed
    missing = left_out(request.session)
    if missing:
        pytest.skip(f"only a part of the suite ran: {len(missing)} tests did not, as {missing[0]}")
    if request.session.testsfailed:
        pytest.skip("other tests failed, so that the controller may not have done all it does")
    used = {right_for(r).everywhere() for r in box.audit.requests(CONTROLLER) if r.is_allowed}
    assert {right.everywhere() for right in granted(box)} - used == set()


def left_out(session: pytest.Session) -> list[str]:
    """Return the tests of this folder that do not run in this session."""
    here = Path(__file__).parent
    there_are = {
        f"{file.name}::{node.name}"
        for file in here.glob("test_*.py")
        for node in ast.parse(file.read_text()).body
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
    }
    run = {
        f"{i.path.name}::{i.originalname}" for i in session.items if isinstance(i, pytest.Function)
    }
    return sorted(there_are - run)
