"""Journals that are cut or have bits turned, in any place: no reader breaks, and none makes up.

Twenty of them in each scenario: `make soak` comes to thousands.
"""

from __future__ import annotations

import json
import random
import re
from collections import Counter
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_notebook

from job_runner.attempt.finalize import summarize_journal
from job_runner.protocol import layout
from job_runner.protocol.journal import journal
from job_runner.protocol.journal.journal import JournalWriter, read_journal
from job_runner.protocol.result.result import fold_result
from job_runner.protocol.result.spool import Spool
from jupyter_to_job.service.reading.journal_reader import read_records, read_text

DAMAGED = 20
CELLS = 4
PIECES = 12
NUMBER = re.compile(r"<(\d+)>")


def records() -> list[dict[str, Any]]:
    """What a run says that prints numbers in order, some by displays and some by errors."""
    notebook = json.loads(
        nbformat.writes(new_notebook(cells=[new_code_cell("1") for _ in range(CELLS)]))
    )
    made: list[dict[str, Any]] = [
        {"k": "start", "v": 1, "kernel": "python3", "sockets": None},
        {"k": "prepared", "cells_total": CELLS, "notebook": notebook},
    ]
    for index in range(CELLS):
        made.append({"k": "cell_start", "i": index})
        for piece in range(PIECES):
            text = f"<{index * PIECES + piece}> €\n"
            output: dict[str, Any] = {"output_type": "stream", "name": "stdout", "text": text}
            if piece % 4 == 3:
                data = {"text/plain": text, "application/json": {"a": [1, None]}}
                output = {"output_type": "display_data", "data": data, "metadata": {}}
            made.append({"k": "output", "i": index, "output": output})
        made.append({"k": "cell_end", "i": index, "ok": True, "execution_count": index})
    made.append({"k": "end", "state": "succeeded", "reason": None, "cell": None, "banner": []})
    return [{"t": 1.8e9 + number, **record} for number, record in enumerate(made)]


def write(job: Path, said: list[dict[str, Any]], rng: random.Random) -> Path:
    """Write a journal in some segments; return its folder."""
    folder = layout.attempt_dir(job, 1) / layout.JOURNAL
    folder.mkdir(parents=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(journal, "SEGMENT_BYTES", rng.choice([500, 2000, 1 << 20]))
        writer = JournalWriter(folder)
        for record in said:
            writer.append(record)
        writer.close()
    return folder


def damage(folder: Path, rng: random.Random) -> str:
    """Turn bits of one segment, or cut it at a random byte; say what was done."""
    segment = rng.choice(sorted(folder.iterdir()))
    data = bytearray(segment.read_bytes())
    what = rng.choice(["turned", "turned", "cut", "gone", "noise"])
    if what == "turned":
        for _ in range(rng.choice([1, 1, 3])):
            data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    elif what == "cut":
        del data[rng.randrange(len(data)) :]
    elif what == "noise":
        at = rng.randrange(len(data))
        data[at : at + rng.randrange(200)] = rng.randbytes(rng.randrange(200))
    if what == "gone":
        segment.unlink()
    else:
        segment.write_bytes(data)
    return what


def paged(job: Path) -> list[dict[str, Any]]:
    """All records as a viewer gets them."""
    found, offset, end = [], 0, False
    while not end:
        piece = read_records(job, offset, final=True)
        found += piece.records
        offset, end = piece.next, piece.end
    return found


def test_a_damaged_journal_makes_up_nothing(
    tmp_path: Path, rng: random.Random, met: Counter[str]
) -> None:
    said = records()
    for number in range(DAMAGED):
        job = tmp_path / f"job-{number}"
        folder = write(job, said, rng)
        met[damage(folder, rng)] += 1
        seen = [entry.record for entry in read_journal(folder)]
        whole = [record for record in seen if record["k"] != "damaged"]
        assert whole == [record for record in said if record in whole]
        assert paged(job) == seen
        assert len(list(read_journal(folder, skip_outputs=True))) == len(seen)
        summarize_journal(folder.parent)
        log = read_text(job, 0, final=True).text
        with fold_result(job, folder.parent, Spool.in_memory()) as result:
            text = b"".join(result.chunks()).decode()
        printed = [record["output"] for record in whole if record["k"] == "output"]
        numbers = NUMBER.findall(json.dumps(printed))
        assert NUMBER.findall(log) == numbers
        assert ("damaged" in log) == (len(whole) < len(seen))
        if not text:  # neither a snapshot nor the record with the notebook
            assert "prepared" not in {record["k"] for record in whole}
            continue
        nbformat.validate(nbformat.reads(text, as_version=4))
        assert sorted(NUMBER.findall(text)) == sorted(numbers)
        assert ("are damaged here" in text) == ("damaged" in log)
