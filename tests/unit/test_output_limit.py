"""The cap on output: how much is kept, what is told, and that nothing else is lost."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from job_runner.attempt.output_limit import OutputLimiter
from job_runner.protocol.journal.journal import encode
from job_runner.protocol.journal.truncation import dropped_notice
from job_runner.protocol.journal.validation import validated
from job_runner.protocol.log_text import log_text
from job_runner.protocol.result.widgets import WidgetFold
from job_runner.protocol.units import format_bytes

from .folds import fold_to_bytes

Record = dict[str, Any]
KIB = 1 << 10


def stream(text: str, cell: int = 1) -> Record:
    output = {"output_type": "stream", "name": "stdout", "text": text}
    return {"k": "output", "i": cell, "output": output}


def error(cell: int = 1) -> Record:
    output = {"output_type": "error", "ename": "E", "evalue": "v", "traceback": ["line"] * 20}
    return {"k": "output", "i": cell, "output": output}


def display(data: Record, cell: int = 1) -> Record:
    output = {"output_type": "display_data", "data": data, "metadata": {}}
    return {"k": "output", "i": cell, "output": output}


def start(cell: int = 1) -> Record:
    return {"k": "cell_start", "i": cell}


def end(cell: int = 1) -> Record:
    return {"k": "cell_end", "i": cell, "ok": True, "execution_count": None}


def filter_all(cap: OutputLimiter, *records: Record) -> list[Record]:
    passed = []
    for record in records:
        for kept in cap.filter(record):
            cap.count_written(kept, len(encode(kept)))
            passed.append(kept)
    return passed


def text_of(records: list[Record]) -> str:
    return "".join(log_text(records))


def test_without_a_limit_everything_passes() -> None:
    records = [start(), stream("x" * (1 << 20)), end()]
    assert filter_all(OutputLimiter(None), *records) == records


def test_the_middle_is_dropped_and_told() -> None:
    cap = OutputLimiter(100 * KIB)
    lines = [f"{number:06d} {'x' * KIB}\n" for number in range(400)]
    kept = filter_all(cap, start(), *map(stream, lines), end())
    assert all(validated(record) is record for record in kept)
    text = text_of(kept)
    assert text.startswith("000000 ") and text.endswith(lines[-1])
    assert "reached its cap of 100 KiB" in text
    # All but 100 KiB at the beginning and 64 KiB at the end.
    marker = [record for record in kept if record["k"] == "dropped" and "bytes" in record]
    assert len(marker) == 1 and 230 * KIB < marker[0]["bytes"] < 270 * KIB
    assert dropped_notice(marker[0]) in text
    assert format_bytes(marker[0]["bytes"]) in cap.summary() and "100 KiB" in cap.summary()
    assert len(text) < 170 * KIB
    assert kept[-1] == end()


def test_a_cell_after_it_shows_its_beginning_and_its_end() -> None:
    cap = OutputLimiter(10)
    filter_all(cap, start(1), stream("x" * 100), end(1))
    small = [start(2), stream("result: 0.93\n", 2), display({"text/plain": "0.93"}, 2), end(2)]
    assert filter_all(cap, *small) == small
    large = [stream(f"{number:06d} {'x' * KIB}\n", 3) for number in range(400)]
    text = text_of(filter_all(cap, start(3), *large, end(3)))
    assert text.startswith("000000 ") and "000399 " in text and "000200 " not in text


def test_tracebacks_are_kept_behind_the_end_of_what_was_printed() -> None:
    cap = OutputLimiter(KIB)
    flood = [stream("x" * KIB + "\n") for _ in range(200)]
    kept = filter_all(cap, start(), *flood, stream("last\n"), error(), end())
    assert [r["k"] for r in kept[-2:]] == ["output", "cell_end"] and kept[-2] == error()
    assert kept[-3]["output"]["text"] == "last\n"


def test_an_endless_stream_of_tracebacks_ends() -> None:
    kept = filter_all(OutputLimiter(KIB), start(), *[error()] * 20_000, end())
    assert len(kept) < 20_000 and kept[-1] == end()
    between = [record for _ in range(500) for record in (stream("x" * 60 * KIB), error())]
    assert len(text_of(filter_all(OutputLimiter(KIB), start(), *between, end()))) < 2 << 20


@pytest.mark.parametrize(
    "record",
    [
        {"k": "clear", "i": 1, "wait": False},
        {"k": "widget", "id": "w", "state": {"value": 1}},
        {"k": "update_display", "display_id": "d", "data": {"text/plain": "x"}, "metadata": {}},
        display({"application/json": {"a": [1, 2]}, "image/png": "A" * 100}),
    ],
)
def test_whatever_can_fill_a_disk_counts(record: Record) -> None:
    kept = filter_all(OutputLimiter(10 * KIB), start(), *[record] * 10_000, end())
    assert len(kept) < 2_000
    assert kept[-2] == record  # the state that it ended in


def test_one_long_text_keeps_its_last_lines() -> None:
    text = "".join(f"{number}\n" for number in range(100_000))
    kept = filter_all(OutputLimiter(10), start(), stream(text), end())
    assert kept[-2]["output"]["text"].endswith("\n99999\n")
    assert len(kept[-2]["output"]["text"]) <= 16 * KIB
    picture = filter_all(OutputLimiter(10), start(), display({"image/png": "A" * (1 << 20)}), end())
    assert [record["k"] for record in picture] == ["cell_start", "dropped", "dropped", "cell_end"]


def test_the_end_of_a_run_tells_of_a_cell_that_has_not_ended() -> None:
    last = {"k": "end", "state": "failed", "reason": "Terminated", "cell": 1}
    kept = filter_all(OutputLimiter(10), start(), stream("a\n" * 100_000), stream("last\n"), last)
    assert kept[-1] == last and kept[-2]["output"]["text"] == "last\n"
    assert any("bytes" in record for record in kept)


records = st.lists(
    st.one_of(
        st.builds(stream, st.text(max_size=50), st.integers(0, 3)),
        st.builds(stream, st.integers(0, 100_000).map(lambda n: "ä" * n)),
        st.builds(start, st.integers(0, 3)),
        st.builds(end, st.integers(0, 3)),
        st.just(error()),
    ),
    max_size=30,
)


@given(records, st.integers(0, 200_000))
def test_any_run(run: list[Record], limit: int) -> None:
    """What is kept is what was said, in order, and what is dropped is told."""
    cap = OutputLimiter(limit)
    done = {"k": "end", "state": "succeeded", "reason": None, "message": None}
    kept = filter_all(cap, *run, done)
    rest = [record for record in kept if record["k"] != "dropped"]
    lost = [record for record in kept if record["k"] == "dropped" and "bytes" in record]
    whole = [r["output"]["text"] for r in [*run] if r["k"] == "output" and "text" in r["output"]]
    remains = [r["output"]["text"] for r in rest if r["k"] == "output" and "text" in r["output"]]
    left = iter(whole)
    assert all(any(text.endswith(part) for text in left) for part in remains)
    assert (cap.dropped > 0) == bool(lost) == bool(cap.summary())
    assert all(record["bytes"] > 0 for record in lost)
    assert [r for r in rest if r["k"] != "output"] == [
        r for r in [*run, done] if r["k"] != "output"
    ]


@pytest.mark.parametrize("size", [KIB, 100 * KIB])
def test_a_widget_does_not_capture_for_ever(size: int) -> None:
    """That it stopped is kept, though it stopped in what is dropped."""

    def captures(message: str, **more: Any) -> Record:
        return {"k": "widget", "i": 1, "id": "w", "state": {"msg_id": message, **more}}

    cap = OutputLimiter(10 * KIB)
    flood = [display({"text/plain": "x" * size}) for _ in range(200)]
    begin = captures("m", _model_name="OutputModel")
    kept = filter_all(cap, start(), begin, *flood, captures("", big="x" * size), *flood, end())
    fold = WidgetFold()
    for record in kept:
        assert validated(record) is record
        if record["k"] == "widget":
            fold.feed(record)
    assert fold.capturing(1) is None
    assert [r["state"] for r in kept if r["k"] == "widget"][1:] == [{"msg_id": ""}]
    assert filter_all(cap, start(2), stream("x", 2), end(2)) == [start(2), stream("x", 2), end(2)]


@pytest.mark.parametrize(
    "text", ["\n" * KIB, "\x00" * KIB, '"' * KIB, "x\n" * (KIB // 2), "é" * KIB]
)
def test_the_disk_is_bounded_whatever_is_printed(text: str) -> None:
    """20 MiB of newlines took 239 MiB: a line each in the result, and two bytes in the journal."""
    limit = 256 * KIB
    cell = {"cell_type": "code", "id": "a", "metadata": {}, "source": "", "outputs": []}
    cells = [{**cell, "execution_count": None}]
    notebook = {"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": cells}
    prepared = {"k": "prepared", "cells_total": 1, "notebook": notebook}
    kept = filter_all(OutputLimiter(limit), start(0), *[stream(text, 0)] * 2000, end(0))
    assert sum(len(encode(record)) for record in kept) < limit + 512 * KIB
    assert len(fold_to_bytes(notebook, [prepared, *kept])) < limit + 1024 * KIB
