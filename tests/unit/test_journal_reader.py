"""Offsets of a journal count over all attempts, negative from the end, in whole records."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from job_runner.protocol import layout
from job_runner.protocol.journal import journal
from job_runner.protocol.journal.journal import JournalWriter
from jupyter_to_job.domain.errors import TooLarge, Unavailable
from jupyter_to_job.service.reading import journal_reader
from jupyter_to_job.service.reading.journal_reader import (
    MAX_ANSWER,
    partial_notebook,
    read_records,
    read_text,
)


def output(number: int, text: str = "") -> dict[str, object]:
    shown = {"output_type": "stream", "name": "stdout", "text": text or f"{number}\n"}
    return {"t": 1.0, "k": "output", "i": number, "output": shown}


def write(directory: Path, *attempts: list[dict[str, object]]) -> list[dict[str, object]]:
    """Write a journal per attempt, in segments of three records; return all records."""
    for number, records in enumerate(attempts, start=1):
        folder = layout.attempt_dir(directory, number) / layout.JOURNAL
        folder.mkdir(parents=True)
        for begin in range(0, len(records), 3):
            writer = JournalWriter(folder)
            for record in records[begin : begin + 3]:
                writer.append(record)
            writer.close()
    return [record for records in attempts for record in records]


@pytest.fixture
def job(tmp_path: Path) -> Path:
    return tmp_path / "job"


def size(directory: Path) -> int:
    folders = [
        layout.attempt_dir(directory, n) / layout.JOURNAL for n in layout.attempts(directory)
    ]
    return sum(journal.journal_size(folder) for folder in folders)


def test_whole_and_from_any_record(job: Path) -> None:
    records = write(job, [output(i) for i in range(7)], [output(i) for i in range(7, 11)])
    whole = read_records(job, 0, final=True)
    assert (whole.records, whole.next, whole.end) == (records, size(job), True)
    for index, record in enumerate(records):
        before = sum(len(journal.encode(r)) for r in records[:index])
        rest = read_records(job, before, final=False)
        assert (rest.records[0], rest.records, rest.end) == (record, records[index:], False)
    assert read_records(job, whole.next, final=False).records == []
    assert read_text(job, 0, final=True).text == "".join(f"{i}\n" for i in range(11))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=200)
@given(st.integers(1, 3000))
def test_from_the_end(tmp_path: Path, back: int) -> None:
    """A negative offset gives the records that lie in so many last bytes as a whole."""
    job = tmp_path / "job"
    if not job.exists():
        write(job, [output(i) for i in range(7)], [], [output(i) for i in range(7, 20)])
    records = read_records(job, 0, final=True).records
    lengths = [len(journal.encode(record)) for record in records]
    fitting = [n for n in range(len(records) + 1) if sum(lengths[n:]) <= back]
    last = read_records(job, -back, final=True)
    assert last.records == records[fitting[0] :]
    assert last.next == size(job)


def test_pieces_of_at_most_a_mebibyte(job: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal_reader, "MAX_ANSWER", 2000)
    records = write(job, [output(i, "x" * 300) for i in range(9)], [output(9, "y" * 300)])
    found, offset, answers = [], 0, 0
    while True:
        piece = read_records(job, offset, final=True)
        assert len(json.dumps(piece.records, separators=(",", ":"))) < 2000
        found += piece.records
        offset, answers = piece.next, answers + 1
        if piece.end:
            break
        assert piece.records
    assert found == records
    assert answers > 2


def test_a_record_that_is_too_large_is_named(job: Path) -> None:
    large = output(1, "x" * MAX_ANSWER)
    write(job, [output(0), large, output(2)])
    found, offset, end = [], 0, False
    while not end:
        piece = read_records(job, offset, final=True)
        assert len(json.dumps(piece.records)) < MAX_ANSWER
        found += piece.records
        offset, end = piece.next, piece.end
    omitted = {"k": "omitted", "of": "output", "t": 1.0, "i": 1}
    assert found == [output(0), {**omitted, "bytes": len(journal.encode(large))}, output(2)]
    assert "x" * MAX_ANSWER in read_text(job, 0, final=True).text


def test_of_a_widget_that_is_too_large_its_model_is_named(job: Path) -> None:
    state = {"value": "x" * MAX_ANSWER}
    large = {"t": 1.0, "k": "widget", "i": 1, "id": "0f-a_1", "state": state}
    write(job, [large])
    (omitted,) = read_records(job, 0, final=True).records
    assert (omitted["of"], omitted["i"], omitted["id"]) == ("widget", 1, "0f-a_1")


def test_damage_is_marked_and_a_torn_end_is_not_there_yet(job: Path) -> None:
    write(job, [output(0), output(1), output(2)])
    path = layout.attempt_dir(job, 1) / layout.JOURNAL / "00000001.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(lines[0] + b"rubbish\n" + lines[2] + b"torn")
    piece = read_records(job, 0, final=False)
    assert piece.records == [output(0), {"k": "damaged", "bytes": 8}, output(2)]
    assert piece.next == size(job) - len("torn")
    assert read_records(job, piece.next, final=False).records == []
    # A torn line that another attempt follows will never be whole: the next one is read.
    write_second = layout.attempt_dir(job, 2) / layout.JOURNAL
    write_second.mkdir(parents=True)
    writer = JournalWriter(write_second)
    writer.append(output(3))
    writer.close()
    assert read_records(job, piece.next, final=True).records[-1] == output(3)


def test_a_job_that_did_not_begin(job: Path) -> None:
    for offset in (0, -100, 100):
        assert read_records(job, offset, final=False).records == []
        assert read_text(job, offset, final=False).text == ""


def test_the_notebook_so_far(job: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(job, [output(0)])
    assert partial_notebook(job, 1) is None
    (job / layout.SNAPSHOT).write_text('{"nbformat": 4, "cells": []}')
    monkeypatch.setattr(journal_reader, "MAX_PARTIAL_JOURNAL", size(job))
    so_far = partial_notebook(job, 1)
    assert so_far is not None
    with so_far:
        (cell,) = json.load(so_far)["cells"]
    assert cell["outputs"][0]["text"] == ["0\n"]
    made = tempfile.TemporaryFile
    with monkeypatch.context() as patched:
        full = Path("/dev/full")
        patched.setattr(
            tempfile, "TemporaryFile", lambda **how: made(**how) if how else full.open("w+b")
        )
        with pytest.raises(Unavailable, match="No space left"):
            partial_notebook(job, 1)
    monkeypatch.setattr(journal_reader, "MAX_PARTIAL_JOURNAL", size(job) - 1)
    with pytest.raises(TooLarge, match="MiB of output"):
        partial_notebook(job, 1)
