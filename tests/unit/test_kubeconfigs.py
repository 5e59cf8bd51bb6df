"""How `doctor --cluster` finds the API server, and what it says where it does not."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest
from kubernetes.config import kube_config

from jupyter_to_job.cli.checks.cluster.api import ClusterApi
from jupyter_to_job.domain.errors import Unavailable

from .test_cluster_doctor import doctor


def test_no_cluster(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(kube_config, "KUBE_CONFIG_DEFAULT_LOCATION", str(tmp_path / "config"))
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    (finding,), code = doctor()
    assert (finding["area"], finding["level"], code) == ("cluster", "problem", 1)
    assert finding["message"].startswith("No cluster is configured here: ")
    assert "KUBECONFIG" in finding["mend"]


CONFIG = """
clusters: [{name: x, cluster: {server: "https://127.0.0.1:1", certificate-authority: CA}}]
contexts: [{name: x, context: {cluster: x, user: x}}]
users: [{name: x, user: {}}]
current-context: x
"""


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (CONFIG.replace("CA", "/gone/ca.crt"), "/gone/ca.crt"),
        (CONFIG.replace("cluster: x,", "cluster: lost,"), "lost"),
        ("clusters: [", "expected the node content"),
    ],
    ids=["a missing file", "a missing cluster", "no YAML"],
)
def test_what_is_wrong_with_a_kubeconfig(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, text: str, says: str
) -> None:
    """Outside of a pod there is no service account either, which is not the fault."""
    path = tmp_path / "config"
    path.write_text(text)
    monkeypatch.setattr(kube_config, "KUBE_CONFIG_DEFAULT_LOCATION", str(path))
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    (finding,), code = doctor()
    assert (finding["area"], finding["level"], code) == ("cluster", "problem", 1)
    assert says in finding["message"]


def test_a_cluster_that_does_not_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    nobody = socket.socket()
    nobody.bind(("127.0.0.1", 0))  # it does not listen, so it refuses
    port = nobody.getsockname()[1]
    path = tmp_path / "config"
    path.write_text(
        f"clusters: [{{name: x, cluster: {{server: 'http://127.0.0.1:{port}'}}}}]\n"
        "contexts: [{name: x, context: {cluster: x, user: x}}]\n"
        "users: [{name: x, user: {}}]\n"
        "current-context: x\n"
    )
    monkeypatch.setattr(kube_config, "KUBE_CONFIG_DEFAULT_LOCATION", str(path))
    with nobody, pytest.raises(Unavailable, match=f"{port} cannot be reached"):
        ClusterApi.connect().get("/version")
