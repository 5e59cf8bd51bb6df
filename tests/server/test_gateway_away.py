"""What a Jupyter Server answers while the gateway of its jobs is away."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from ..ports import free_port
from .test_routes import post, refusal, write_notebook


@pytest.fixture(autouse=True)
def gateway(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The address of a gateway that is not there; set before the server starts."""
    token = tmp_path / "token"
    token.write_text("me")
    monkeypatch.setenv("JUPYTER_TO_JOB_GATEWAY", f"http://127.0.0.1:{free_port()}")
    monkeypatch.setenv("JUPYTER_TO_JOB_GATEWAY_TOKEN_FILE", str(token))


async def test_a_submission_is_not_said_to_be_tried_again(
    jp_fetch: Callable[..., Awaitable[Any]], jp_root_dir: Path
) -> None:
    """It was, before this answer; from now on it is the user who tries again."""
    write_notebook(jp_root_dir, "train.ipynb", "1")
    status, error = await refusal(post(jp_fetch, "jobs", body={"notebook": "train.ipynb"}))
    assert (status, error["code"]) == (503, "unavailable")
    assert "The gateway cannot be reached" in error["message"]
    assert error["hint"] == "Try again when it is back."
