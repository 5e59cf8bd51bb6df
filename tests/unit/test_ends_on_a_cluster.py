"""When an attempt on a cluster has ended, by its documents: the cluster has a word, too."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from job_runner.protocol import documents, layout, times
from jupyter_to_job.domain.state import deciding_attempt, delivered_attempt
from jupyter_to_job.exchange import FileExchange
from jupyter_to_job.service.reading.attempts import read_attempts

from . import exchanges

JOB = "train-abcdefgh"
EVICTED = {"reason": "Evicted", "message": "Drained.", "retried": False}
RETRIED = {**EVICTED, "retried": True}


def add(root: Path, reason: str | None, pod: dict[str, Any] | None, *, cancelled: bool) -> Any:
    """Return an exchange with a job of a cluster, and an attempt that left a result."""
    exchange = FileExchange(root, is_private=False)
    request = exchanges.request(JOB, backend="kubernetes")
    assert exchange.create(request, exchanges.RESULT, origin={"namespace": "team"})
    attempt = exchange.directory(JOB) / "attempt-1"
    attempt.mkdir()
    if reason != "none":
        state = "succeeded" if reason is None else "failed"
        documents.write_document(attempt / layout.OUTCOME, {
            "state": state, "reason": reason, "message": None, "exit_code": 0,
            "cells": {"done": 1, "total": 2}, "started": None, "finished": times.now(),
            "usage": {}, "result_sha256": "0" * 64,
        })  # fmt: skip
    if pod is not None:
        ended = {"uid": "p", "node": None, "time": times.now(), **pod}
        documents.write_document(attempt / layout.POD, ended)
    if cancelled:
        documents.write_document(exchange.directory(JOB) / layout.CANCEL, {"time": times.now()})
    return exchange


@pytest.mark.parametrize(
    ("reason", "pod", "cancelled", "decides"),
    [
        ("none", None, False, None),
        ("none", EVICTED, False, None),
        ("CellError", None, False, "CellError"),
        # Told to stop: another pod may follow until the cluster's word is here.
        ("Terminated", None, False, None),
        ("Terminated", None, True, "Terminated"),
        ("Terminated", EVICTED, False, "Evicted"),
        ("Lost", EVICTED, False, "Evicted"),
        ("CellError", EVICTED, False, "CellError"),
        ("Terminated", RETRIED, False, None),
        (None, RETRIED, False, "succeeded"),
    ],
)
def test_what_ends_a_job(
    tmp_path: Path, reason: str, pod: dict[str, Any] | None, cancelled: bool, decides: str | None
) -> None:
    attempts = read_attempts(add(tmp_path, reason, pod, cancelled=cancelled), JOB)
    deciding = deciding_attempt(attempts)
    if decides is None:
        assert deciding is None and delivered_attempt(attempts) is None
    else:
        assert deciding is not None and deciding.ended is not None
        assert (deciding.ended.reason or deciding.ended.state.value) == decides
        assert delivered_attempt(attempts) is deciding


def test_a_damaged_word_of_the_cluster_is_none(tmp_path: Path) -> None:
    """The runner's own is all that is known then."""
    exchange = add(tmp_path, "Terminated", EVICTED, cancelled=False)
    (exchange.directory(JOB) / "attempt-1" / layout.POD).write_bytes(b"{")
    deciding = deciding_attempt(read_attempts(exchange, JOB))
    assert deciding is not None and deciding.ended is not None
    assert deciding.ended.reason == "Terminated"
