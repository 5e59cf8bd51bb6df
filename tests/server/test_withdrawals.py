"""Submissions that are withdrawn while their gateway does not answer: they may be jobs, or not."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from jupyter_to_job.exchange import FileExchange, patience

from ..gateways import context_of, serving
from ..ingress import Ingress, ingress
from ..processes import BOUND, until
from .test_routes import API, Fetch, post, refusal, write_notebook
from .test_sweeps import listed


@pytest.fixture(autouse=True)
def gateway(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Ingress]:
    """A gateway that takes the files, and is away for submissions; set before the server starts."""
    token = tmp_path / "token"
    token.write_text("me")
    exchange = FileExchange(tmp_path / "controller")
    exchange.prepare()
    monkeypatch.setattr(patience, "MAX_DELAY", patience.MIN_DELAY)
    with (
        context_of(exchange) as context,
        serving(context) as url,
        ingress(url, lambda request, _: request.startswith("POST")) as made,
    ):
        monkeypatch.setenv("JUPYTER_TO_JOB_GATEWAY", made.url)
        monkeypatch.setenv("JUPYTER_TO_JOB_GATEWAY_TOKEN_FILE", str(token))
        yield made


@pytest.mark.parametrize("action", ["submit", "rerun"])
async def test_a_submission_is_sent_no_more(
    jp_fetch: Fetch, jp_root_dir: Path, gateway: Ingress, action: str
) -> None:
    write_notebook(jp_root_dir, "train.ipynb", "1")
    path, body, jobs = ["jobs"], {"notebook": "train.ipynb"}, 0
    if action == "rerun":
        is_away, gateway.is_away = gateway.is_away, lambda *_: False
        name = json.loads((await post(jp_fetch, *path, body=body)).body)["name"]
        path, body, jobs = ["jobs", name, "rerun"], {}, 1
        gateway.is_away = is_away
    key = {"Idempotency-Key": "k-1"}
    sending = asyncio.ensure_future(refusal(post(jp_fetch, *path, body=body, **key)))
    await asyncio.to_thread(until, lambda: gateway.pages, "a try")
    status, error = await refusal(jp_fetch(*API, "submissions", "k-1", method="DELETE"))
    assert (status, error["code"]) == (409, "conflict")
    assert error["message"] == "This submission is being recorded."
    status, error = await asyncio.wait_for(sending, BOUND)
    assert (status, error["code"]) == (503, "unavailable")
    assert "was withdrawn while the gateway did not answer" in error["message"]
    assert error["hint"] == "If it became a job all the same, cancel that."
    assert len(await listed(jp_fetch)) == jobs

    gateway.is_away = lambda *_: False
    again = await post(jp_fetch, *path, body=body, **key)  # its user wants it after all
    assert again.code == 201
    assert len(await listed(jp_fetch)) == jobs + 1


async def test_a_sweep_is_sent_no_more(
    jp_fetch: Fetch, jp_root_dir: Path, gateway: Ingress
) -> None:
    """It keeps the job that was recorded before."""
    write_notebook(jp_root_dir, "train.ipynb", "1")
    body = {"notebook": "train.ipynb", "runs": [{"parameters": {"a": a}} for a in range(3)]}
    posts: list[str] = []

    def is_away(request: str, _: int) -> bool:
        if request.startswith("POST"):
            posts.append(request)
        return len(posts) > 1 and request.startswith("POST")

    gateway.is_away = is_away
    key = {"Idempotency-Key": "k-1"}
    sending = asyncio.ensure_future(post(jp_fetch, "sweeps", body=body, **key))
    await asyncio.to_thread(until, lambda: gateway.pages, "a try")
    assert (await jp_fetch(*API, "submissions", "k-1", method="DELETE")).code == 204
    answer = await asyncio.wait_for(sending, BOUND)
    (job,) = json.loads(answer.body)["jobs"]
    assert [each["name"] for each in await listed(jp_fetch)] == [job["name"]]
