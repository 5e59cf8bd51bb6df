"""What is delivered is what the run wrote: else it is put together again, or said to be missing."""

from __future__ import annotations

import hashlib
import json
import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from job_runner.attempt.artifacts import seal_artifacts
from job_runner.protocol import documents, layout, liveness
from job_runner.protocol.journal.journal import JournalWriter
from job_runner.protocol.outcome import CellCounts, Outcome, write_outcome
from job_runner.protocol.result.result import write_result
from jupyter_to_job.dispatcher.observation import Phase, names_in, observe
from jupyter_to_job.exchange import FileExchange
from jupyter_to_job.exchange.records import DeliveryRecord, HeldRecord
from jupyter_to_job.exchange.retention import Policy, enforce
from jupyter_to_job.service import delivery

from . import exchanges

NAME = "train-aaaaaaaa"
NOTEBOOK = {"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": []}


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(os, "fsync", lambda _: None)
    monkeypatch.setattr(delivery, "sign", lambda *_: None)
    made = tmp_path / "workspace"
    made.mkdir()
    (made / "train.ipynb").write_text(json.dumps(NOTEBOOK))
    return made


@pytest.fixture
def job(tmp_path: Path, workspace: Path) -> Path:
    """A job that has ended, whose result was folded from its journal, with three files."""
    exchange = FileExchange(tmp_path / "exchange")
    directory = exchanges.add(
        exchange, NAME, workspace=str(workspace), source=str(workspace / "train.ipynb")
    )
    claim = liveness.claim_attempt(directory, 1)
    journal = JournalWriter(claim.directory / layout.JOURNAL)
    journal.append({"t": 1.0, "k": "prepared", "cells_total": 0, "notebook": NOTEBOOK})
    journal.append({"t": 2.0, "k": "end", "state": "succeeded", "banner": [], "usage": {}})
    journal.close()
    result = write_result(directory, claim.directory)
    for name in ("a.bin", "b.bin", "plots/c.png"):
        path = claim.directory / layout.ARTIFACTS / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(name.encode() * 1000)
    manifest = seal_artifacts(claim.directory)
    cells = CellCounts(done=0, total=0)
    ended = Outcome(
        "succeeded", None, None, 0, cells, None, exchanges.ENDED, {}, result.sha256, manifest
    )
    write_outcome(claim.directory, ended)
    claim.release()
    return directory


def deliver(job: Path) -> DeliveryRecord | None:
    exchange = FileExchange(job.parent)
    delivery.deliver(exchange, job.name)
    return exchange.record(job.name, layout.DELIVERY, DeliveryRecord)


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def _damages() -> Iterator[tuple[str, Callable[[Path], object]]]:
    yield "cut", lambda path: path.write_bytes(path.read_bytes()[:-20])
    yield "noise", lambda path: path.write_bytes(os.urandom(200))
    yield "empty", lambda path: path.write_bytes(b"")
    yield "another notebook", lambda path: path.write_text(json.dumps({**NOTEBOOK, "cells": [1]}))
    yield "missing", lambda path: path.unlink()
    yield "a pipe", _pipe


DAMAGES = dict(_damages())


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_result_is_folded_anew(job: Path, workspace: Path, damage: str) -> None:
    outcome = json.loads((job / "attempt-1" / layout.OUTCOME).read_bytes())
    DAMAGES[damage](job / "attempt-1" / layout.RESULT)
    record = deliver(job)
    assert record is not None and record.message is None
    assert record.sha256 == outcome["result_sha256"] == _digest(workspace / record.path)


def test_a_damaged_journal_too_is_said(job: Path, workspace: Path) -> None:
    """What can still be read is delivered, and does not count as all of it."""
    (job / "attempt-1" / layout.RESULT).write_bytes(b"noise")
    journal = job / "attempt-1" / layout.JOURNAL / "00000001.jsonl"
    lines = journal.read_bytes().splitlines(keepends=True)
    journal.write_bytes(lines[0] + b"damaged\n" + lines[1])
    record = deliver(job)
    assert record is not None and "parts may be lost" in (record.message or "")
    assert json.loads((workspace / record.path).read_bytes())["nbformat"] == 4
    assert enforce(FileExchange(job.parent), Policy(0)) == [NAME]


def test_nothing_left_of_a_result_is_held(job: Path) -> None:
    (job / "attempt-1" / layout.RESULT).unlink()
    (job / layout.SNAPSHOT).unlink()
    (job / "attempt-1" / layout.JOURNAL / "00000001.jsonl").unlink()
    assert deliver(job) is None
    held = FileExchange(job.parent).record(NAME, layout.HELD, HeldRecord)
    assert held is not None and "damaged" in held.message and "Run it again" in held.message
    assert held.failed
    assert observe(job, names_in(job)).phase is Phase.SETTLED  # nobody tries it for ever


def test_a_lost_file_is_said(job: Path, workspace: Path) -> None:
    """A power cut left it empty: its size and its digest are in the outcome."""
    made = job / "attempt-1" / layout.ARTIFACTS
    (made / "a.bin").write_bytes(b"")
    (made / "plots" / "c.png").unlink()
    record = deliver(job)
    assert record is not None and record.artifacts == (f"{NAME}/b.bin",)
    assert "Of 3 files that the run created 2 are damaged or missing" in (record.message or "")
    assert "a.bin, plots/c.png" in (record.message or "")
    assert [p.name for p in (workspace / NAME).rglob("*") if p.is_file()] == ["b.bin"]


@pytest.mark.parametrize("path", ["../../request.json", "/etc/hostname", "a/../../b", ""])
def test_a_forged_manifest_leads_nowhere(job: Path, path: str) -> None:
    outcome = job / "attempt-1" / layout.OUTCOME
    document = json.loads(outcome.read_bytes())
    document["artifacts"] = [{"path": path, "size": 1, "sha256": "0"}]
    documents.write_document(outcome, document)
    assert deliver(job) is None
    held = FileExchange(job.parent).record(NAME, layout.HELD, HeldRecord)
    assert held is not None and held.failed and "is no path" in held.message


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o644])
def test_no_more_readable_than_its_source(job: Path, workspace: Path, mode: int) -> None:
    before = os.umask(0o022)
    try:
        (workspace / "train.ipynb").chmod(mode)
        (job / "attempt-1" / layout.ARTIFACTS / "a.bin").chmod(mode)
        record = deliver(job)
    finally:
        os.umask(before)
    assert record is not None
    for path in (workspace / record.path, workspace / NAME / "a.bin"):
        assert stat.S_IMODE(path.stat().st_mode) == mode


def test_a_source_that_is_gone_leaves_a_private_result(job: Path, workspace: Path) -> None:
    (workspace / "train.ipynb").unlink()
    record = deliver(job)
    assert record is not None
    assert stat.S_IMODE((workspace / record.path).stat().st_mode) == 0o600


def test_a_sparse_file_stays_sparse(job: Path, workspace: Path) -> None:
    """One of 5 GiB without content took 5 GiB of the user's disk."""
    made = job / "attempt-1" / layout.ARTIFACTS / "a.bin"
    with made.open("wb") as file:
        file.truncate(64 << 20)
    outcome = job / "attempt-1" / layout.OUTCOME
    document = json.loads(outcome.read_bytes())
    document["artifacts"] = [vars(record) for record in seal_artifacts(job / "attempt-1") or ()]
    documents.write_document(outcome, document)
    assert deliver(job) is not None
    status = (workspace / NAME / "a.bin").stat()
    assert status.st_size == 64 << 20 and status.st_blocks * 512 < 1 << 20
