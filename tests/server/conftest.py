"""A real Jupyter Server with the extension, its exchange and workspace in temporary folders."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pytest_plugins = ["pytest_jupyter.jupyter_server"]


@pytest.fixture
def jp_server_config(jp_server_config: dict[str, Any], tmp_path: Path) -> dict[str, Any]:
    return {
        "ServerApp": {
            "jpserver_extensions": {"jupyter_to_job.server": True},
            "allow_unauthenticated_access": False,
        }
    }


@pytest.fixture(autouse=True)
def exchange(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An exchange of the test's own; set before the server starts."""
    folder = tmp_path / "exchange"
    monkeypatch.setenv("JUPYTER_TO_JOB_EXCHANGE", str(folder))
    return folder
