"""The fold: any prefix of any journal, even with records missing, is a valid notebook."""

from __future__ import annotations

import copy
import json
import time
import tracemalloc
from pathlib import Path
from typing import Any

import nbformat
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from job_runner.protocol.journal.journal import JournalWriter, read_journal
from job_runner.protocol.journal.validation import validated
from job_runner.protocol.log_text import log_text
from job_runner.protocol.progress import Progress, progress
from job_runner.protocol.result import spooled_outputs
from job_runner.protocol.result.result import ResultFold, fold_result
from job_runner.protocol.result.spool import Spool

from .folds import fold, fold_in_memory, fold_to_bytes

CELLS = 4
CODE = [1, 3]


def prepared() -> Any:
    cells = [new_markdown_cell("# T"), new_code_cell("1"), new_code_cell(" "), new_code_cell("2")]
    return json.loads(nbformat.writes(new_notebook(cells=cells)))


def snapshot() -> Any:
    old = nbformat.v4.new_output("stream", text="from the editor")
    cells = [new_code_cell("1", id="old", outputs=[old], execution_count=7)]
    return json.loads(nbformat.writes(new_notebook(cells=cells)))


text = (
    st.text(max_size=5)
    | st.text("ab\b\r\n", max_size=12)
    | st.text("a\n\ud83d\ude00\u20ac\u2028\x85\x0b\x0c\x1c\0", max_size=6)
)
bundle = st.dictionaries(
    st.sampled_from(["text/plain", "text/html", "image/png", "application/json"]), text
)
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
        fold(start, journal[:end])
    assert (start, journal) == before


@settings(max_examples=150, deadline=None)
@given(journal=journals(), limits=st.tuples(st.integers(1, 8), st.integers(0, 8)))
def test_outputs_are_those_of_a_plain_fold(
    journal: list[dict[str, Any]], limits: tuple[int, int]
) -> None:
    """Whatever lies in the spool, and whatever comes back from there."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(spooled_outputs, "_MAX_LINE", limits[0])
        patch.setattr(spooled_outputs, "_MAX_ENDED_LINE", limits[1])
        cells = fold(snapshot(), journal).cells
    shown = [cell.outputs for cell in cells if cell.get("outputs")]
    assert sorted(map(text_of, shown)) == sorted(map(text_of, fold_in_memory(journal)))


def text_of(outputs: Any) -> str:
    """A text that is the same for the same outputs. UTF-8 has no lone surrogates."""
    text = json.dumps(outputs, sort_keys=True, ensure_ascii=False)
    return text.encode(errors="replace").decode()


@settings(max_examples=40, deadline=None)
@given(journal=journals())
def test_live_is_the_same_as_from_the_journal(
    tmp_path_factory: pytest.TempPathFactory, journal: list[dict[str, Any]]
) -> None:
    """Byte for byte, even when it was looked at in between. What is live is what was written."""
    folder = tmp_path_factory.mktemp("job")
    (folder / "snapshot.ipynb").write_text(json.dumps(snapshot()))
    (folder / "attempt-1").mkdir()
    writer = JournalWriter(folder / "attempt-1" / "journal")
    with ResultFold(folder / "snapshot.ipynb", Spool.in_folder(folder)) as live:
        for record in journal:
            live.feed(writer.append(record))
            b"".join(live.chunks())
        writer.close()
        with fold_result(folder, folder / "attempt-1", Spool.in_memory()) as later:
            assert b"".join(later.chunks()) == b"".join(live.chunks())
    assert not list(folder.glob("*spool*"))


def test_what_json_reads_otherwise_is_live_as_it_will_be_read(tmp_path: Path) -> None:
    writer = JournalWriter(tmp_path)
    data = {"text/plain": "\ud83d" + "\ude00", "application/json": [float("nan")]}
    output = {"output_type": "display_data", "data": data, "metadata": {}}
    written = writer.append({"k": "output", "i": 1, "output": output})
    writer.close()
    (entry,) = read_journal(tmp_path)
    assert written == entry.record
    read = {"text/plain": "\N{GRINNING FACE}", "application/json": [None]}
    assert entry.record["output"]["data"] == read


@given(journal=journals())
def test_the_log_has_all_that_was_printed(journal: list[dict[str, Any]]) -> None:
    printed = [r["output"].get("text", "") for r in journal if r["k"] == "output"]
    log = "".join(log_text(journal))
    assert all(piece in log for piece in printed)


def run_of(*more: dict[str, Any]) -> Any:
    head = {"k": "prepared", "t": 0.0, "cells_total": 2, "notebook": prepared()}
    return fold(snapshot(), [head, {"k": "cell_start", "t": 1.0, "i": 1}, *more])["cells"]


def stream(content: str, name: str = "stdout") -> dict[str, Any]:
    output = {"output_type": "stream", "name": name, "text": content}
    return {"k": "output", "i": 1, "output": output}


def shown(content: str, identifier: str | None = None) -> dict[str, Any]:
    output = {"output_type": "display_data", "data": {"text/plain": content}, "metadata": {}}
    named = {} if identifier is None else {"display_id": identifier}
    return {"k": "output", "i": 1, "output": output, **named}


def plain_text(cell: Any) -> list[str]:
    return [o.get("text") or o["data"]["text/plain"] for o in cell["outputs"]]


def test_streams_are_merged_while_no_other_output_comes_between() -> None:
    cells = run_of(
        stream("a"), stream("b"), stream("c", "stderr"), stream("d"), shown("e"), stream("f")
    )
    assert plain_text(cells[1]) == ["ab", "c", "d", "e", "f"]


def test_clear_now_and_clear_later() -> None:
    now = {"k": "clear", "i": 1, "wait": False}
    later = {"k": "clear", "i": 1, "wait": True}
    assert plain_text(run_of(stream("a"), now)[1]) == []
    assert plain_text(run_of(stream("a"), later)[1]) == ["a"]
    assert plain_text(run_of(stream("a"), later, stream("b"))[1]) == ["b"]
    assert plain_text(run_of(stream("a"), later, now, stream("b"), stream("c"))[1]) == ["bc"]


def test_a_display_is_updated_wherever_it_is_shown() -> None:
    update = {"k": "update_display", "display_id": "x", "data": {"text/plain": "3"}, "metadata": {}}
    assert plain_text(run_of(shown("1", "x"), shown("2", "x"))[1]) == ["2", "2"]
    assert plain_text(run_of(shown("1", "x"), shown("2"), update)[1]) == ["3", "2"]


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


@pytest.mark.parametrize("strange", [{"nbformat": 3, "worksheets": []}, {"nbformat": 4}])
def test_a_snapshot_that_is_not_nbformat_4_is_an_empty_notebook(strange: dict[str, Any]) -> None:
    nbformat.validate(fold(strange, []))


def test_the_file_is_laid_out_as_nbformat_lays_it_out() -> None:
    number = {"output_type": "execute_result", "execution_count": 3, "metadata": {"a": [1, {}]}}
    number["data"] = {"text/plain": "3", "image/png": "aGk=", "text/html": ""}
    records: list[dict[str, Any]] = [
        {"k": "prepared", "cells_total": 2, "notebook": prepared()},
        stream("a\nb"),
        stream(""),
        {"k": "output", "i": 3, "output": number, "display_id": "x"},
        shown("<b>\n</b>"),
        stream("e", "stderr"),
        {"k": "cell_end", "i": 1, "ok": True, "execution_count": 1},
    ]
    written = fold_to_bytes(snapshot(), records).decode()
    assert written == nbformat.writes(nbformat.reads(written, as_version=4)) + "\n"


def test_values_of_json_types_are_one_line() -> None:
    data = {"application/json": {"b": [1, float("nan")], "a": "x\ny"}, "application/v+json": []}
    output = {"output_type": "display_data", "data": data, "metadata": {}}
    written = fold_to_bytes(snapshot(), [{"k": "output", "i": 0, "output": output}]).decode()
    assert '"application/json": {"a":"x\\ny","b":[1,null]},\n' in written
    assert '"application/v+json": []\n' in written


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


def test_a_run_adds_no_cell_to_a_result_that_is_sent_again() -> None:
    """It says so; where nothing sensible is said, the tag counts, as in older journals."""
    notebook = prepared()
    notebook["cells"][1]["metadata"]["tags"] = ["injected-parameters"]
    sent = list(range(len(notebook["cells"])))
    content = [
        {"k": "prepared", "cells_total": 2, "notebook": notebook, "places": sent},
        {"k": "cell_start", "i": 3},
    ]
    assert progress(content) == Progress(0, 2, 3, len(sent))
    for odd in (sent[1:], [*sent[1:], -1], [*sent[1:], True], {"0": 0}, None):
        content[0] = {**content[0], "places": odd}
        assert validated(content[0]) is content[0]
        assert progress(content) == Progress(0, 1, 2, len(sent) - 1), odd


def test_the_cell_with_the_parameters_is_none_of_the_users() -> None:
    """Cells have the numbers that they have in the notebook that was sent."""
    notebook = prepared()
    notebook["cells"][1]["metadata"]["tags"] = ["injected-parameters"]
    sent = len(notebook["cells"]) - 1
    content = [
        {"k": "prepared", "cells_total": 2, "notebook": notebook},
        {"k": "cell_start", "i": 1},
        {"k": "cell_end", "i": 1, "ok": True},
        {"k": "cell_start", "i": 3},
        {"k": "cell_end", "i": 3, "ok": True},
    ]
    assert [progress(content[:n]) for n in range(1, 6)] == [
        Progress(0, 1, None, sent),
        Progress(0, 1, None, sent),
        Progress(0, 1, None, sent),
        Progress(0, 1, 2, sent),
        Progress(1, 1, None, sent),
    ]


def printed(size: int, line: str, spool: Spool, folder: Path) -> ResultFold:
    """The fold of a cell that printed so much."""
    run = ResultFold(folder / "none.ipynb", spool)
    run.feed({"k": "prepared", "cells_total": 2, "notebook": prepared()})
    piece = (line * (1 + (128 << 10) // len(line)))[: 128 << 10]
    for _ in range(size // len(piece)):
        run.feed(stream(piece))
    return run


@pytest.mark.parametrize("line", ["x" * 99 + "\n", "x", "\r10 %"], ids=["lines", "one", "bar"])
def test_output_is_not_in_memory(tmp_path: Path, line: str) -> None:
    tracemalloc.start()
    try:
        with printed(12 << 20, line, Spool.in_folder(tmp_path), tmp_path) as run:
            written = sum(len(chunk) for chunk in run.chunks())
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert written > 11 << 20 or "%" in line
    assert peak < 6 << 20


def test_many_small_outputs_are_not_in_memory(tmp_path: Path) -> None:
    tracemalloc.start()
    try:
        with ResultFold(tmp_path / "none.ipynb", Spool.in_folder(tmp_path)) as run:
            run.feed({"k": "prepared", "cells_total": 2, "notebook": prepared()})
            for number in range(5000):
                run.feed(shown(str(number)))
                run.feed(stream("said\n"))
            held, _ = tracemalloc.get_traced_memory()
            cells = json.loads(b"".join(run.chunks()))["cells"]
    finally:
        tracemalloc.stop()
    assert len(cells[1]["outputs"]) == 10000
    assert held < 200_000


def test_a_long_line_that_is_overwritten_costs_its_length(tmp_path: Path) -> None:
    """Not the square: neither with backspaces at its end nor with carriage returns."""

    def seconds(size: int) -> float:
        began = time.process_time()
        with printed(size, "x", Spool.in_folder(tmp_path), tmp_path) as run:
            for n in range(size >> 10):
                run.feed(stream(f"\b\b\b{n % 1000:03d}"))
            for _ in range(size >> 10):
                run.feed(stream("\r12"))
            b"".join(run.chunks())
        return time.process_time() - began

    small, large = (min(seconds(size) for _ in range(2)) for size in (2 << 20, 16 << 20))
    assert large < 20 * small + 0.5


def test_a_display_may_be_shown_by_cells_that_ended_and_many_times() -> None:
    update = {"k": "update_display", "display_id": "x", "data": {"text/plain": "9"}, "metadata": {}}
    ended = {"k": "cell_end", "i": 1, "ok": True, "execution_count": 1}
    second = {**shown("2", "x"), "i": 3}
    clear = {"k": "clear", "i": 3, "wait": False}
    cells = run_of(shown("1", "x"), shown("1", "x"), ended, second, update)
    assert (plain_text(cells[1]), plain_text(cells[3])) == (["9", "9"], ["9"])
    cells = run_of(shown("1", "x"), ended, second, clear, update)
    assert (plain_text(cells[1]), plain_text(cells[3])) == (["9"], [])
