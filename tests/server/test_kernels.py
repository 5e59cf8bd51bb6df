"""Kernels that only the server's configured kernel spec manager knows."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from .. import configured_kernels, notebooks
from .test_routes import API, Fetch, ended, post, refusal


@pytest.fixture
def jp_server_config(jp_server_config: dict[str, Any]) -> dict[str, Any]:
    manager = f"{configured_kernels.__name__}.{configured_kernels.OneMore.__name__}"
    server = {**jp_server_config["ServerApp"], "kernel_spec_manager_class": manager}
    return {**jp_server_config, "ServerApp": server}


async def test_a_configured_manager_s_kernel_runs(
    jp_fetch: Fetch, jp_root_dir: Path, exchange: Path
) -> None:
    """As it was resolved at submission, again in a rerun, and without showing its variables."""
    source = jp_root_dir / "train.ipynb"
    notebooks.write(source, configured_kernels.CELL, kernel=configured_kernels.NAME)
    answer = await post(jp_fetch, "jobs", body={"notebook": "train.ipynb"})
    name = json.loads(answer.body)["name"]
    first = await ended(jp_fetch, name)
    again = json.loads((await post(jp_fetch, "jobs", name, "rerun")).body)["name"]
    second = await ended(jp_fetch, again)

    for job in (first, second):
        assert job["state"] == "succeeded", job["message"]
        result = jp_root_dir / job["delivery"]["path"]
        assert notebooks.printed(result) == configured_kernels.PRINTS
        assert configured_kernels.SECRET not in json.dumps(job) + result.read_text()
        request = json.loads((exchange / job["name"] / "request.json").read_text())
        assert request["kernel_spec"]["env"]["OF_THE_SPECIFICATION"] == configured_kernels.SECRET
        assert request["kernel_spec"]["argv"][0] == "python3"
    journal = (await jp_fetch(*API, "jobs", name, "journal")).body.decode()
    assert configured_kernels.SECRET not in journal


async def test_a_missing_kernel_is_refused_with_those_that_there_are(
    jp_fetch: Fetch, jp_root_dir: Path
) -> None:
    notebooks.write(jp_root_dir / "train.ipynb", "1", kernel="cobol")
    code, error = await refusal(post(jp_fetch, "jobs", body={"notebook": "train.ipynb"}))
    assert (code, error["code"]) == (400, "unknown_choice")
    assert configured_kernels.NAME in error["hint"]
