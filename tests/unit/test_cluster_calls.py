"""What the controller makes of the API server's answers, with one that only answers."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from jupyter_to_job.controller.cluster.cluster import Cluster


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
