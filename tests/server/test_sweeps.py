"""Sweeps and their results over REST, as the dialog and the table of a browser use them."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import nbformat.v4 as v4

from .test_routes import API, ended, post, refusal, write_notebook

Fetch = Callable[..., Awaitable[Any]]
RUNS = [{"parameters": {"a": 1}}, {"parameters": {"a": 2}, "flavor": "medium"}]
SOURCE = "a = 0"
RECORD = "from jupyter_to_job import record; record('double', 2 * a); record('secret', None)"


def body(**fields: Any) -> dict[str, Any]:
    return {"notebook": "train.ipynb", "parameters": {"b": 5}, "runs": RUNS, **fields}


def write_train(root: Path) -> None:
    tagged = v4.new_code_cell(SOURCE, metadata={"tags": ["parameters"]})
    document = v4.new_notebook(cells=[tagged, v4.new_code_cell(RECORD)])
    (root / "train.ipynb").write_text(json.dumps(document))


async def listed(fetch: Fetch, **params: str) -> list[dict[str, Any]]:
    jobs: list[dict[str, Any]] = json.loads((await fetch(*API, "jobs", params=params)).body)["jobs"]
    return jobs


async def test_a_sweep_and_its_results(jp_fetch: Fetch, jp_root_dir: Path) -> None:
    write_train(jp_root_dir)
    answer = await post(jp_fetch, "sweeps", body=body(group_limit=1))
    made = json.loads(answer.body)
    assert answer.code == 201 and made["group"].startswith("train-sweep-")
    assert [job["parameters"] for job in made["jobs"]] == [{"b": 5, "a": 1}, {"b": 5, "a": 2}]
    assert [job["flavor"] for job in made["jobs"]] == ["small", "medium"]
    names = [job["name"] for job in made["jobs"]]
    for name in names:
        job = await ended(jp_fetch, name)
        double = {"value": 2 * job["parameters"]["a"], "picture": None, "cell": 2}
        assert job["metrics"]["double"] == double

    write_notebook(jp_root_dir, "other.ipynb", "1")
    await post(jp_fetch, "jobs", body={"notebook": "other.ipynb", "group": "other"})
    assert [job["name"] for job in await listed(jp_fetch, group=made["group"])] == names[::-1]
    assert len(await listed(jp_fetch)) == 3
    params = {"group": made["group"]}
    table = json.loads((await jp_fetch(*API, "results", params=params)).body)
    assert [(row["a"], row["flavor"], row["double"]) for row in table["rows"]] == [
        (1, "small", 2), (2, "medium", 4),
    ]  # fmt: skip
    differs = {column["name"]: column["differs"] for column in table["columns"]}
    assert differs["a"] and differs["double"] and not differs["b"]

    again = await post(jp_fetch, "jobs", names[0], "rerun")
    assert json.loads(again.body)["group"] == made["group"]
    assert json.loads(again.body)["rerun_of"] == names[0]


async def test_a_repeated_request_makes_nothing_twice(jp_fetch: Fetch, jp_root_dir: Path) -> None:
    write_train(jp_root_dir)
    key = {"Idempotency-Key": "click"}
    first = json.loads((await post(jp_fetch, "sweeps", body=body(), **key)).body)
    again = json.loads((await post(jp_fetch, "sweeps", body=body(), **key)).body)
    assert [job["name"] for job in again["jobs"]] == [job["name"] for job in first["jobs"]]
    assert again["group"] == first["group"]
    assert len(await listed(jp_fetch)) == 2


async def test_what_is_wrong_is_refused_before_anything_is_recorded(
    jp_fetch: Fetch, jp_root_dir: Path
) -> None:
    write_train(jp_root_dir)
    wrong = [
        body(runs=[]), body(runs=[{"surprise": 1}]), body(runs=None), body(runs=[{}] * 501),
        body(group="a b"), body(group_limit=0), body(runs=[{}, {"flavor": "none"}]),
        body(runs=[{}, {"parameters": {"a b": 1}}]), body(surprise=1),
    ]  # fmt: skip
    for document in wrong:
        status, error = await refusal(post(jp_fetch, "sweeps", body=document))
        assert status == 400 and error["message"], document
    assert await listed(jp_fetch) == []
    status, error = await refusal(jp_fetch(*API, "results", params={"group": "none"}))
    assert (status, error["code"]) == (404, "not_found")
    assert (await refusal(jp_fetch(*API, "results")))[0] == 400
