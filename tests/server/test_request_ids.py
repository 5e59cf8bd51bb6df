"""One id goes with a request: from the client to the job's record, the log, and the answer."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from jupyter_server.serverapp import ServerApp

from jupyter_to_job import logs
from jupyter_to_job.controller.handler import GatewayContext
from jupyter_to_job.domain.errors import JobsError, NotFound, StorageFull, Unavailable
from jupyter_to_job.domain.job import Submission
from jupyter_to_job.exchange import FileExchange
from jupyter_to_job.exchange.gateway import Gateway
from jupyter_to_job.service.remote import RemoteJobs
from jupyter_to_job.service.submitting.submission import Caller

from ..gateways import context_of, serving
from ..processes import until
from ..unit.exchanges import settle
from .test_routes import API, Fetch, post, refusal, write_notebook

JOB = "train-abcdefgh"


@pytest.fixture
def files(exchange: Path) -> FileExchange:
    made = FileExchange(exchange)
    made.prepare()
    return made


@pytest.fixture
def context(files: FileExchange) -> Iterator[GatewayContext]:
    with context_of(files) as made:
        yield made


@pytest.fixture
def url(context: GatewayContext) -> Iterator[str]:
    with serving(context) as found:
        yield found


@pytest.fixture
def token_file(tmp_path: Path) -> Path:
    file = tmp_path / "token"
    file.write_text("me")
    return file


def get(url: str, path: str, **headers: str) -> httpx.Response:
    return httpx.get(f"{url}/{path}", headers={"Authorization": "Bearer me", **headers}, timeout=60)


def test_the_id_that_a_client_sends_comes_back(url: str) -> None:
    assert get(url, "api/flavors", **{logs.HEADER: "ab12"}).headers[logs.HEADER] == "ab12"
    made = {get(url, "api/flavors", **{logs.HEADER: sent}).headers[logs.HEADER] for sent in "{?"}
    assert len(made) == 2
    assert made.isdisjoint("{?")


@pytest.mark.parametrize("authorization", ["Bearer nobody", "Basic bWU6"])
def test_a_refusal_has_it_too(url: str, authorization: str) -> None:
    headers = {logs.HEADER: "ab12", "Authorization": authorization}
    answer = get(url, "api/jobs", **headers)
    assert answer.status_code == 403
    assert answer.headers[logs.HEADER] == "ab12"
    assert answer.json()["error"]["request_id"] == "ab12"


def test_what_the_user_can_mend_needs_no_id(url: str) -> None:
    error = get(url, f"api/jobs/{JOB}", **{logs.HEADER: "ab12"}).json()["error"]
    assert error["code"] == "not_found"
    assert "request_id" not in error


def test_it_is_recorded_with_the_job(
    url: str, files: FileExchange, tmp_path: Path, token_file: Path
) -> None:
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    notebook = {"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": []}
    (workspace / "train.ipynb").write_text(json.dumps(notebook))
    jobs = RemoteJobs(url, token_file, Caller("me", str(workspace)))
    with logs.context(request_id="ab12"):
        job, _ = jobs.submit(Submission("train.ipynb"))
    assert files.request(job.name).request_id == "ab12"


def test_an_error_that_crossed_a_gateway_has_it(
    url: str, context: GatewayContext, token_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gateway = Gateway(url, token_file)

    def fail(*_: Any) -> None:
        raise StorageFull("The disk is full.", "Wait.")

    monkeypatch.setattr(context.core.lister, "newest", fail)
    with logs.context(request_id="ab12"), pytest.raises(StorageFull) as full:
        gateway.call("GET", "jobs")
    assert full.value.request_id == "ab12"
    with pytest.raises(StorageFull) as full:
        gateway.call("GET", "jobs")
    assert len(full.value.request_id) == 16  # the gateway made one
    with pytest.raises(NotFound) as missing:
        gateway.call("GET", f"jobs/{JOB}")
    assert missing.value.request_id == ""


def test_an_error_of_ours_says_where_to_look(
    url: str,
    context: GatewayContext,
    token_file: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    def fail(*_: Any) -> None:
        raise RuntimeError("a bug")

    monkeypatch.setattr(context.core.lister, "newest", fail)
    with logs.context(request_id="ab12"), pytest.raises(JobsError) as failure:
        Gateway(url, token_file).call("GET", "jobs", params={"token": "secret"})
    assert failure.value.request_id == "ab12"
    assert "a bug" in caplog.text
    assert "secret" not in caplog.text


def test_lines_about_a_request_name_it_and_its_job(
    url: str, files: FileExchange, caplog: pytest.LogCaptureFixture
) -> None:
    settle(files, JOB)
    found: list[dict[str, Any]] = []

    class Collector(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            found.append(json.loads(logs.JsonFormatter().format(record)))

    log = logging.getLogger("jupyter_to_job.controller.request_log")
    handler = Collector()
    log.addHandler(handler)
    try:
        with caplog.at_level(logging.INFO):
            get(url, f"api/jobs/{JOB}?token=secret", **{logs.HEADER: "ab12"})
            until(lambda: found, "a line, which is written after the answer")
    finally:
        log.removeHandler(handler)
    (line,) = found
    assert line["request_id"] == "ab12"
    assert line["job"] == JOB
    assert (line["method"], line["path"], line["status"]) == ("GET", f"/api/jobs/{JOB}", 200)
    assert "secret" not in json.dumps(line)
    assert "Bearer" not in json.dumps(line)


def test_an_away_gateway_is_nobodys_request(tmp_path: Path, token_file: Path) -> None:
    with logs.context(request_id="ab12"), pytest.raises(Unavailable) as away:
        Gateway("http://127.0.0.1:9", token_file).call("GET", "jobs")
    assert away.value.request_id == ""


@pytest.mark.parametrize("probe", ["healthz", "readyz"])
def test_probes_at_the_gateway_need_no_token(url: str, probe: str) -> None:
    answer = httpx.get(f"{url}/{probe}", timeout=60)
    assert answer.status_code == 200
    assert answer.json()["status"] == "ok"
    assert httpx.request("GET", f"{url}/{probe}", content=b"x", timeout=60).status_code == 400
    assert httpx.post(f"{url}/{probe}", timeout=60).status_code == 405


def test_metrics_are_not_at_the_gateway(url: str) -> None:
    assert httpx.get(f"{url}/metrics", timeout=60).status_code == 404


def test_requests_are_counted_by_route(url: str, context: GatewayContext) -> None:
    for _ in range(3):
        get(url, f"api/jobs/{JOB}")
    httpx.request("BREW", f"{url}/api/flavors", timeout=60)
    labels = {"method": "GET", "route": "jobs/{name}", "code": "404"}
    count = "jupyter_to_job_http_request_seconds_count"
    assert context.metrics.registry.get_sample_value(count, labels) == 3

    def methods() -> set[str]:
        return {
            sample.labels["method"]
            for family in context.metrics.registry.collect()
            for sample in family.samples
            if sample.name == count
        }

    until(lambda: len(methods()) > 1, "the last answer is counted, too")
    assert methods() == {"GET", "other"}


async def test_the_extension_takes_the_id_of_the_browser(
    jp_fetch: Fetch, jp_root_dir: Path, files: FileExchange
) -> None:
    write_notebook(jp_root_dir, "train.ipynb", "print(6 * 7)")
    headers = {logs.HEADER: "ab12"}
    answer = await post(jp_fetch, "jobs", body={"notebook": "train.ipynb"}, **headers)
    assert answer.headers[logs.HEADER] == "ab12"
    recorded = files.request(json.loads(answer.body)["name"])
    assert recorded.request_id == "ab12"
    assert len((await jp_fetch(*API, "flavors")).headers[logs.HEADER]) == 16


async def test_an_error_of_the_extension_can_be_quoted(
    jp_fetch: Fetch,
    jp_serverapp: ServerApp,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    def fail(*_: Any) -> None:
        raise RuntimeError("a bug")

    jobs = jp_serverapp.web_app.settings["jupyter_to_job"].jobs
    monkeypatch.setattr(jobs, "flavors", fail)
    status, error = await refusal(jp_fetch(*API, "flavors", headers={logs.HEADER: "ab12"}))
    assert (status, error["request_id"]) == (500, "ab12")
    assert "request_id=ab12" in caplog.text
