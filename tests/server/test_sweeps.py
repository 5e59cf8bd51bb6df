"""Sweeps and their results over REST, as the dialog and the table of a browser use them."""

from __future__ import annotations

import asyncio
import base64
import csv
import io
import itertools
import json
import threading
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import nbformat.v4 as v4
import pandas as pd
import pytest
from jupyter_server.serverapp import ServerApp

from jupyter_to_job.domain.errors import JobsError, Refused, StorageFull, Unavailable
from jupyter_to_job.exchange import FileExchange

from ..processes import BOUND
from .test_openapi import DOT, RECORD_PICTURE
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


@pytest.mark.parametrize("step", ["claimed_name", "create"])
async def test_a_sweep_that_is_withdrawn_keeps_what_is_recorded(
    jp_fetch: Fetch, jp_root_dir: Path, exchange: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    write_train(jp_root_dir)
    halt = Halt(monkeypatch, step)
    key = {"Idempotency-Key": "click"}
    sweep = body(runs=[{"parameters": {"a": value}} for value in range(3)])
    sending = asyncio.ensure_future(post(jp_fetch, "sweeps", body=sweep, **key))
    assert await asyncio.to_thread(halt.is_reached.wait, BOUND)
    answer = await jp_fetch(*API, "submissions", "click", method="DELETE")
    assert answer.code == 204
    halt.go_on.set()
    answer = await sending

    assert answer.code == 201
    (job,) = json.loads(answer.body)["jobs"]
    assert job["parameters"] == {"b": 5, "a": 0}
    assert [each["name"] for each in await listed(jp_fetch)] == [job["name"]]
    assert len(list((exchange / ".keys").iterdir())) == 1
    status, error = await refusal(post(jp_fetch, "sweeps", body=sweep, **key))
    assert (status, error["code"]) == (409, "withdrawn")


async def test_a_sweep_that_fails_midway_says_what_was_submitted(
    jp_fetch: Fetch, jp_root_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_train(jp_root_dir)
    key = {"Idempotency-Key": "click"}
    sweep = body(runs=[{"parameters": {"a": value}} for value in range(4)], group="night")
    room, create = 0, FileExchange.create

    def create_while_there_is_room(*args: Any, **options: Any) -> Any:
        nonlocal room
        room -= 1
        if room < 0:
            raise StorageFull("Your jobs use 20 GiB.", "Delete some.")
        return create(*args, **options)

    monkeypatch.setattr(FileExchange, "create", create_while_there_is_room)
    status, error = await refusal(post(jp_fetch, "sweeps", body=sweep, **key))
    assert (status, error["code"], error["message"]) == (
        507, "storage_full", "Your jobs use 20 GiB.",
    )  # fmt: skip
    room = 2
    status, error = await refusal(post(jp_fetch, "sweeps", body=sweep, **key))
    assert (status, error["code"], error["hint"]) == (503, "partly_submitted", "Delete some.")
    assert error["message"] == (
        "Submitted as the group night: 2 of 4 jobs. Sending the same again submits the others. "
        "Your jobs use 20 GiB."
    )
    assert len(await listed(jp_fetch)) == 2
    room = 2
    assert (await post(jp_fetch, "sweeps", body=sweep, **key)).code == 201
    assert len(await listed(jp_fetch)) == 4
    room = 1
    status, error = await refusal(post(jp_fetch, "sweeps", body=sweep))  # would make all once more
    assert error["message"] == "Submitted as the group night: 1 of 4 jobs. Your jobs use 20 GiB."


@pytest.mark.parametrize(
    ("error", "is_worth_repeating"),
    [(Refused("It is not for you."), False), (Unavailable("It is away."), True)],
    ids=["refused", "unavailable"],
)
async def test_only_what_may_pass_later_is_advised_to_be_sent_again(
    jp_fetch: Fetch,
    jp_root_dir: Path,
    monkeypatch: pytest.MonkeyPatch,
    error: JobsError,
    is_worth_repeating: bool,
) -> None:
    write_train(jp_root_dir)
    create, calls = FileExchange.create, itertools.count(1)

    def create_the_first(*args: Any, **options: Any) -> Any:
        if next(calls) > 1:
            raise error
        return create(*args, **options)

    monkeypatch.setattr(FileExchange, "create", create_the_first)
    key = {"Idempotency-Key": "click"}
    status, refused = await refusal(post(jp_fetch, "sweeps", body=body(group="night"), **key))
    advice = " Sending the same again submits the others." if is_worth_repeating else ""
    assert (status, refused["code"]) == (503, "partly_submitted")
    assert refused["message"] == (
        f"Submitted as the group night: 1 of 2 jobs.{advice} {error.message}"
    )


class Halt:
    """Holds the second call of a method of the exchange, which is for the second run of a sweep."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, method: str) -> None:
        self.is_reached, self.go_on = threading.Event(), threading.Event()
        calls, call = itertools.count(1), getattr(FileExchange, method)

        def held(*args: Any, **options: Any) -> Any:
            if next(calls) == 2:
                self.is_reached.set()
                self.go_on.wait(BOUND)
            return call(*args, **options)

        monkeypatch.setattr(FileExchange, method, held)


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
    for group in ("", "a b"):  # no job has it; and it does not mean those without one
        status, error = await refusal(jp_fetch(*API, "jobs", params={"group": group}))
        assert (status, error["message"]) == (400, f"{group!r} cannot be the name of a group.")


async def test_a_table_is_made_where_no_quick_request_waits(
    jp_fetch: Fetch, jp_root_dir: Path, jp_serverapp: ServerApp
) -> None:
    write_train(jp_root_dir)
    await post(jp_fetch, "sweeps", body=body(group="night"))
    settings = jp_serverapp.web_app.settings
    context = settings["jupyter_to_job"]
    with ThreadPoolExecutor(1) as busy:
        go_on = threading.Event()
        busy.submit(go_on.wait, BOUND)
        settings["jupyter_to_job"] = replace(context, quick=busy)
        try:
            answer = await jp_fetch(*API, "results", params={"group": "night"})
        finally:
            settings["jupyter_to_job"] = context
            go_on.set()
    assert len(json.loads(answer.body)["rows"]) == len(RUNS)


async def test_results_as_files(jp_fetch: Fetch, jp_root_dir: Path) -> None:
    write_train(jp_root_dir)
    made = json.loads((await post(jp_fetch, "sweeps", body=body(group="night"))).body)
    names = [job["name"] for job in made["jobs"]]
    for name in names:
        await ended(jp_fetch, name)

    async def results(kind: str) -> Any:
        return await jp_fetch(*API, "results", params={"group": "night", "format": kind})

    rows = json.loads((await results("json")).body)["rows"]
    text = await results("csv")
    assert text.headers["Content-Disposition"] == 'attachment; filename="night.csv"'
    read = list(csv.DictReader(io.StringIO(text.body.decode())))
    assert [row["job"] for row in read] == names
    assert [int(row["double"]) for row in read] == [row["double"] for row in rows]
    frame = pd.read_parquet(io.BytesIO((await results("parquet")).body))
    expected = pd.DataFrame(rows).replace({None: float("nan")})
    pd.testing.assert_frame_equal(frame, expected, check_dtype=False)
    status, error = await refusal(results("excel"))
    assert status == 400 and "json, csv or parquet" in error["message"]


SVG = '<svg xmlns="http://www.w3.org/2000/svg"/>'


@pytest.mark.parametrize(
    ("source", "metric", "kind", "data"),
    [
        (RECORD_PICTURE, "dot", "image/png", base64.b64decode(DOT)),
        (f"from IPython.display import SVG\nSVG({SVG!r})", "line", "image/svg+xml", SVG.encode()),
    ],
    ids=["recorded", "tagged"],
)
async def test_a_picture_of_a_metric(
    jp_fetch: Fetch, jp_root_dir: Path, source: str, metric: str, kind: str, data: bytes
) -> None:
    cell = v4.new_code_cell(source, metadata={"tags": ["metric:line"]})
    document = v4.new_notebook(cells=[cell])
    (jp_root_dir / "draws.ipynb").write_text(json.dumps(document))
    await post(jp_fetch, "jobs", body={"notebook": "draws.ipynb", "group": "night"})
    (name,) = [job["name"] for job in await listed(jp_fetch)]
    await ended(jp_fetch, name)
    table = json.loads((await jp_fetch(*API, "results", params={"group": "night"})).body)
    (column,) = [column for column in table["columns"] if column["name"] == metric]
    assert column["pictures"] and column["field"] == metric
    assert table["rows"][0][metric] == kind

    answer = await jp_fetch(*API, "jobs", name, "picture", params={"metric": metric})
    assert answer.headers["Content-Type"] == kind
    assert answer.headers["Content-Security-Policy"].startswith("sandbox")
    assert answer.body.strip() == data
    picture = jp_fetch(*API, "jobs", name, "picture", params={"metric": "other"})
    assert (await refusal(picture))[0] == 404
    assert (await refusal(jp_fetch(*API, "jobs", name, "picture")))[0] == 400
