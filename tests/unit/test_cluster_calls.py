"""What the controller makes of the API server's answers, with one that only answers."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from typing import Any

import pytest
from kubernetes.aio.client import ApiException

from jupyter_to_job.controller.cluster.cluster import Cluster
from jupyter_to_job.domain.errors import NotFound, Refused
from jupyter_to_job.exchange.records import ClusterJob

from ..courier_scene import POD


class Answer:
    """A response that is not parsed."""

    status = 200

    def __init__(self, document: Any) -> None:
        self._document = document

    async def read(self) -> bytes:
        return json.dumps(self._document).encode()


class Pods:
    """The API of pods, which answers one pod a page."""

    def __init__(self, pods: list[Any]) -> None:
        self._pods = pods

    async def list_namespaced_pod_without_preload_content(
        self, _namespace: str, _continue: str = "0", **_: Any
    ) -> Answer:
        n = int(_continue)
        rest = str(n + 1) if n + 1 < len(self._pods) else ""
        return Answer({"metadata": {"continue": rest}, "items": self._pods[n : n + 1]})


def pod(node: str, phase: str = "Running", claim: str = "home", **metadata: str) -> Any:
    volumes = [{"name": "none"}, {"name": "w", "persistentVolumeClaim": {"claimName": claim}}]
    spec = {"volumes": volumes, **({"nodeName": node} if node else {})}
    return {"metadata": metadata, "spec": spec, "status": {"phase": phase}}


@pytest.mark.parametrize(
    ("pods", "node"),
    [
        ([pod("b"), pod("a", claim="another")], "b"),
        ([pod("b"), pod("a", "Pending")], "b"),  # stuck: the volume is on b
        ([pod("a", deletionTimestamp="2026-11-01T00:00:00Z"), pod("b")], "b"),
        ([pod("b", "Pending"), pod("a", "Succeeded"), pod("", "Pending")], "b"),
        ([pod("c"), pod("b")], "b"),
        ([pod("a", "Failed"), pod("", "Pending")], ""),
    ],
)
def test_a_claim_is_where_a_pod_runs_with_it(pods: list[Any], node: str) -> None:
    cluster = Cluster(None)  # type: ignore[arg-type]
    cluster._core = Pods(pods)  # type: ignore[assignment]
    assert asyncio.run(cluster.node_with_claim("team", "home")) == node


def status_error(code: int) -> ApiException:
    """Return an error that Kubernetes answers."""
    return ApiException(status=code, body=json.dumps({"kind": "Status", "message": "no"}))


class NoRights:
    """The API of a namespace without a Role for the controller; it may be gone."""

    def __init__(self, namespaces: set[str]) -> None:
        self._namespaces = namespaces

    async def read_namespace_without_preload_content(self, name: str, **_: Any) -> Answer:
        if name not in self._namespaces:
            raise status_error(404)
        return Answer({})

    def __getattr__(self, name: str) -> Any:
        async def refuse(*_arguments: Any, **_options: Any) -> None:
            raise status_error(403)

        return refuse


def calls(cluster: Cluster) -> list[Any]:
    """Return the calls that are made for the jobs and results of a namespace."""
    manifest = {"metadata": {"namespace": "team", "name": "train"}}
    return [
        cluster.pod("team", "jupyter-ada"),
        cluster.claim("team", "home"),
        cluster.create_job(manifest),
        cluster.find_job("team", "train"),
        cluster.delete_job(ClusterJob("team", "train", "1")),
        cluster.delete_pod(replace(POD, namespace="team"), 0),
    ]


@pytest.mark.parametrize(
    ("namespaces", "outcomes"),
    [
        ({"team"}, [Refused] * 6),
        (set[str](), [NotFound, NotFound, NotFound, None, None, None]),
    ],
)
def test_nothing_is_found_in_a_namespace_that_is_gone(
    namespaces: set[str], outcomes: list[type[Exception] | None]
) -> None:
    """The API server refuses these calls: the rights went with the namespace."""
    cluster = Cluster(None)  # type: ignore[arg-type]
    cluster._core = cluster._batch = NoRights(namespaces)  # type: ignore[assignment]

    async def outcome_of(call: Any) -> type[Exception] | None:
        try:
            assert await call is None
        except (NotFound, Refused) as error:
            return type(error)
        return None

    async def found() -> list[type[Exception] | None]:
        return [await outcome_of(call) for call in calls(cluster)]

    assert asyncio.run(found()) == outcomes
