"""Who may read and write which piece through the gateway."""

from __future__ import annotations

import json
import time
import tracemalloc
from pathlib import Path
from typing import Any

import pytest

from job_runner.attempt.finish import finish_job
from job_runner.protocol import documents, layout
from job_runner.protocol.journal import journal
from jupyter_to_job.api import ApiRequest as Call
from jupyter_to_job.api import error_response
from jupyter_to_job.controller.callers.identity import AgentPod, DevPod, Identity
from jupyter_to_job.controller.intake.attempt_budgets import AttemptBudgets
from jupyter_to_job.controller.intake.budgets import Budgets, Caps
from jupyter_to_job.controller.intake.exchange_routes import ExchangeRoutes
from jupyter_to_job.domain.errors import JobsError, WrongOffset
from jupyter_to_job.exchange import FileExchange, Request
from jupyter_to_job.exchange.retention import Policy, enforce
from jupyter_to_job.exchange.uploads import Upload

from .exchanges import OUTCOME

JOB = "train-abcdefgh"
ADA, EVE = DevPod("ada", {}), DevPod("eve", {})
AGENT, OTHER_POD = AgentPod(JOB, "pod-1"), AgentPod(JOB, "pod-2")
SNAPSHOT = {"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": []}
CLAIM = documents.encode({"pod": "pod-1"})
DELIVERY = {"path": "a.ipynb", "sha256": "0" * 64, "time": "2026-01-01T00:00:00.000Z"}
LINE = journal.encode({"k": "start", "t": 1.0})


@pytest.fixture
def exchange(tmp_path: Path) -> FileExchange:
    found = FileExchange(tmp_path / "exchange")
    request = Request(
        name=JOB,
        owner="ada",
        notebook="train.ipynb",
        source="/train.ipynb",
        workspace="/",
        flavor="small",
        device="cpu",
        flavor_spec={},
        device_spec={},
        demand={},
        snapshot_sha256="0" * 64,
        submitted="2026-01-01T00:00:00.000Z",
        backend="kubernetes",
        digest="d",
    )
    assert found.create(request, json.dumps(SNAPSHOT).encode())
    return found


@pytest.fixture
def pieces(exchange: FileExchange) -> ExchangeRoutes:
    return ExchangeRoutes(exchange, AttemptBudgets(exchange, Budgets(exchange, Caps(reserve=0))))


def status(
    pieces: ExchangeRoutes, who: Identity, method: str, path: str, body: bytes = b"", **query: str
) -> int:
    try:
        answer, _ = pieces.handle(who, Call(method, f"exchange/{path}", query, {}, body))
    except JobsError as error:
        return error_response(error).status
    return answer.status


def put(pieces: ExchangeRoutes, who: Identity, path: str, document: dict[str, Any]) -> int:
    body = json.dumps({"v": 1, **document}).encode()  # with NaN, which we would not write
    return status(pieces, who, "PUT", f"{JOB}/{path}", body)


@pytest.mark.parametrize(
    ("who", "path", "code"),
    [
        (ADA, f"{JOB}/request.json", 200),
        (AGENT, f"{JOB}/request.json", 200),
        (EVE, f"{JOB}/request.json", 404),
        (AgentPod("other-abcdefgh", "pod-1"), f"{JOB}/request.json", 404),
        (ADA, "nobody-abcdefgh/request.json", 404),
        (ADA, f"{JOB}/../{JOB}/request.json", 400),
        (ADA, f"../{JOB}/request.json", 404),
        (ADA, f"{JOB}//etc/passwd", 400),
        (ADA, f"{JOB}/inputs/../../../etc/passwd", 400),
        (ADA, f"{JOB}/request.json\0", 400),
        (ADA, f"{JOB}/inputs", 404),
        (ADA, f"{JOB}/request.json/inside", 404),
    ],
)
def test_who_may_read(pieces: ExchangeRoutes, who: Identity, path: str, code: int) -> None:
    assert status(pieces, who, "GET", path) == code


@pytest.mark.parametrize("method", ["GET", "HEAD", "PUT", "POST", "DELETE"])
@pytest.mark.parametrize("path", ["request.json", "attempt-1/outcome.json", "delivery.json"])
def test_another_owners_job_is_answered_like_one_that_is_not_there(
    pieces: ExchangeRoutes, method: str, path: str
) -> None:
    answers = []
    for job in (JOB, "train-hgfedcba"):
        with pytest.raises(JobsError) as refused:
            pieces.handle(EVE, Call(method, f"exchange/{job}/{path}"))
        answers.append(error_response(refused.value).body.replace(job.encode(), b"JOB"))
    assert answers[0] == answers[1]


def test_head_tells_the_length_without_the_bytes(pieces: ExchangeRoutes) -> None:
    answer, _ = pieces.handle(ADA, Call("HEAD", f"exchange/{JOB}/snapshot.ipynb"))
    assert answer.headers["Content-Length"] == str(len(json.dumps(SNAPSHOT)))
    assert answer.body == b""


@pytest.mark.parametrize(
    ("who", "path"),
    [
        (AGENT, "request.json"),
        (AGENT, "snapshot.ipynb"),
        (AGENT, "origin.json"),
        (AGENT, "cancel.json"),
        (AGENT, "delivery.json"),
        (AGENT, "attempt-1/result.ipynb"),
        (AGENT, "attempt-1/lock"),
        (AGENT, "attempt-0/runner.json"),
        (AGENT, "attempt-1/journal/x.jsonl"),
        (AGENT, "attempt-1/journal/../outcome.json"),
        (ADA, "request.json"),
        (ADA, "cancel.json"),
        (ADA, "attempt-1/runner.json"),
        (ADA, "attempt-1/outcome.json"),
        (ADA, "attempt-1/journal/00000001.jsonl"),
    ],
)
def test_who_may_not_write(pieces: ExchangeRoutes, who: Identity, path: str) -> None:
    assert status(pieces, who, "PUT", f"{JOB}/{path}", CLAIM) in (400, 403)
    assert status(pieces, who, "POST", f"{JOB}/{path}", CLAIM, offset="0") in (400, 403)


def test_an_attempt_is_one_pods(pieces: ExchangeRoutes) -> None:
    log = f"{JOB}/attempt-1/journal/00000001.jsonl"
    assert status(pieces, AGENT, "POST", log, LINE, offset="0") == 403  # nothing claimed
    assert put(pieces, OTHER_POD, "attempt-1/runner.json", {"pod": "pod-1"}) == 403
    assert put(pieces, AGENT, "attempt-1/runner.json", {"pod": "pod-1"}) == 200
    assert put(pieces, AGENT, "attempt-1/runner.json", {"pod": "pod-1"}) == 200  # started again
    assert put(pieces, OTHER_POD, "attempt-1/runner.json", {"pod": "pod-2"}) == 409
    assert status(pieces, AGENT, "POST", log, LINE, offset="0") == 200
    assert status(pieces, AGENT, "POST", log, LINE, offset="0") == 409
    assert status(pieces, OTHER_POD, "POST", log, LINE, offset=str(len(LINE))) == 403
    assert put(pieces, OTHER_POD, "attempt-1/outcome.json", OUTCOME) == 403


def test_nothing_is_claimed_after_a_cancel(pieces: ExchangeRoutes, exchange: FileExchange) -> None:
    exchange.write_once(JOB, layout.CANCEL, {"time": "now", "who": "ada"})
    assert put(pieces, AGENT, "attempt-1/runner.json", {"pod": "pod-1"}) == 403


def test_an_outcome_comes_with_its_result_and_ends_the_attempt(
    pieces: ExchangeRoutes, exchange: FileExchange
) -> None:
    assert put(pieces, AGENT, "attempt-1/runner.json", {"pod": "pod-1"}) == 200
    assert put(pieces, ADA, "delivery.json", DELIVERY) == 409  # it has not ended
    log = f"{JOB}/attempt-1/journal/00000001.jsonl"
    assert status(pieces, AGENT, "POST", log, LINE, offset="0") == 200
    assert put(pieces, AGENT, "attempt-1/outcome.json", OUTCOME) == 200
    assert put(pieces, ADA, "delivery.json", DELIVERY) == 409  # its result is not there yet
    assert finish_job(exchange.directory(JOB), None, None) == 0
    assert exchange.read(JOB, "attempt-1/result.ipynb")
    assert put(pieces, AGENT, "attempt-1/outcome.json", OUTCOME) == 200
    assert put(pieces, AGENT, "attempt-1/outcome.json", {**OUTCOME, "state": "failed"}) == 409
    end = str(len(LINE))
    assert status(pieces, AGENT, "POST", log, LINE, offset=end) == 409
    with pytest.raises(WrongOffset) as wrong:  # an agent that begins again learns where it was
        pieces.handle(AGENT, Call("POST", f"exchange/{log}", {"offset": "0"}, {}, LINE))
    assert wrong.value.length == len(LINE)
    assert exchange.size(JOB, "attempt-1/journal/00000001.jsonl") == len(LINE)
    impossible = {**DELIVERY, "time": "2025-99-99T99:99:99.999Z"}
    assert put(pieces, ADA, "delivery.json", impossible) == 400
    assert put(pieces, ADA, "delivery.json", DELIVERY) == 200
    assert put(pieces, ADA, "delivery.json", {**DELIVERY, "path": "b.ipynb"}) == 409


def test_a_delivery_in_the_far_future_is_cleared_in_its_time(
    pieces: ExchangeRoutes, exchange: FileExchange
) -> None:
    assert put(pieces, AGENT, "attempt-1/runner.json", {"pod": "pod-1"}) == 200
    log = f"{JOB}/attempt-1/journal/00000001.jsonl"
    assert status(pieces, AGENT, "POST", log, LINE, offset="0") == 200
    assert put(pieces, AGENT, "attempt-1/outcome.json", OUTCOME) == 200
    assert finish_job(exchange.directory(JOB), None, None) == 0
    outcome = exchange.outcome(JOB, 1)
    assert outcome is not None
    delivery = {**DELIVERY, "sha256": outcome.result_sha256, "time": "9999-12-31T23:59:59.999Z"}
    assert put(pieces, ADA, "delivery.json", delivery) == 200
    assert enforce(exchange, Policy(60), time.time() + 30) == []
    assert enforce(exchange, Policy(60), time.time() + 90) == [JOB]


@pytest.mark.parametrize(
    "change",
    [
        {"state": "running"},
        {"cells": {}},
        {"cells": 3},
        {"finished": None},
        {"finished": "9999"},
        {"finished": "2026-13-45T99:99:99.000Z"},
        {"artifacts": [{"path": 1}]},
        {"usage": None},
        {"usage": {"wall": float("nan")}},
        {"usage": {"wall": float("inf")}},
        {"usage": {"wall": "1"}},
        {"result_sha256": "../x"},
        {"exit_code": "0"},
    ],
    ids=str,
)
def test_an_outcome_of_another_shape_is_not_taken(pieces: ExchangeRoutes, change: Any) -> None:
    assert put(pieces, AGENT, "attempt-1/runner.json", {"pod": "pod-1"}) == 200
    assert put(pieces, AGENT, "attempt-1/outcome.json", {**OUTCOME, **change}) == 400


def test_a_figure_of_a_newer_runner_is_ignored(
    pieces: ExchangeRoutes, exchange: FileExchange
) -> None:
    usage = {"wall": 1.5, "gpus": [{"busy": 0.5}]}
    assert put(pieces, AGENT, "attempt-1/runner.json", {"pod": "pod-1"}) == 200
    assert put(pieces, AGENT, "attempt-1/outcome.json", {**OUTCOME, "usage": usage}) == 200
    assert finish_job(exchange.directory(JOB), None, None) == 0
    outcome = exchange.outcome(JOB, 1)
    assert outcome is not None and (outcome.state, outcome.usage) == ("succeeded", {"wall": 1.5})


def test_what_a_killed_run_created_is_named_by_its_own_pod(
    pieces: ExchangeRoutes, exchange: FileExchange
) -> None:
    path, named = "attempt-1/created.json", {"files": [{"path": "a", "size": 1}], "omitted": 0}
    assert put(pieces, AGENT, path, named) == 403  # nothing claimed
    assert put(pieces, AGENT, "attempt-1/runner.json", {"pod": "pod-1"}) == 200
    for wrong in ({}, {"files": 1}, {"files": [{"path": "a"}]}, {"files": [], "omitted": "1"}):
        assert put(pieces, AGENT, path, wrong) == 400
    assert put(pieces, OTHER_POD, path, named) == 403
    assert put(pieces, ADA, path, named) == 403
    assert put(pieces, AGENT, path, named) == 200
    assert put(pieces, AGENT, path, named) == 200  # started again
    assert put(pieces, AGENT, path, {**named, "omitted": 1}) == 409
    assert put(pieces, AGENT, "attempt-1/outcome.json", OUTCOME) == 200
    assert put(pieces, AGENT, path, named) == 409
    assert exchange.has(JOB, path)


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"{}", b'{"v": 2}', b'{"v": 1}', b"[" * 99999])
def test_a_document_that_is_none_is_not_taken(pieces: ExchangeRoutes, body: bytes) -> None:
    assert status(pieces, AGENT, "PUT", f"{JOB}/attempt-1/runner.json", body) == 400
    assert status(pieces, ADA, "PUT", f"{JOB}/delivery.json", body) == 400


def test_names_of_artifacts_do_not_stay_in_memory(exchange: FileExchange) -> None:
    budgets = AttemptBudgets(exchange, Budgets(exchange, Caps(reserve=0)))
    tracemalloc.start()
    try:
        for number in range(1_000):
            path = f"attempt-1/artifacts/{number:04}" + "/".join(["x" * 200] * 4)
            with budgets.admit(JOB, path, Upload.of(b"")):
                pass
        kept, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert kept < 400_000  # the names alone are 800,000 bytes
