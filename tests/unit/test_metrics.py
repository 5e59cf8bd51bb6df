"""What a notebook records, read from its records: every format, and nothing that is too much."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest

from job_runner.protocol.metrics import MAX_BYTES, MAX_METRICS, Metric, MetricsFold

RECORD = "application/papermill.record+json"
SCRAP = "application/scrapbook.scrap.json+json"
TEXT = "application/scrapbook.scrap.text+json"


def shown(data: Any, metadata: Any = None, cell: int = 1) -> dict[str, Any]:
    """Return the record of an output."""
    output = {"output_type": "display_data", "data": data, "metadata": metadata or {}}
    return {"k": "output", "i": cell, "output": output}


def scrap(name: Any, value: Any, cell: int = 1) -> dict[str, Any]:
    return shown({SCRAP: {"name": name, "data": value, "encoder": "json", "version": 1}}, cell=cell)


def tagged(*tags: Any) -> dict[str, Any]:
    """Return the record of a notebook with one tagged cell, the second one."""
    cells = [{"metadata": {}}, {"metadata": {"tags": list(tags)}}, "no cell"]
    return {"k": "prepared", "notebook": {"cells": cells}}


def fold(*records: dict[str, Any]) -> dict[str, Metric]:
    state = MetricsFold()
    for record in records:
        state.feed(record)
    return state.metrics


@pytest.mark.parametrize(
    ("record", "expected"),
    [
        (scrap("a", 0.5), {"a": Metric(0.5, None, 1)}),
        (scrap("a", None), {"a": Metric(None, None, 1)}),
        (scrap("a", [1, {"b": True}], 7), {"a": Metric([1, {"b": True}], None, 7)}),
        (shown({TEXT: {"name": "a", "data": "yes"}}), {"a": Metric("yes", None, 1)}),
        (shown({RECORD: {"a": 1, "b": "x"}}), {"a": Metric(1, None, 1), "b": Metric("x", None, 1)}),
        (
            shown({"image/png": "..."}, {"scrapbook": {"name": "a", "display": True}}),
            {"a": Metric(None, "image/png", 1)},
        ),
        (
            shown({"image/svg+xml": "<svg/>"}, {"papermill": {"name": "a"}}),
            {"a": Metric(None, "image/svg+xml", 1)},
        ),
        (
            shown({"text/plain": "3"}, {"scrapbook": {"name": "a", "display": True}}),
            {"a": Metric(3, None, 1)},
        ),
    ],
)
def test_formats(record: dict[str, Any], expected: dict[str, Metric]) -> None:
    assert fold(record) == expected


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0.93", 0.93), ("np.float64(0.93)", 0.93), ("'good'", "good"), ("good", "good"),
        ("  7\n", 7), (["0.", "5"], 0.5), ("array(3)", 3), ("Fraction(1, 2)", "Fraction(1, 2)"),
        ("nan", None), ("-inf", None), ("np.float64(nan)", None), ("'nan'", "nan"),
        ("[1] 0.93", 0.93), ("[1] NaN", None), ("[1] NA", None), ("tensor(5, 6)", "tensor(5, 6)"),
        ("diverged, loss(inf) at 5", "diverged, loss(inf) at 5"), ("[1] 0.1 0.2", "[1] 0.1 0.2"),
        ("tensor(0.93, device='cuda:0')", 0.93), ("tensor(0.9, grad_fn=<MeanBackward0>)", 0.9),
        ("Array(0.93, dtype=float32)", 0.93), ("tensor([0.1, 0.2])", "tensor([0.1, 0.2])"),
        ("[1, 2]", "[1, 2]"), ([1], ""), (5, None),
    ],
)  # fmt: skip
def test_a_tagged_cell(text: Any, value: Any) -> None:
    state = MetricsFold()
    state.feed(tagged("other", "metric:score"))
    state.feed(shown({"text/plain": text}))
    state.feed(shown({"text/plain": "1"}, cell=0))
    assert state.metrics == {"score": Metric(value, None, 1)}


def test_the_last_value_counts() -> None:
    assert fold(scrap("a", 1, 1), scrap("b", 2), scrap("a", 3, 4))["a"] == Metric(3, None, 4)
    marks = {"scrapbook": {"name": "a", "display": True}}
    assert fold(scrap("a", 1), shown({"text/plain": "table"}, marks))["a"].value == 1


@pytest.mark.parametrize(
    "record",
    [
        {}, {"k": "output"}, {"k": "output", "i": "1", "output": {"data": {}}},
        {"k": "output", "i": 1, "output": {"data": []}}, {"k": "prepared", "notebook": []},
        shown({SCRAP: "text"}), shown({SCRAP: {"name": 1, "data": 2}}), scrap("", 1),
        scrap("n" * 101, 1), shown({RECORD: [1]}), shown({"text/plain": "1"}, [1]),
        shown({"text/plain": "1"}, {"scrapbook": {"name": "a", "display": False}}), tagged(5, None),
    ],
)  # fmt: skip
def test_what_is_no_metric(record: dict[str, Any]) -> None:
    assert fold(record) == {}


def test_however_much_is_recorded_little_is_kept() -> None:
    assert len(fold(*(scrap(f"m{n}", n) for n in range(MAX_METRICS + 50)))) == MAX_METRICS
    many = shown({RECORD: {f"m{n}": n for n in range(100_000)}})
    assert len(fold(many)) == MAX_METRICS
    large = fold(scrap("small", "x"), scrap("large", "x" * MAX_BYTES), scrap("odd", float("nan")))
    assert [metric.value for metric in large.values()] == ["x", None, None]
    half = "x" * (MAX_BYTES // 2)
    several = fold(scrap("a", half), scrap("b", half), scrap("a", 1), scrap("b", half))
    assert [len(json.dumps(m.value)) for m in several.values()] == [1, len(half) + 2]


def test_a_huge_value_takes_no_time() -> None:
    huge = scrap("a", [[0] * 1000] * 10_000)
    began = time.process_time()
    assert fold(huge)["a"].value is None
    assert time.process_time() - began < 0.5
