"""Results side by side: which columns and rows there are, of which types, and which run is best."""

from __future__ import annotations

import io
from dataclasses import replace
from typing import Any

import pandas as pd
import pytest

from job_runner.protocol.metrics import Metric
from jupyter_to_job.domain.errors import BadInput
from jupyter_to_job.domain.job import Delivery, DeliveryState, Job, State
from jupyter_to_job.domain.results import Results, results_of, standing
from jupyter_to_job.service.result_files import to_parquet

BLANK = Job(
    name="a-aaaaaaaa", owner="me", notebook="a.ipynb", flavor="small", device="cpu", parameters={},
    inputs=(), isolated=False, output=None, max_runtime=None, priority=0, backend="local",
    state=State.SUCCEEDED, submitted="2026-11-21T09:30:00.000Z",
)  # fmt: skip


def job(letter: str, metrics: dict[str, Any] | None = None, **fields: Any) -> Job:
    """Return a job whose name begins with a letter: later letters are younger."""
    recorded = {name: Metric(value) for name, value in (metrics or {}).items()}
    moment = f"2026-11-21T09:30:0{ord(letter) - ord('a')}.000Z"
    made = replace(BLANK, name=f"{letter}-aaaaaaaa", submitted=moment, metrics=recorded)
    return replace(made, **fields)


def values(results: Results, name: str) -> list[Any]:
    return list(results.column(name).values)


def test_a_row_for_each_job_and_a_column_for_each_name() -> None:
    found = results_of(
        [
            job("b", {"accuracy": 0.5, "curve": None}, parameters={"lr": 0.1, "layers": [1, 2]}),
            job(
                "a",
                {"accuracy": 1},
                parameters={"lr": 1, "depth": 2},
                started="2026-11-21T09:30:00.000Z",
                finished="2026-11-21T09:30:02.500Z",
                usage={"memory_peak": 7, "cpu_mean": 0.5},
                delivery=Delivery(DeliveryState.DELIVERED, "a-aaaaaaaa.ipynb"),
            ),
        ]
    )
    assert found.jobs == ("a-aaaaaaaa", "b-aaaaaaaa")
    assert [(c.name, c.kind) for c in found.columns if c.kind in ("parameter", "metric")] == [
        ("lr", "parameter"), ("depth", "parameter"), ("layers", "parameter"),
        ("accuracy", "metric"), ("curve", "metric"),
    ]  # fmt: skip
    assert values(found, "lr") == [1.0, 0.1] and values(found, "accuracy") == [1.0, 0.5]
    assert values(found, "layers") == [None, "[1, 2]"]
    assert values(found, "seconds") == [2.5, None] and values(found, "memory_peak") == [7, None]
    assert values(found, "result") == ["a-aaaaaaaa.ipynb", None]
    assert [c.name for c in found.columns if c.differs and c.kind == "parameter"] == [
        "lr", "depth", "layers",
    ]  # fmt: skip
    assert not found.column("flavor").differs
    document = found.to_json()
    assert document["rows"][1]["layers"] == "[1, 2]"
    assert [column["name"] for column in document["columns"]] == list(document["rows"][0])


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        ([1, 2], [1, 2]), ([1, 2.5, None], [1.0, 2.5, None]), ([True, False], [True, False]),
        ([1, True], ["1", "true"]), (["a", 1], ["a", "1"]), ([{"b": 1}, None], ['{"b": 1}', None]),
        ([2**70, 1], [str(2**70), "1"]), ([None, None], [None, None]),
    ],
)  # fmt: skip
def test_a_column_has_one_type(found: list[Any], expected: list[Any]) -> None:
    jobs = [job("a", {"m": found[0]}), job("b", {"m": found[1]})]
    jobs += [job("c", {"m": value}) for value in found[2:]]
    result = values(results_of(jobs), "m")
    assert [(type(v), v) for v in result] == [(type(v), v) for v in expected]


def test_names_that_are_taken() -> None:
    found = results_of(
        [job("a", {"lr": 3, "state": 4, "metric.lr": 5}, parameters={"lr": 1, "job": 2})]
    )
    names = [c.name for c in found.columns if c.kind in ("parameter", "metric")]
    assert names == ["lr", "parameter.job", "metric.lr", "metric.state", "metric.metric.lr"]
    assert values(found, "metric.lr") == [3] and values(found, "metric.metric.lr") == [5]


def test_a_picture_is_named_by_its_type() -> None:
    shown = job("a", metrics=None)
    found = results_of([replace(shown, metrics={"curve": Metric(None, "image/png", 2)})])
    assert values(found, "curve") == ["image/png"]


def test_parquet_has_what_json_has() -> None:
    """Numbers beyond 64 bits, and text that UTF-8 cannot have, become text that it has."""
    odd: dict[str, Any] = {"text": "a\ud800", "\udfff": 1}
    jobs = [job("a", odd), job("b", {"text": "b"}, usage={"memory_peak": 2**70})]
    frame = pd.read_parquet(io.BytesIO(to_parquet(results_of(jobs))))
    assert list(frame["text"]) == ["a?", "b"]
    assert frame["?"][0] == 1
    assert list(frame["memory_peak"].fillna("")) == ["", str(2**70)]


def test_what_was_run_again_is_left_out() -> None:
    failed = job("a", state=State.FAILED)
    again = job("b", state=State.CANCELLED, rerun_of=failed.name)
    ended = job("c", rerun_of=again.name)
    twice = job("d", rerun_of=ended.name)
    alone = job("e", state=State.FAILED)
    assert standing([alone, twice, ended, again, failed]) == [ended, twice, alone]
    assert standing([failed]) == [failed]


def test_sorted_and_best() -> None:
    found = results_of(
        [job("a", {"m": 2, "t": "x"}), job("b"), job("c", {"m": 1}), job("d", {"m": 3})]
    )
    names = [name[0] for name in found.sorted_by("m").jobs]
    assert names == ["c", "a", "d", "b"]
    assert [name[0] for name in found.sorted_by("m", descending=True).jobs] == ["d", "a", "c", "b"]
    assert found.best("max:m") == "d-aaaaaaaa" and found.best("min:m") == "c-aaaaaaaa"
    assert results_of([job("a")]).best("max:seconds") is None
    for wrong in ("m", "max:", "best:m", "max:n", "max:t"):
        with pytest.raises(BadInput):
            found.best(wrong)
    assert results_of([]).to_json()["rows"] == []
