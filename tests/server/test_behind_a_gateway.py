"""A Jupyter Server whose jobs are a gateway's: what it sends, and what it lists."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from jupyter_to_job.controller.intake.budgets import BLOBS_FOLDER
from jupyter_to_job.exchange import FileExchange
from jupyter_to_job.flavors import SHIPPED

from ..gateways import context_of, serving
from .test_routes import API, post, refusal, write_notebook

Fetch = Callable[..., Awaitable[Any]]


@pytest.fixture(autouse=True)
def gateway(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FileExchange]:
    """The exchange of a gateway; its address is set before the server starts."""
    exchange = FileExchange(tmp_path / "controller")
    exchange.prepare()
    token, catalog = tmp_path / "token", tmp_path / "flavors.yaml"
    token.write_text("ada")
    catalog.write_text(SHIPPED.read_text().replace("# allowed:", "allowed:"))
    with context_of(exchange, catalog=catalog) as context, serving(context) as url:
        monkeypatch.setenv("JUPYTER_TO_JOB_GATEWAY", url)
        monkeypatch.setenv("JUPYTER_TO_JOB_GATEWAY_TOKEN_FILE", str(token))
        yield exchange


@pytest.mark.parametrize(
    ("flavors", "device", "expected"),
    [
        (["gpu-1", "small"], "t4", (400, "unknown_choice", "Flavor 'small' has no device 't4'.")),
        (["small", "smal"], None, (400, "unknown_choice", "There is no flavor 'smal'.")),
        (
            ["small", "gpu-4"],
            None,
            (403, "refused", "Flavor 'gpu-4' is not for you. For the groups research."),
        ),
    ],
    ids=["no device", "no flavor", "not allowed"],
)
async def test_a_sweep_with_a_choice_that_never_passes_sends_nothing(
    jp_fetch: Fetch,
    jp_root_dir: Path,
    gateway: FileExchange,
    flavors: list[str],
    device: str | None,
    expected: tuple[int, str, str],
) -> None:
    write_notebook(jp_root_dir, "train.ipynb", "1")
    runs = [{"flavor": flavor} for flavor in flavors]
    sweep = {"notebook": "train.ipynb", "device": device, "runs": runs}
    key = {"Idempotency-Key": "click"}
    status, error = await refusal(post(jp_fetch, "sweeps", body=sweep, **key))
    assert (status, error["code"], error["message"]) == expected
    assert gateway.jobs() == set()
    assert list((gateway.root / BLOBS_FOLDER).glob("*/*")) == []


async def listed(fetch: Fetch, **params: str) -> list[str]:
    page = json.loads((await fetch(*API, "jobs", params=params)).body)
    assert page["next"] is None
    return [job["name"] for job in page["jobs"]]


async def test_jobs_of_another_root_are_not_this_server_s(
    jp_fetch: Fetch, jp_root_dir: Path, tmp_path: Path
) -> None:
    write_notebook(jp_root_dir, "train.ipynb", "1")
    own = json.loads((await post(jp_fetch, "jobs", body={"notebook": "train.ipynb"})).body)["name"]
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    write_notebook(elsewhere, "other.ipynb", "1")

    async def run(*arguments: str) -> list[str]:
        """Return the words that the command prints there."""
        command = [str(Path(sys.executable).with_name("jupyter-to-job")), *arguments]
        ran = await asyncio.to_thread(
            subprocess.run, command, cwd=elsewhere, check=True, capture_output=True, text=True
        )
        words: list[str] = ran.stdout.split()
        return words

    others = [*await run("submit", "other.ipynb"), *await run("submit", "other.ipynb")]
    assert await listed(jp_fetch) == [own]
    assert await listed(jp_fetch, limit="1") == [own]  # the newest jobs are the others
    assert await listed(jp_fetch, name=",".join([*others, own])) == [own]
    assert (await refusal(jp_fetch(*API, "jobs", others[0])))[0] == 404
    assert (await jp_fetch(*API, "jobs", own)).code == 200
    assert await run("list", "-q") == [*others[::-1], own]
