"""Checks the rights of the controller's service account, one verb at a time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from ....backends.kubernetes.rights import FOR_DEVICE_COUNTS, IN_CLUSTER, IN_NAMESPACES, Right
from ..result import CheckResult, ok, problem, warning
from .api import ClusterApi, Manifest
from .installation import EVERYWHERE, Installation

_AT_A_TIME = 8
"""Questions at a time: there may be a hundred namespaces."""
_REVIEWS = "/apis/authorization.k8s.io/v1"


def check(api: ClusterApi, installation: Installation) -> Iterator[CheckResult]:
    """Check what the controller needs everywhere, and in each namespace of dev pods."""
    account = installation.account
    missing = partial(_missing, api, account, is_self=_whoami(api) == account)
    yield _told("In the whole cluster", missing(IN_CLUSTER), IN_CLUSTER, "Apply k8s/base.")
    for namespace in installation.namespaces:
        if namespace == EVERYWHERE:
            faults = missing(IN_NAMESPACES)
            fix = "Apply k8s/overlays/whole-cluster, or list the namespaces of dev pods."
            yield _told("In all namespaces", faults, IN_NAMESPACES, fix)
        else:
            faults = missing(IN_NAMESPACES, namespace)
            fix = f"Apply k8s/dev-namespace in it: `namespace: {namespace}` in a kustomization."
            yield _told(f"In {namespace}", faults, IN_NAMESPACES, fix)
    if installation.counts_devices and missing(FOR_DEVICE_COUNTS):
        yield warning(
            "It may not list and watch all pods, so users do not see how many devices are free.",
            "Add the component k8s/components/device-counts to your overlay.",
        )


def _told(place: str, missing: list[Right], rights: tuple[Right, ...], fix: str) -> CheckResult:
    if not missing:
        return ok(f"{place}: all {len(rights)} that it needs")
    return problem(f"{place} the controller may not: {', '.join(map(str, missing))}.", fix)


def _whoami(api: ClusterApi) -> str:
    review = api.create("/apis/authentication.k8s.io/v1/selfsubjectreviews", {})
    return str(review["status"]["userInfo"].get("username", ""))


def _missing(
    api: ClusterApi,
    account: str,
    rights: Iterable[Right],
    namespace: str | None = None,
    *,
    is_self: bool,
) -> list[Right]:
    """Return the rights that a service account lacks; `is_self`: it is the one that asks."""
    groups = ["system:serviceaccounts", f"system:serviceaccounts:{account.split(':')[2]}"]
    subject: Manifest = {} if is_self else {"user": account}
    if not is_self:
        subject["groups"] = [*groups, "system:authenticated"]
    kind = "selfsubjectaccessreviews" if is_self else "subjectaccessreviews"

    def is_allowed(right: Right) -> bool:
        attributes = {**right._asdict(), "namespace": namespace or ""}
        body = {"spec": {**subject, "resourceAttributes": attributes}}
        review = api.create(f"{_REVIEWS}/{kind}", body)
        return bool(review["status"].get("allowed"))

    reviews = list(rights)
    with ThreadPoolExecutor(_AT_A_TIME) as pool:
        return [
            r
            for r, allowed in zip(reviews, pool.map(is_allowed, reviews), strict=True)
            if not allowed
        ]
