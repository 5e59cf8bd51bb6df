"""The REST of the server extension, over HTTP, on the local backend."""

from __future__ import annotations

import asyncio
import hashlib
import json
import math
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import nbformat.v4 as v4
import pytest
from jupyter_server.auth import Authorizer
from jupyter_server.serverapp import ServerApp
from tornado.httpclient import HTTPClientError

from jupyter_to_job.api.events import JOB_SCHEMA_ID
from jupyter_to_job.api.routes import ROUTES

from ..processes import BOUND

Fetch = Callable[..., Awaitable[Any]]
API = ("jupyter-to-job", "api")


def write_notebook(root: Path, name: str, *cells: str) -> bytes:
    document = v4.new_notebook(cells=[v4.new_code_cell(cell) for cell in cells])
    data = json.dumps(document).encode()
    (root / name).write_bytes(data)
    return data


async def post(fetch: Fetch, *path: str, body: object = None, **headers: str) -> Any:
    data = json.dumps(body if body is not None else {})
    return await fetch(*API, *path, method="POST", body=data, headers=headers)


async def refusal(request: Awaitable[Any]) -> tuple[int, dict[str, Any]]:
    """The status and the error of a request that must be refused."""
    with pytest.raises(HTTPClientError) as caught:
        await request
    assert caught.value.response is not None
    body = json.loads(caught.value.response.body)
    return caught.value.code, body.get("error", body)


async def ended(fetch: Fetch, name: str) -> dict[str, Any]:
    """The job, once its delivery is decided."""
    deadline = time.monotonic() + BOUND
    while time.monotonic() < deadline:
        job: dict[str, Any] = json.loads((await fetch(*API, "jobs", name)).body)
        if job["delivery"]["state"] != "pending":
            return job
        await asyncio.sleep(0.1)
    raise TimeoutError(f"{name} was not delivered")


async def test_submitted_to_delivered(jp_fetch: Fetch, jp_root_dir: Path) -> None:
    source = write_notebook(jp_root_dir, "train.ipynb", "print(6 * 7)")

    answer = await post(jp_fetch, "jobs", body={"notebook": "train.ipynb"})
    assert answer.code == 201
    name = json.loads(answer.body)["name"]
    job = await ended(jp_fetch, name)

    assert (job["state"], job["notebook"]) == ("succeeded", "train.ipynb")
    assert job["delivery"]["path"] == f"{name}.ipynb"
    assert "42" in (jp_root_dir / f"{name}.ipynb").read_text()
    assert (jp_root_dir / "train.ipynb").read_bytes() == source
    listed = json.loads((await jp_fetch(*API, "jobs")).body)["jobs"]
    assert [j["name"] for j in listed] == [name]
    logs = json.loads((await jp_fetch(*API, "jobs", name, "logs")).body)
    assert logs["text"] == "42\n" and logs["end"]

    notebook = [*API, "jobs", name, "notebook"]
    whole = await jp_fetch(*notebook)
    etag = whole.headers["ETag"]
    rest = await jp_fetch(*notebook, headers={"Range": "bytes=9-", "If-Range": etag})
    assert (rest.code, rest.body, rest.headers["ETag"]) == (206, whole.body[9:], etag)
    bare = await jp_fetch(*notebook, params={"outputs": "false"})
    assert "ETag" not in bare.headers
    (cell,) = json.loads(bare.body)["cells"]
    assert (cell["source"], cell["execution_count"]) == (["print(6 * 7)"], 1)
    assert "application/vnd.jupyter-to-job.omitted+json" in cell["outputs"][0]["data"]
    refused = await jp_fetch(*notebook, params={"outputs": "some"}, raise_error=False)
    assert refused.code == 400


async def test_the_open_document_is_what_runs(jp_fetch: Fetch, jp_root_dir: Path) -> None:
    """As several people edit it together, before anybody's save; the disk is left alone."""
    source = write_notebook(jp_root_dir, "train.ipynb", "print('saved')")
    open_document = v4.new_notebook(cells=[v4.new_code_cell("print('ünsaved')")])
    body = {"notebook": "train.ipynb", "content": open_document}
    key = {"Idempotency-Key": "click-1"}

    first = await post(jp_fetch, "jobs", body=body, **key)
    shuffled = {**body, "content": dict(reversed(open_document.items()))}
    again = await post(jp_fetch, "jobs", body=shuffled, **key)
    job = await ended(jp_fetch, json.loads(first.body)["name"])

    assert (first.code, again.code) == (201, 200)
    assert job["state"] == "succeeded"
    assert "ünsaved" in (jp_root_dir / job["delivery"]["path"]).read_text()
    assert (jp_root_dir / "train.ipynb").read_bytes() == source


async def test_every_change_of_a_job_is_an_event(
    jp_fetch: Fetch, jp_root_dir: Path, jp_serverapp: ServerApp
) -> None:
    write_notebook(jp_root_dir, "train.ipynb", "1")
    seen: list[dict[str, Any]] = []
    states: list[str] = []

    async def listener(logger: Any, schema_id: str, data: dict[str, Any]) -> None:
        seen.append(data)
        listed = json.loads((await jp_fetch(*API, "jobs", params=data)).body)["jobs"]
        states.extend(job["delivery"]["state"] for job in listed)

    assert jp_serverapp.event_logger is not None
    jp_serverapp.event_logger.add_listener(schema_id=JOB_SCHEMA_ID, listener=listener)
    body = {"notebook": "train.ipynb", "parameters": {"password": "s3cret"}}
    name = json.loads((await post(jp_fetch, "jobs", body=body)).body)["name"]
    await ended(jp_fetch, name)

    deadline = time.monotonic() + BOUND
    while "delivered" not in states:
        assert time.monotonic() < deadline, seen
        await asyncio.sleep(0.05)
    # Whoever may only listen learns nothing that the routes would refuse.
    assert all(data == {"name": name} for data in seen)


async def test_jobs_by_name(jp_fetch: Fetch, jp_root_dir: Path) -> None:
    """In the order of the names; one that does not exist is left out."""
    write_notebook(jp_root_dir, "train.ipynb", "1")
    answers = [await post(jp_fetch, "jobs", body={"notebook": "train.ipynb"}) for _ in range(3)]
    first, second, _ = (json.loads(answer.body)["name"] for answer in answers)
    names = f"{first},train-zzzzzzzz,{second}"
    page = json.loads((await jp_fetch(*API, "jobs", params={"name": names})).body)
    assert [job["name"] for job in page["jobs"]] == [first, second] and page["next"] is None
    many = ",".join(["train-zzzzzzzz"] * 501)
    status, error = await refusal(jp_fetch(*API, "jobs", params={"name": many}))
    assert (status, error["code"]) == (400, "bad_input")


async def test_a_retry_is_the_same_job(jp_fetch: Fetch, jp_root_dir: Path) -> None:
    write_notebook(jp_root_dir, "train.ipynb", "1")
    key = {"Idempotency-Key": "click-1"}
    body = {"notebook": "train.ipynb"}

    first = await post(jp_fetch, "jobs", body=body, **key)
    again = await post(jp_fetch, "jobs", body=body, **key)
    other = await refusal(post(jp_fetch, "jobs", body={**body, "priority": 1}, **key))

    assert (first.code, again.code, other[0]) == (201, 200, 409)
    assert json.loads(first.body)["name"] == json.loads(again.body)["name"]
    await ended(jp_fetch, json.loads(first.body)["name"])


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        ({}, 400, "bad_input"),
        ({"notebook": "missing.ipynb"}, 400, "bad_notebook"),
        ({"notebook": "../outside.ipynb"}, 400, "bad_input"),
        ({"notebook": "/etc/passwd"}, 400, "bad_input"),
        ({"notebook": "a\u0000.ipynb"}, 400, "bad_input"),
        ({"notebook": "train.ipynb", "flavor": "huge"}, 400, "unknown_choice"),
        ({"notebook": "train.ipynb", "surprise": 1}, 400, "bad_input"),
        ({"notebook": "train.ipynb", "priority": "1"}, 400, "bad_input"),
        ({"notebook": "train.ipynb", "rerun_of": "../other"}, 400, "bad_input"),
        ({"notebook": "train.ipynb", "expected_sha256": "0" * 64}, 409, "stale"),
        ({"notebook": "train.ipynb", "parameters": {"a": math.nan}}, 400, "bad_input"),
        ({"notebook": "train.ipynb", "env": {"A=B": ""}}, 400, "bad_input"),
        ({"notebook": "train.ipynb", "inputs": ["\ud800"]}, 400, "bad_input"),
        ({"notebook": "train.ipynb", "content": "{}"}, 400, "bad_input"),
        ({"notebook": "train.ipynb", "content": {"cells": []}}, 400, "bad_notebook"),
        ({"notebook": "train.ipynb", "content": {"cells": math.nan}}, 400, "bad_input"),
        ({"notebook": "../a.ipynb", "content": v4.new_notebook()}, 400, "bad_input"),
        (
            {"notebook": "train.ipynb", "content": v4.new_notebook(), "expected_sha256": "0" * 64},
            400,
            "bad_input",
        ),
    ],
)
async def test_bad_requests_say_why_and_leave_nothing(
    jp_fetch: Fetch, jp_root_dir: Path, exchange: Path, body: object, status: int, code: str
) -> None:
    write_notebook(jp_root_dir, "train.ipynb", "1")

    answered, error = await refusal(post(jp_fetch, "jobs", body=body))

    assert (answered, error["code"]) == (status, code)
    assert error["message"]
    assert not [p for p in exchange.iterdir() if not p.name.startswith(".")]


async def test_rerun_journal_and_preflight(jp_fetch: Fetch, jp_root_dir: Path) -> None:
    write_notebook(jp_root_dir, "train.ipynb", "print(6 * 7)")
    body = {"notebook": "train.ipynb", "parameters": {"a": 1}}

    found = json.loads((await post(jp_fetch, "preflight", body=body)).body)
    assert [p["code"] for p in found["problems"]] == ["unknown_parameter"]
    first = json.loads((await post(jp_fetch, "jobs", body=body)).body)
    answer = await post(jp_fetch, "jobs", first["name"], "rerun", body={"parameters": {"b": "x"}})
    again = await ended(jp_fetch, json.loads(answer.body)["name"])
    await ended(jp_fetch, first["name"])

    assert answer.code == 201
    assert again["parameters"] == {"a": 1, "b": "x"}
    path = (*API, "jobs", again["name"], "journal")
    whole = json.loads((await jp_fetch(*path)).body)
    last = json.loads((await jp_fetch(*path, params={"offset": "-500"})).body)
    assert whole["end"] and whole["next"] == last["next"] == again["journal"]
    assert last["records"] == whole["records"][-len(last["records"]) :]
    for wrong in ({"surprise": 1}, {"priority": "1"}, {"notebook": "train.ipynb"}):
        status, _ = await refusal(post(jp_fetch, "jobs", first["name"], "rerun", body=wrong))
        assert status == 400


async def test_unknown_jobs_and_routes_are_404(jp_fetch: Fetch) -> None:
    for path in (("jobs", "train-aaaaaaaa"), ("jobs", "..%2f..%2fetc"), ("nothing",)):
        status, error = await refusal(jp_fetch(*API, *path))
        assert status == 404
        assert "jupyter-to-job list" not in str(error)  # a browser has no command line


async def test_every_route_wants_a_token(jp_serverapp: ServerApp, http_server_client: Any) -> None:
    for method, pattern, _ in ROUTES:
        path = pattern.replace("([^/]+)", "train-aaaaaaaa")
        url = f"{jp_serverapp.base_url}jupyter-to-job/api/{path}"
        body = "{}" if method == "POST" else None
        with pytest.raises(HTTPClientError) as caught:
            await http_server_client.fetch(url, method=method, body=body, follow_redirects=False)
        assert caught.value.code in (302, 401, 403), f"{method} {path}"


class ReadOnly(Authorizer):
    """Somebody who may look and change, but not run code."""

    def is_authorized(self, handler: Any, user: Any, action: str, resource: str) -> bool:
        return not (resource == "jupyter-to-job" and action == "execute")


async def test_submitting_needs_execute(
    jp_fetch: Fetch, jp_root_dir: Path, jp_serverapp: ServerApp, exchange: Path
) -> None:
    write_notebook(jp_root_dir, "train.ipynb", "1")
    jp_serverapp.web_app.settings["authorizer"] = ReadOnly()

    for path in (("jobs",), ("jobs", "train-aaaaaaaa", "rerun")):
        status, _ = await refusal(post(jp_fetch, *path, body={"notebook": "train.ipynb"}))
        assert status == 403
    assert (await jp_fetch(*API, "jobs")).code == 200


async def test_a_result_says_where_it_came_from(jp_fetch: Fetch, jp_root_dir: Path) -> None:
    """And is enough to run it again, with the job forgotten: the result is a notebook like any."""
    cells = [
        v4.new_code_cell("n = 1", metadata={"tags": ["parameters"]}),
        v4.new_code_cell("n * 2"),
    ]
    (jp_root_dir / "train.ipynb").write_text(json.dumps(v4.new_notebook(cells=cells)))
    body = {"notebook": "train.ipynb", "parameters": {"n": 21}, "env": {"SECRET": "s3cret"}}
    name = json.loads((await post(jp_fetch, "jobs", body=body)).body)["name"]
    job = await ended(jp_fetch, name)

    text = (jp_root_dir / job["delivery"]["path"]).read_text()
    came_from = json.loads(text)["metadata"]["jupyter_to_job"]["provenance"]
    frozen = hashlib.sha256((jp_root_dir / "train.ipynb").read_bytes()).hexdigest()
    said = {k: came_from[k] for k in ("job", "flavor", "device", "parameters", "snapshot_sha256")}
    assert said == {
        "job": name, "flavor": "small", "device": "cpu", "parameters": {"n": 21},
        "snapshot_sha256": frozen,
    }  # fmt: skip
    assert "s3cret" not in text

    await jp_fetch(*API, "jobs", name, method="DELETE")
    asked = {k: came_from[k] for k in ("flavor", "device", "parameters", "inputs", "isolated")}
    again = await post(jp_fetch, "jobs", body={"notebook": job["delivery"]["path"], **asked})
    second = await ended(jp_fetch, json.loads(again.body)["name"])
    cells = json.loads((jp_root_dir / second["delivery"]["path"]).read_text())["cells"]
    assert (second["state"], cells[-1]["outputs"][0]["data"]["text/plain"]) == ("succeeded", ["42"])
    assert len(cells) == 3  # the parameters were not injected twice
