"""The fold: any prefix of any journal, even with records missing, is a valid notebook."""

from __future__ import annotations

import copy
import json
import tracemalloc
from typing import Any

import nbformat
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from job_runner.protocol.fold import NotebookFold, Progress, fold, log_text, progress
from job_runner.protocol.notebook import to_bytes, to_chunks

CELLS = 4
CODE = [1, 3]


def prepared() -> Any:
    cells = [new_markdown_cell("# T"), new_code_cell("1"), new_code_cell(" "), new_code_cell("2")]
    return json.loads(nbformat.writes(new_notebook(cells=cells)))


def snapshot() -> Any:
    old = nbformat.v4.new_output("stream", text="from the editor")
    cells = [new_code_cell("1", id="old", outputs=[old], execution_count=7)]
    return json.loads(nbformat.writes(new_notebook(cells=cells)))


# What carriage returns and backspaces overwrite is shown elsewhere: test_overwritten.py.
text = st.text(st.characters(exclude_characters="\b\r"), max_size=5)
bundle = st.dictionaries(st.sampled_from(["text/plain", "text/html", "image/png"]), text)
display = st.sampled_from(["a", "b"])
outputs = st.one_of(
    st.builds(
        lambda name, content: {"output_type": "stream", "name": name, "text": content},
        st.sampled_from(["stdout", "stderr"]),
        text,
    ),
    st.builds(lambda data: {"output_type": "display_data", "data": data, "metadata": {}}, bundle),
    st.just({"output_type": "error", "ename": "E", "evalue": "v", "traceback": ["t"]}),
)
index = st.sampled_from(CODE)
records = st.one_of(
    st.builds(lambda i: {"k": "cell_start", "i": i}, index),
    st.builds(
        lambda i, o, d: {"k": "output", "i": i, "output": o, **d},
        index,
        outputs,
        st.one_of(st.just({}), st.builds(lambda d: {"display_id": d}, display)),
    ),
    st.builds(lambda i, w: {"k": "clear", "i": i, "wait": w}, index, st.booleans()),
    st.builds(
        lambda d, b: {"k": "update_display", "display_id": d, "data": b, "metadata": {}},
        display,
        bundle,
    ),
    st.builds(
        lambda i, ok: {"k": "cell_end", "i": i, "ok": ok, "execution_count": 1},
        index,
        st.booleans(),
    ),
    st.just({"k": "damaged", "bytes": 3}),
    st.just({"k": "from a newer runner"}),
)
BANNER = {"cell_type": "markdown", "id": "b", "metadata": {"tags": ["x"]}, "source": "ended"}
endings: st.SearchStrategy[list[dict[str, Any]]] = st.sampled_from(
    [
        [],
        [{"k": "end", "state": "succeeded", "cell": None, "banner": []}],
        [{"k": "end", "state": "failed", "cell": 1, "banner": [[1, BANNER]]}],
        [{"k": "end", "state": "failed", "cell": None, "banner": [[0, BANNER]]}],
    ]
)


@st.composite
def journals(draw: st.DrawFn) -> list[dict[str, Any]]:
    """A journal of whatever happened, sometimes without the record that it was prepared."""
    head: list[dict[str, Any]] = [{"k": "start", "kernel": "python3"}]
    if draw(st.integers(0, 3)):
        head.append({"k": "prepared", "cells_total": len(CODE), "notebook": prepared()})
    content = head + draw(st.lists(records, max_size=12)) + draw(endings)
    moments = draw(st.booleans())
    return [{**r, "t": 1_700_000_000.0 + n} if moments else r for n, r in enumerate(content)]


@settings(max_examples=50, deadline=None)
@given(journal=journals(), old=st.booleans())
def test_any_prefix_is_a_valid_notebook(journal: list[dict[str, Any]], old: bool) -> None:
    start = snapshot()
    if old:
        start["nbformat_minor"] = 4
        for cell in start["cells"]:
            del cell["id"]
    before = copy.deepcopy((start, journal))
    for end in range(len(journal) + 1):
        notebook = fold(start, journal[:end])
        nbformat.validate(notebook)
        again = nbformat.reads(to_bytes(notebook).decode(), as_version=4)
        assert nbformat.reads(json.dumps(notebook), as_version=4) == again
    assert (start, journal) == before


@settings(max_examples=40, deadline=None)
@given(journal=journals())
def test_record_by_record_is_the_same_as_all_at_once(journal: list[dict[str, Any]]) -> None:
    run = NotebookFold(snapshot())
    for record in journal:
        run.feed(record)
        run.result()
    assert run.result() == fold(snapshot(), journal)


@given(journal=journals())
def test_nothing_printed_is_lost(journal: list[dict[str, Any]]) -> None:
    """Without a clear, every piece of text is in the notebook."""
    kept = [r for r in journal if r["k"] != "clear"]
    notebook = fold(snapshot(), kept)
    shown = "".join(
        o["text"]
        for c in notebook["cells"]
        for o in c.get("outputs", ())
        if o["output_type"] == "stream"
    )
    printed = "".join(
        r["output"]["text"]
        for r in kept
        if r["k"] == "output" and r["output"]["output_type"] == "stream"
    )
    assert sorted(shown.replace("[3 bytes of the journal are damaged here]\n", "")) == sorted(
        printed
    )
    assert all(isinstance(piece, str) for piece in log_text(kept))


def run_of(*more: dict[str, Any]) -> Any:
    head = {"k": "prepared", "t": 0.0, "cells_total": 2, "notebook": prepared()}
    return fold(snapshot(), [head, {"k": "cell_start", "t": 1.0, "i": 1}, *more])["cells"]


def out(content: str, name: str = "stdout") -> dict[str, Any]:
    output = {"output_type": "stream", "name": name, "text": content}
    return {"k": "output", "i": 1, "output": output}


def shown(content: str, identifier: str | None = None) -> dict[str, Any]:
    output = {"output_type": "display_data", "data": {"text/plain": content}, "metadata": {}}
    named = {} if identifier is None else {"display_id": identifier}
    return {"k": "output", "i": 1, "output": output, **named}


def plain(cell: Any) -> list[str]:
    return [o.get("text") or o["data"]["text/plain"] for o in cell["outputs"]]


def test_streams_are_merged_while_no_other_output_comes_between() -> None:
    cells = run_of(out("a"), out("b"), out("c", "stderr"), out("d"), shown("e"), out("f"))
    assert plain(cells[1]) == ["ab", "c", "d", "e", "f"]


def test_clear_now_and_clear_later() -> None:
    now = {"k": "clear", "i": 1, "wait": False}
    later = {"k": "clear", "i": 1, "wait": True}
    assert plain(run_of(out("a"), now)[1]) == []
    assert plain(run_of(out("a"), later)[1]) == ["a"]
    assert plain(run_of(out("a"), later, out("b"))[1]) == ["b"]
    assert plain(run_of(out("a"), later, now, out("b"), out("c"))[1]) == ["bc"]


def test_a_display_is_updated_wherever_it_is_shown() -> None:
    update = {"k": "update_display", "display_id": "x", "data": {"text/plain": "3"}, "metadata": {}}
    assert plain(run_of(shown("1", "x"), shown("2", "x"))[1]) == ["2", "2"]
    assert plain(run_of(shown("1", "x"), shown("2"), update)[1]) == ["3", "2"]


def test_papermills_metadata() -> None:
    end = {"k": "cell_end", "t": 3.5, "i": 1, "ok": True, "execution_count": 1}
    killed = {"k": "end", "t": 9.0, "state": "failed", "cell": 3, "banner": []}
    cells = run_of(end, {"k": "cell_start", "t": 4.0, "i": 3}, killed)
    seen = [c["metadata"]["papermill"] for c in cells]
    assert [s["status"] for s in seen] == ["completed", "completed", "completed", "failed"]
    assert [s["exception"] for s in seen] == [False, False, False, True]
    assert [s["duration"] for s in seen] == [0.0, 2.5, 0.0, 5.0]
    assert seen[1]["start_time"] == "1970-01-01T00:00:01+00:00"


def test_old_outputs_are_not_this_runs() -> None:
    cell = fold(snapshot(), [])["cells"][0]
    assert (cell["outputs"], cell["execution_count"]) == ([], None)


@pytest.mark.parametrize("strange", [{}, {"nbformat": 3, "worksheets": []}, {"nbformat": 4}])
def test_a_snapshot_that_is_not_nbformat_4_is_an_empty_notebook(strange: dict[str, Any]) -> None:
    nbformat.validate(fold(strange, []))


def test_the_file_is_laid_out_as_nbformat_lays_it_out() -> None:
    cells = run_of(out("a\nb"), shown("<b>\n</b>"))
    notebook = {**prepared(), "cells": cells}
    assert to_bytes(notebook).decode() == nbformat.writes(nbformat.from_dict(notebook)) + "\n"


def test_progress_counts_cells_that_did_not_end_the_run() -> None:
    content = [
        {"k": "prepared", "cells_total": 2, "notebook": {}},
        {"k": "cell_start", "i": 1},
        {"k": "cell_end", "i": 1, "ok": True},
        {"k": "cell_start", "i": 3},
        {"k": "cell_end", "i": 3, "ok": False},
    ]
    assert [progress(content[:n]) for n in range(6)] == [
        Progress(0, 0, None),
        Progress(0, 2, None),
        Progress(0, 2, 1),
        Progress(1, 2, None),
        Progress(1, 2, 3),
        Progress(1, 2, None),
    ]


@pytest.mark.parametrize("line", ["x" * 99 + "\n", "x"], ids=["lines", "one line"])
def test_a_large_output_is_written_without_being_copied_whole(line: str) -> None:
    size = 20 << 20
    notebook = {**prepared(), "cells": run_of(out(line * (size // len(line))))}
    tracemalloc.start()
    try:
        written = sum(len(chunk) for chunk in to_chunks(notebook))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert written > size
    assert peak < 2.5 * size if line == "x" else peak < size / 2
