"""Whatever lies in a journal: its readers go on, and the notebook that they make is valid."""

from __future__ import annotations

import json
import zlib
from pathlib import Path
from typing import Any

import nbformat
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from job_runner.attempt.finalize import summarize_journal
from job_runner.kernel.messages import records_of
from job_runner.protocol import layout
from job_runner.protocol.journal import journal
from job_runner.protocol.journal.journal import JournalWriter, read_journal
from job_runner.protocol.journal.validation import validated
from job_runner.protocol.log_text import log_text
from job_runner.protocol.progress import ProgressFold, progress
from job_runner.protocol.result.result import fold_result
from job_runner.protocol.result.spool import Spool
from job_runner.resources.usage import Usage

from ..protocol_page import record_fields
from .folds import fold, fold_to_bytes
from .test_fold import BANNER, CELLS, journals, prepared, snapshot

FIELDS = record_fields()
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=4,
)
likely: st.SearchStrategy[Any] = st.sampled_from(
    [
        {"output_type": "stream", "name": "stdout", "text": "said"},
        {"output_type": "stream", "name": "stdout", "text": ["said"]},
        {"output_type": "error", "ename": "E", "evalue": "", "traceback": [1]},
        {"output_type": "display_data", "data": {"text/plain": {}}, "metadata": {}},
        {"output_type": "execute_result", "data": {}, "metadata": {}, "execution_count": -1},
        {"text/plain": "x"}, {"name": "python", "codemirror_mode": None}, {}, [], [[0, BANNER]],
        [["0", BANNER]], [[0, {"cell_type": "markdown"}]], 0, 1, -1, 10**30, 3.5, "stdout",
        True, 10**400, {"nbformat": 4, "cells": [3]}, None,
        {"nbformat": 4, "nbformat_minor": 5, "cells": []},
        [{"path": [[]]}], [{"path": ["a"], "data": ""}],
    ]
)  # fmt: skip


@st.composite
def strange_records(draw: st.DrawFn) -> dict[str, Any]:
    """A record of a known kind (mostly) with fields of any type, or without some of them."""
    kind = draw(
        st.sampled_from(sorted(FIELDS))
        | st.sampled_from(["damaged", "omitted", "new"])
        | json_values
    )
    known = FIELDS.get(kind) if isinstance(kind, str) else None
    names = sorted(known.required | known.optional) if known else ["i", "output"]
    made = {name: draw(likely | json_values) for name in names if draw(st.integers(0, 9))}
    made["k"] = kind
    if draw(st.booleans()):
        made["t"] = draw(st.floats(0, 2e9) | likely)
    return made


def check(records: list[dict[str, Any]]) -> None:
    text = fold_to_bytes(snapshot(), records).decode()
    nbformat.validate(nbformat.reads(text, as_version=4))
    json.loads(text, parse_constant=pytest.fail)
    assert all(isinstance(piece, str) for piece in log_text(records))
    progress(records)


@settings(max_examples=150)
@given(head=st.booleans(), records=st.lists(strange_records(), max_size=6))
def test_records_of_any_shape(head: bool, records: list[dict[str, Any]]) -> None:
    begin = {"k": "prepared", "cells_total": CELLS, "notebook": prepared()}
    check([*([begin] if head else []), *records])


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(pieces=st.lists(st.binary(max_size=40) | strange_records().map(journal.encode), max_size=6))
def test_any_bytes(tmp_path: Path, pieces: list[bytes]) -> None:
    folder = tmp_path / "attempt-1" / layout.JOURNAL
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "00000001.jsonl").write_bytes(b"".join(pieces))
    check([entry.record for entry in read_journal(folder)])
    summarize_journal(folder.parent)
    with fold_result(tmp_path, folder.parent, Spool.in_memory()) as so_far:
        list(so_far.chunks())


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(content=journals(), data=st.data())
def test_a_flipped_bit_invents_nothing(
    tmp_path: Path, content: list[dict[str, Any]], data: st.DataObject
) -> None:
    """What is shown was printed, or says that something is damaged; and the damage is shown."""
    for old in tmp_path.glob("*"):
        old.unlink()
    writer = JournalWriter(tmp_path)
    for record in content:
        writer.append(record)
    writer.close()
    segment = tmp_path / "00000001.jsonl"
    raw = bytearray(segment.read_bytes())
    at = data.draw(st.integers(0, len(raw) - 1))
    raw[at] ^= 1 << data.draw(st.integers(0, 7))
    segment.write_bytes(raw)
    seen = [entry.record for entry in read_journal(tmp_path)]
    check(seen)
    kept = [record for record in seen if record["k"] != "damaged"]
    assert all(record in content for record in kept)
    lost_the_end = raw[-1:] != b"\n"  # which reads as a line that was never finished
    assert len(kept) < len(seen) or lost_the_end or kept == content


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(content=journals(), data=st.data())
def test_a_journal_that_is_cut_at_any_byte(
    tmp_path: Path, content: list[dict[str, Any]], data: st.DataObject
) -> None:
    whole = b"".join(map(journal.encode, content))
    cut = data.draw(st.integers(0, len(whole)))
    (tmp_path / "00000001.jsonl").write_bytes(whole[:cut])
    seen = [entry.record for entry in read_journal(tmp_path)]
    assert seen == content[: whole[:cut].count(b"\n")]
    check(seen)


def line(body: str) -> bytes:
    return b"%08x %s\n" % (zlib.crc32(body.encode()), body.encode())


@pytest.mark.parametrize(
    "body",
    [
        '{"k":"output"}',
        '{"k":"output","i":0,"output":{"output_type":"stream","name":"stdout","text":5}}',
        '{"k":"cell_start","i":"0"}',
        '{"k":"cell_start","i":0,"t":1e300}',
        '{"k":"prepared","cells_total":1,"notebook":{"nbformat":4}}',
        '{"k":"end"}',
        '{"k":"omitted","of":"output"}',
        f'{{"k":"dropped","i":0,"limit":{10**400}}}',
        f'{{"k":"usage","wall":{10**400}}}',
        '{"k":7}',
        "{}",
    ],
)
def test_a_record_of_the_wrong_shape_is_shown_as_damage(tmp_path: Path, body: str) -> None:
    (tmp_path / "00000001.jsonl").write_bytes(line(body))
    (entry,) = read_journal(tmp_path)
    assert validated(entry.record) == {"k": "damaged", "bytes": len(json.dumps(entry.record))}
    cells = fold(snapshot(), [entry.record])["cells"]
    assert "bytes of the journal are damaged here" in cells[-1]["outputs"][0]["text"]
    assert "damaged" in "".join(log_text([entry.record]))


def test_damage_before_the_first_cell_is_shown_too() -> None:
    begin = {"k": "prepared", "cells_total": CELLS, "notebook": prepared()}
    notebook = fold(snapshot(), [{"k": "damaged", "bytes": 7}, begin])
    assert "7 bytes" in notebook["cells"][-1]["outputs"][0]["text"]
    nbformat.validate(notebook)


def test_two_ends_are_one() -> None:
    end = {"k": "end", "state": "failed", "cell": None, "banner": [[0, BANNER]]}
    begin = {"k": "prepared", "cells_total": CELLS, "notebook": prepared()}
    assert fold(snapshot(), [begin, end, end]) == fold(snapshot(), [begin, end])
    run = ProgressFold()
    for record in ({**end, "reason": 5}, {**end, "reason": "Lost"}, {**end, "reason": "NodeLost"}):
        run.feed(record)
    assert run.end is not None and run.end["reason"] == "Lost"


def test_figures_of_a_newer_runner_are_ignored(tmp_path: Path) -> None:
    newer = {"gpus": [{"busy": 0.5}], "disk": 1e999}
    end = {"k": "end", "state": "succeeded", "cell": None, "t": 7.0}
    records: list[dict[str, Any]] = [
        {"k": "prepared", "cells_total": CELLS, "notebook": prepared()},
        {"k": "cell_end", "i": 1, "ok": True, "usage": {"cpu": 0.5, **newer}},
        {"k": "usage", "t": 6.0, "wall": 1.5, **newer},
        {**end, "usage": {"wall": 2.5, **newer}},
    ]
    assert all(validated(record) is record for record in records)
    notebook = fold(snapshot(), records)
    assert notebook.cells[1].metadata.jupyter_to_job == {"cpu": 0.5}
    assert notebook.metadata.jupyter_to_job.usage == {"wall": 2.5}
    run = ProgressFold()
    for record in records:
        run.feed(record)
    assert run.usage == {"wall": 1.5}
    for kept, figures in ((records[:3], {"wall": 1.5}), (records, {"wall": 2.5})):
        folder = tmp_path / f"{len(kept)}" / layout.JOURNAL
        folder.mkdir(parents=True)
        lines = (line(json.dumps(record).replace("Infinity", "1e999")) for record in kept)
        (folder / "00000001.jsonl").write_bytes(b"".join(lines))
        assert summarize_journal(folder.parent).usage == figures


@pytest.mark.parametrize("figure", sorted(Usage().to_json()))
def test_every_figure_of_a_run_is_checked(figure: str) -> None:
    for record in ({"k": "usage", figure: "1"}, {"k": "end", "state": "a", "usage": {figure: "1"}}):
        assert validated(record)["k"] == "damaged"


@pytest.mark.parametrize("figure", sorted(Usage().end_cell()))
def test_every_figure_of_a_cell_is_checked(figure: str) -> None:
    record = {"k": "cell_end", "i": 1, "ok": True, "usage": {figure: "1"}}
    assert validated(record)["k"] == "damaged"


@pytest.mark.parametrize(
    "value",
    [
        {"nbformat": 4, "cells": [3]},
        {"nbformat": 4, "cells": [{}], "metadata": {}},
        {"nbformat": -1},
        {"nbformat": 4, "nbformat_minor": None, "cells": []},
        {"nbformat": 4, "metadata": {"papermill": 5, "jupyter_to_job": [5]}, "cells": []},
    ],
)
def test_a_snapshot_of_any_shape(value: dict[str, Any]) -> None:
    end: dict[str, Any] = {"k": "end", "state": "failed", "usage": {"wall": 1.0}}
    for records in ([], [end], [{"k": "damaged", "bytes": 1}, end]):
        nbformat.validate(fold(value, records))


@pytest.mark.parametrize("seen", [5, [], {"start_time": "yesterday"}, {"start_time": 5}])
def test_what_an_earlier_run_left_in_the_metadata_is_nobodys(seen: Any) -> None:
    notebook = prepared()
    notebook["metadata"]["papermill"] = notebook["cells"][1]["metadata"]["papermill"] = seen
    notebook["cells"][1]["metadata"]["jupyter_to_job"] = seen
    before = json.dumps(notebook)
    begin = {"k": "prepared", "cells_total": CELLS, "notebook": notebook}
    end = {"k": "cell_end", "i": 1, "ok": True, "execution_count": 1, "t": 5.0}
    cell = fold(snapshot(), [begin, end]).cells[1]
    assert cell.metadata.papermill.status == "completed"
    assert json.dumps(notebook) == before


def test_only_what_nbformat_calls_json_may_be_more_than_text() -> None:
    for kind, valid in (("application/a.b+json", True), ("image/a+json", False), ("+json", False)):
        output = {"output_type": "display_data", "data": {kind: {"a": 1}}, "metadata": {}}
        assert validated({"k": "output", "i": 0, "output": output})["k"] == (
            "output" if valid else "damaged"
        )
        (record,) = records_of("display_data", {"data": {kind: {"a": 1}}}, 0)
        shown = fold(snapshot(), [record]).cells[-1].outputs[0].data[kind]
        assert shown == ({"a": 1} if valid else '{"a": 1}')


def test_numbers_that_json_does_not_have_are_null(tmp_path: Path) -> None:
    data = {"application/json": {"a": float("nan"), "b": [float("inf"), -1e999, "NaN", "Infinity"]}}
    output = {"output_type": "display_data", "data": data, "metadata": {}}
    writer = JournalWriter(tmp_path)
    writer.append({"k": "output", "i": 1, "output": output})
    writer.close()
    (entry,) = read_journal(tmp_path)
    null = {"a": None, "b": [None, None, "NaN", "Infinity"]}
    assert entry.record["output"]["data"]["application/json"] == null
    for body in ('{"k":"usage","wall":NaN}', '{"k":"new","a":[-Infinity]}'):
        (tmp_path / "00000002.jsonl").write_bytes(line(body))
        assert [entry.record["k"] for entry in read_journal(tmp_path)] == ["output", "damaged"]
    assert validated({"k": "usage", "wall": 1e999})["k"] == "damaged"
    for record in ({"k": "output", "i": 1, "output": output}, entry.record):
        text = fold_to_bytes(snapshot(), [record]).decode()
        shown = json.loads(text, parse_constant=pytest.fail)["cells"][-1]["outputs"][0]["data"]
        assert shown["application/json"] == null
