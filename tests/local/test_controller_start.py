"""The controller as a process: what it refuses to start with, and what it says."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

SETTINGS = {
    "NAMESPACES": "team",
    "OWNER_RULE": "serviceaccount",
    "AGENT_IMAGE": "agent:1",
    "GATEWAY_URL": "http://gateway",
}


def start(tmp_path: Path, **changed: str) -> subprocess.CompletedProcess[str]:
    """Run the controller where no cluster can be reached, until it ends."""
    settings = {**SETTINGS, **changed}
    kept = {n: v for n, v in os.environ.items() if not n.startswith(("JUPYTER", "KUBERNETES"))}
    variables = {f"JUPYTER_TO_JOB_{name}": value for name, value in settings.items() if value}
    folders = {"JUPYTER_CONFIG_DIR": str(tmp_path), "HOME": str(tmp_path)}
    command = [sys.executable, "-m", "jupyter_to_job.controller", "--kubeconfig", "/nonexistent"]
    return subprocess.run(
        command,
        env={**kept, **variables, **folders, "JUPYTER_TO_JOB_EXCHANGE": str(tmp_path / "x")},
        capture_output=True,
        text=True,
        timeout=60,
    )


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"NAMESPACES": ""}, "JUPYTER_TO_JOB_NAMESPACES is not set. List the namespaces"),
        (
            {"OWNER_RULE": "user"},
            "JUPYTER_TO_JOB_OWNER_RULE='user' is no rule. It may be annotation",
        ),
        ({"OWNER_SCOPE": "user"}, "JUPYTER_TO_JOB_OWNER_SCOPE='user' is not allowed. It may be"),
        (
            {"GATEWAY_TLS": "/nonexistent"},
            "certificate in /nonexistent cannot be used: No such file or directory. "
            "JUPYTER_TO_JOB_GATEWAY_TLS names a folder",
        ),
        (
            {"GATEWAY_URL": "http://gateway:x"},
            "JUPYTER_TO_JOB_GATEWAY_URL='http://gateway:x': It is no URL of a gateway.",
        ),
        ({"AGENT_IMAGE": ""}, "JUPYTER_TO_JOB_AGENT_IMAGE and JUPYTER_TO_JOB_GATEWAY_URL must be"),
    ],
)
def test_it_refuses_to_start(tmp_path: Path, changed: dict[str, str], message: str) -> None:
    ended = start(tmp_path, **changed)
    assert ended.returncode == 2
    assert message in ended.stderr
    assert "Traceback" not in ended.stderr
    assert not (tmp_path / "x").exists()  # nothing was begun
