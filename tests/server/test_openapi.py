"""docs/openapi.yaml is the source: routes, bodies, answers, events and types are held to it."""

from __future__ import annotations

import dataclasses
import json
import re
import shutil
import subprocess
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from pydantic import BaseModel
from tornado.httpclient import HTTPClientError

from jupyter_to_job.api import ApiRequest
from jupyter_to_job.api.bodies import MAX_RUNS, RerunBody, RunBody, SentInput, SubmitBody
from jupyter_to_job.api.events import SCHEMAS
from jupyter_to_job.api.routes import MAX_PAGE, ROUTES, action
from jupyter_to_job.domain.job import DeliveryState, Job, State
from jupyter_to_job.domain.names import is_job_name
from jupyter_to_job.domain.submission_rules import GROUP

from . import openapi
from .test_routes import API, ended, write_notebook

Fetch = Callable[..., Awaitable[Any]]
TYPES = openapi.ROOT / "labextension" / "src" / "api.ts"
DOT = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJR"
    "U5ErkJggg=="
)
RECORD_PICTURE = f"""\
from base64 import b64decode
from IPython.display import Image
from jupyter_to_job import record
record("dot", Image(b64decode("{DOT}")))"""
"""What a notebook does to record a picture as the metric `dot`."""


def test_the_routes_are_those_of_the_file() -> None:
    routes = {(method, pattern) for method, pattern, _ in ROUTES}
    templates = {
        (o.method, re.sub(r"\{\w+\}", "([^/]+)", o.template)) for o in openapi.operations()
    }
    assert routes == templates


@pytest.mark.parametrize("operation", openapi.operations(), ids=str)
def test_the_rights_are_those_of_the_file(operation: openapi.Operation) -> None:
    assert action(ApiRequest(operation.method, operation.path())) == operation.right


@pytest.mark.parametrize(
    ("model", "name"),
    [
        (SubmitBody, "Submission"),
        (RerunBody, "Changes"),
        (SentInput, "SentInput"),
        (RunBody, "Run"),
    ],
)
def test_bodies(model: type[BaseModel], name: str) -> None:
    said = openapi.schema(name)
    assert set(model.model_fields) == set(said["properties"])
    required = {field for field, info in model.model_fields.items() if info.is_required()}
    assert required == set(said.get("required", ()))
    assert said["additionalProperties"] is False


def test_a_sweep_is_a_submission_with_runs() -> None:
    said, submission = openapi.schema("Sweep"), openapi.schema("Submission")
    assert {k: v for k, v in said["properties"].items() if k != "runs"} == submission["properties"]
    assert said["required"] == [*submission["required"], "runs"]
    assert said["properties"]["runs"]["maxItems"] == MAX_RUNS
    assert said["additionalProperties"] is False
    for pattern in (openapi.schema("Group")["pattern"], said["properties"]["group"]["pattern"]):
        assert pattern == f"^{GROUP}$"


def test_the_job() -> None:
    said = openapi.schema("Job")
    names = {field.name for field in dataclasses.fields(Job)}
    assert names == set(said["properties"]) == set(said["required"])
    assert openapi.schema("State")["enum"] == [state.value for state in State]
    states = openapi.schema("Delivery")["properties"]["state"]["enum"]
    assert states == [state.value for state in DeliveryState]
    for name in ("train-aaaaaaaa", "a-b-22222222", "-aaaaaaaa", "A-aaaaaaaa", "a-11111111", "a"):
        said_name = openapi.schema("JobName")
        assert bool(re.fullmatch(said_name["pattern"], name)) == is_job_name(name)


def test_the_page() -> None:
    ((limit,),) = [
        [p for p in parameters if p.get("name") == "limit"]
        for parameters in [openapi.document()["paths"]["/jobs"]["get"]["parameters"]]
    ]
    assert (
        limit["schema"]["maximum"]
        == MAX_PAGE
        == openapi.schema("Page")["properties"]["jobs"]["maxItems"]
    )


def test_events_about_jobs_have_names_only() -> None:
    """Their schemas allow nothing that a route could refuse to tell."""
    schemas = {path.name: yaml.safe_load(path.read_text()) for path in SCHEMAS}
    for name in ("job.v2.yaml", "job-deleted.v1.yaml"):
        assert list(schemas[name]["properties"]) == ["name"]
        assert schemas[name]["additionalProperties"] is False


def test_types_are_up_to_date(tmp_path: Path) -> None:
    """`npm run types` has been run since the file was changed."""
    packages = openapi.ROOT / "node_modules"
    node = shutil.which("node", path=str(openapi.ROOT / ".venv" / "bin")) or shutil.which("node")
    if not (packages / "openapi-typescript").exists() or node is None:
        pytest.skip("needs Node.js and `npm ci`")
    made = tmp_path / "api.ts"
    prettier = [packages / ".bin" / "prettier", "--write", "--config", "package.json"]
    for command in (["scripts/types.js"], prettier):
        run = [node, *command, made]
        subprocess.run(run, cwd=openapi.ROOT, check=True, capture_output=True)
    assert made.read_text() == TYPES.read_text(), "run `npm run types`"


def in_order(operation: openapi.Operation) -> tuple[str, int, str]:
    """Sort what makes jobs first, and what deletes last: of a job its parts before itself."""
    rank = {"GET": "g", "POST": "c", "DELETE": "z"}[operation.method]
    depth = operation.template.count("/") if rank == "z" else 0
    return rank, -depth, str(operation)


async def test_answers_are_what_the_file_says(jp_fetch: Fetch, jp_root_dir: Path) -> None:
    """Every operation once as it succeeds, and once as it fails."""
    write_notebook(jp_root_dir, "train.ipynb", f"print(6 * 7)\n{RECORD_PICTURE}")
    (jp_root_dir / "helpers.py").write_text("")
    submission = {"notebook": "train.ipynb", "inputs": ["helpers.py"], "parameters": {"a": 1}}
    sweep = {**submission, "group": "night", "runs": [{"parameters": {"a": 2}}, {}]}
    answer = await jp_fetch(*API, "jobs", method="POST", body=json.dumps(submission))
    name = json.loads(answer.body)["name"]
    await ended(jp_fetch, name)
    bodies = {"jobs": submission, "preflight": submission, "sweeps": sweep}
    unseen = {str(operation) for operation in openapi.operations()}
    # What deletes comes last.
    for operation in sorted(openapi.operations(), key=in_order):
        for job in (name, "train-aaaaaaaa"):
            path = operation.path(name=job).split("/")
            body = None
            if operation.method == "POST":
                wrong = {"surprise": 1} if operation.template in bodies else {}
                sent = bodies.get(operation.template, {}) if job == name else wrong
                body = json.dumps(sent)
            params = {"group": "night" if job == name else "n/a", "metric": "dot"}
            try:
                answer = await jp_fetch(
                    *API, *path, method=operation.method, body=body, params=params
                )
                unseen.discard(str(operation))
            except HTTPClientError as error:
                assert error.response is not None
                answer = error.response
            kind = answer.headers.get("Content-Type", "")
            openapi.validate_answer(operation, answer.code, answer.body, kind)
    assert unseen == set()


async def test_failures_of_the_server_itself(jp_fetch: Fetch, jp_serverapp: Any) -> None:
    """What tornado or jupyter_server refuses reads like what we do, for JupyterLab, too."""
    for method, path in (("PUT", "jobs"), ("GET", "jobs/../jobs")):
        with pytest.raises(HTTPClientError) as caught:
            body = "{}" if method == "PUT" else None
            await jp_fetch(*API, path, method=method, body=body)
        assert caught.value.response is not None
        openapi.validate("Failure", json.loads(caught.value.response.body))
