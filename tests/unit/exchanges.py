"""Exchanges with jobs in them, for tests that need many, or old ones, without running anything."""

from __future__ import annotations

import hashlib
import os
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

from job_runner.protocol import documents, layout, liveness, times
from job_runner.protocol.journal.journal import JournalWriter
from job_runner.protocol.outcome import CellCounts, Outcome, write_outcome
from jupyter_to_job.exchange import FileExchange, InputFile, Request
from jupyter_to_job.exchange.stamps import RACY

RESULT = b'{"nbformat": 4, "cells": []}'
SHA256 = hashlib.sha256(RESULT).hexdigest()
ENDED = "2026-11-21T09:31:00.000Z"
DELIVERED = "2026-11-21T09:32:00.000Z"
OUTCOME: dict[str, Any] = {
    "state": "succeeded",
    "reason": None,
    "message": None,
    "exit_code": 0,
    "cells": {"done": 0, "total": 0},
    "started": None,
    "finished": "2026-01-01T00:00:00.000Z",
    "usage": {},
    "result_sha256": "0" * 64,
}
"""What an agent sends as the outcome of a run."""


def request(name: str, **fields: object) -> Request:
    """Return a request of a job called `name`."""
    made = Request(
        name=name, owner="me", notebook="train.ipynb", source="/w/train.ipynb", workspace="/w",
        flavor="small", device="cpu", flavor_spec={}, device_spec={}, demand={"cpu": "1"},
        snapshot_sha256="", submitted="2026-11-21T09:30:00.000Z", backend="memory", digest="",
    )  # fmt: skip
    return replace(made, **fields)  # type: ignore[arg-type]


def add(exchange: FileExchange, name: str, **fields: object) -> Path:
    """Record a job with an input, and return its directory."""

    def write(target: Path) -> InputFile:
        target.write_bytes(b"data")
        return InputFile("data/a.csv", "", 4)

    assert exchange.create(request(name, **fields), RESULT, {"data/a.csv": write})
    return exchange.directory(name)


def end(
    directory: Path, state: str = "succeeded", *, result: bool = True, finished: str = ENDED
) -> None:
    """Have an attempt that has ended in a job's directory."""
    claim = liveness.claim_attempt(directory, 1)
    writer = JournalWriter(claim.directory / layout.JOURNAL)
    writer.append({"k": "start", "t": 1.0, "v": 1, "kernel": "python3", "sockets": ""})
    writer.close()
    if result:
        documents.write_bytes(claim.directory / layout.RESULT, RESULT)
        (claim.directory / layout.ARTIFACTS).mkdir()
        (claim.directory / layout.ARTIFACTS / "model.bin").write_bytes(b"weights")
    reason = None if state == "succeeded" else "RunnerMissing"
    message = None if state == "succeeded" else "Nothing ran."
    cells = CellCounts(done=0, total=0)
    digest = SHA256 if result else None
    write_outcome(
        claim.directory, Outcome(state, reason, message, 0, cells, None, finished, {}, digest)
    )
    claim.release()


def deliver(directory: Path, sha256: str = SHA256, moment: str = DELIVERED) -> None:
    """Record the delivery of an ended job."""
    record = {"path": f"{directory.name}.ipynb", "sha256": sha256, "time": moment}
    documents.write_document_once(directory / layout.DELIVERY, record)
    seconds = times.parse(moment).timestamp()
    os.utime(directory / layout.DELIVERY, (seconds, seconds))


def settle(exchange: FileExchange, name: str, **fields: object) -> Path:
    """Record a job that is delivered."""
    directory = add(exchange, name, **fields)
    end(directory)
    deliver(directory)
    return directory


def grow_old(exchange: FileExchange) -> None:
    """Wait until what was written is old enough for the index to rely on its time."""
    youngest = max((p.stat().st_ctime for p in exchange.root.iterdir()), default=0.0)
    time.sleep(max(0.0, youngest + RACY + 0.05 - time.time()))
