"""All checks of a cluster, in the order in which one explains the next."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial

from ....domain.errors import Refused
from ..result import Check, CheckResult, ok, warning
from . import catalog, clocks, controller, exchange, gateway, namespaces, policies, rights, versions
from .api import ClusterApi
from .installation import Installation

TIMEOUT = 150.0
"""Seconds for one check: a pod is started, and images may have to be pulled."""
_ClusterCheck = Callable[[ClusterApi, Installation], Iterable[CheckResult]]
CHECKS: tuple[tuple[str, _ClusterCheck], ...] = (
    ("controller", controller.check),
    ("versions", versions.check),
    ("namespaces", namespaces.check),
    ("rights", rights.check),
    ("policies", policies.check),
    ("catalog", catalog.check),
    ("exchange", exchange.check),
    ("clocks", clocks.check),
    ("gateway", gateway.check),
)


class ClusterDoctor:
    """Looks at the controller in a namespace, through a context of the kubeconfig."""

    def __init__(self, namespace: str, context: str | None) -> None:
        self._namespace = namespace
        self._context = context
        self._installation: Installation | None = None

    def checks(self) -> Iterator[tuple[str, Check]]:
        """Yield all checks by area. Without a cluster, or a controller on it, no other can run."""
        yield "cluster", self._find
        if self._installation is not None:
            for area, check in CHECKS:
                yield area, partial(_as_far_as_allowed, check, self._installation)

    def _find(self) -> Iterator[CheckResult]:
        api = ClusterApi.connect(self._context)
        installation = Installation.find(api, self._namespace)
        yield ok(f"{api.address}, with a controller in the namespace {self._namespace}")
        self._installation = installation


def _as_far_as_allowed(check: _ClusterCheck, installation: Installation) -> Iterator[CheckResult]:
    """Yield a check's results; a question that nobody may ask is a warning, and its end."""
    try:
        yield from check(installation.api, installation)
    except Refused as error:
        yield warning(
            f"Not checked: {error.message}", "Run it with the rights of an administrator."
        )
