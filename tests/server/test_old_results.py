"""Old results over HTTP: which may go, and what is left when one is removed."""

from __future__ import annotations

import json
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from jupyter_to_job.workspace.publishing.removal import CLOCK_TOLERANCE

from ..processes import until
from . import openapi
from .test_routes import API, ended, post, refusal, write_notebook

Fetch = Callable[..., Awaitable[Any]]


async def delivered(jp_fetch: Fetch) -> dict[str, Any]:
    answer = await post(jp_fetch, "jobs", body={"notebook": "train.ipynb"})
    return await ended(jp_fetch, json.loads(answer.body)["name"])


async def old_results(jp_fetch: Fetch, **query: str) -> list[dict[str, Any]]:
    body = json.loads((await jp_fetch(*API, "old-results", params=query)).body)
    openapi.validate("OldResults", body)
    found: list[dict[str, Any]] = body["results"]
    return found


async def test_old_results_are_found_and_removed(jp_fetch: Fetch, jp_root_dir: Path) -> None:
    write_notebook(jp_root_dir, "train.ipynb", "1")
    older, newer = [await delivered(jp_fetch) for _ in range(2)]
    result = jp_root_dir / older["delivery"]["path"]
    assert await old_results(jp_fetch) == []  # they are of today
    assert await old_results(jp_fetch, older_than="999999d", keep="0") == []
    (only,) = await old_results(jp_fetch, older_than="0")
    assert only == {
        "job": older["name"],
        "notebook": "train.ipynb",
        "path": result.name,
        "size": result.stat().st_size,
        "finished": older["finished"],
    }
    every = await old_results(jp_fetch, older_than="0", keep="0")
    assert [each["job"] for each in every] == [newer["name"], older["name"]]

    answer = await jp_fetch(*API, "jobs", older["name"], "result", method="DELETE")
    removal = json.loads(answer.body)
    openapi.validate("Removal", removal)
    assert removal == {"removed": [result.name], "size": only["size"], "changed": []}
    assert not result.exists() and (jp_root_dir / newer["delivery"]["path"]).exists()
    assert await old_results(jp_fetch, older_than="0") == []
    again = await jp_fetch(*API, "jobs", older["name"], "result", method="DELETE")
    assert json.loads(again.body) == {"removed": [], "size": 0, "changed": []}

    mine = jp_root_dir / newer["delivery"]["path"]
    mine.write_text("edited")
    answer = await jp_fetch(*API, "jobs", newer["name"], "result", method="DELETE")
    assert json.loads(answer.body)["changed"] == [mine.name]
    assert mine.read_text() == "edited"


async def test_a_file_that_was_moved_over_an_artifact_stays(
    jp_fetch: Fetch, jp_root_dir: Path
) -> None:
    write_notebook(jp_root_dir, "train.ipynb", "open('model.pt', 'w').write('old')")
    mine = jp_root_dir / "best.pt"
    mine.write_text("best")  # older than the result
    body = {"notebook": "train.ipynb", "isolated": True}
    answer = await post(jp_fetch, "jobs", body=body)
    job = await ended(jp_fetch, json.loads(answer.body)["name"])
    (model,) = jp_root_dir.rglob("model.pt")
    published = time.time()  # or a moment earlier: the delivery says it
    until(lambda: time.time() > published + CLOCK_TOLERANCE + 1, "the delivery is over")
    mine.rename(model)
    answer = await jp_fetch(*API, "jobs", job["name"], "result", method="DELETE")
    path = str(model.relative_to(jp_root_dir))
    assert json.loads(answer.body)["changed"] == [path]
    assert model.read_text() == "best"


async def test_what_cannot_be_asked(jp_fetch: Fetch) -> None:
    for query in ({"older_than": "soon"}, {"keep": "-1"}, {"keep": "some"}):
        status, _ = await refusal(jp_fetch(*API, "old-results", params=query))
        assert status == 400, query
    status, _ = await refusal(jp_fetch(*API, "jobs", "a-aaaaaaaa", "result", method="DELETE"))
    assert status == 404
