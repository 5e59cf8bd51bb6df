"""docs/protocol.md says what the code writes: no field and no record is missing or made up."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path

from job_runner.protocol import layout
from job_runner.protocol.outcome import Outcome
from job_runner.protocol.result.fold import NotebookFold
from jupyter_to_job.exchange import Request

from ..protocol_page import PAGE, document_fields, record_fields, rows

RUNNER = Path(__file__).parents[2] / "job_runner"


def test_request() -> None:
    assert document_fields("### request.json") == {f.name for f in fields(Request)}


def test_what_a_runner_reads_of_a_request() -> None:
    marked = {
        name
        for row in rows("### request.json")
        if row[1] == "x"
        for name in re.findall(r"`([^`]+)`", row[0])
    }
    source = "".join(path.read_text() for path in RUNNER.rglob("*.py"))
    assert marked == set(re.findall(r"request(?:\.get\(|\[)['\"](\w+)['\"]", source))


def test_outcome() -> None:
    assert document_fields("### outcome.json") == {f.name for f in fields(Outcome)}


def test_kinds_of_records() -> None:
    written = {
        kind
        for path in RUNNER.rglob("*.py")
        for kind in re.findall(r'"k": "(\w+)"', path.read_text())
    }
    read = {name.removeprefix("_on_") for name in vars(NotebookFold) if name.startswith("_on_")}
    assert set(record_fields()) == written - {"damaged", "omitted"}  # readers make those
    assert read - {"damaged", "omitted"} <= written


def test_every_file_is_named() -> None:
    page = PAGE.read_text()
    files = [v for k, v in vars(layout).items() if k.isupper() and isinstance(v, str)]
    assert [file for file in files if file not in page] == []
