"""Words, tables and names of notebooks: what the command line makes of values."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from job_runner.protocol import times
from jupyter_to_job.cli.arguments import notebooks
from jupyter_to_job.cli.display import formats, output, progress, tables
from jupyter_to_job.domain.errors import BadInput, Unavailable
from jupyter_to_job.domain.job import Delivery, DeliveryState, State
from jupyter_to_job.domain.suggestions import did_you_mean

from .test_job import JOB

NOW = datetime(2026, 11, 21, 12, tzinfo=timezone.utc)


@pytest.mark.parametrize(("seconds", "text"), [(7, "0:07"), (750.9, "12:30"), (3750, "1:02:30")])
def test_clock(seconds: float, text: str) -> None:
    assert formats.clock(seconds) == text


@pytest.mark.parametrize(
    ("before", "text"),
    [
        (timedelta(seconds=-5), "0 s ago"), (timedelta(seconds=59), "59 s ago"),
        (timedelta(minutes=3), "3 min ago"), (timedelta(hours=23.9), "23 h ago"),
        (timedelta(days=4), "4 d ago"), (timedelta(days=40), "2026-10-12"),
    ],
)  # fmt: skip
def test_ago(before: timedelta, text: str) -> None:
    assert formats.ago(times.rfc3339(NOW - before), NOW) == text


def test_usage_leaves_out_what_is_unknown() -> None:
    figures = {"memory_peak": 2**20, "memory_mean": None, "cpu_peak": 1.5, "cpu_mean": 0.25}
    assert formats.usage(figures) == [
        ("memory", "1 MiB at most"),
        ("CPU", "1.50 cores at most, 0.25 cores on average"),
    ]
    limits = {"memory_given": 2**31, "cpu_given": 2.0, "memory_peak": 2**27, "memory_mean": 2**26}
    assert formats.usage({**figures, **limits}) == [
        ("memory", "0.1 of 2 GiB at most, 0.06 of 2 GiB on average"),
        ("CPU", "1.50 of 2 cores at most, 0.25 of 2 cores on average"),
    ]


@pytest.mark.parametrize(
    ("figures", "text"),
    [
        ({}, None),
        ({"memory_peak": 1.2 * 2**30}, None),  # of how much, nobody recorded
        (
            {"cpu_mean": 0.93, "cpu_given": 4.0, "memory_peak": 1.2 * 2**30,
             "memory_given": 16 * 2**30, "enough": "small"},
            "used 0.9 of 4 CPU on average, 1.2 of 16 GiB of memory at most;"
            " flavor small would have been enough",
        ),
        (
            {"cpu_mean": 0.0, "cpu_given": 0.5, "gpu_idle": True, "gpu_utilisation_mean": 0.0},
            "used 0.0 of 0.5 CPU on average, no GPU",
        ),
        (
            {"memory_peak": 51 * 2**20, "memory_given": 2 * 2**30},
            "used 0.05 of 2 GiB of memory at most",
        ),
        (
            {"memory_peak": 600 * 2**20, "memory_given": 512 * 2**20, "gpu_idle": False,
             "gpu_utilisation_mean": 0.344, "larger": "medium"},
            "used 600 of 512 MiB of memory at most, 34% of its GPU on average;"
            " flavor medium has more memory",
        ),
    ],
)  # fmt: skip
def test_a_receipt_in_one_line(figures: dict[str, Any], text: str | None) -> None:
    assert formats.receipt(replace(JOB, usage=figures)) == text


class _Screen(io.StringIO):
    encoding = "utf-8"

    def isatty(self) -> bool:
        return True


texts = st.text(st.characters(codec="utf-8", exclude_categories=["C", "Z"]), max_size=60)


@given(st.lists(st.tuples(texts, texts, texts), max_size=4), st.integers(24, 200))
def test_a_table_fits_and_what_is_cut_says_so(
    rows: list[tuple[str, str, str]], columns: int
) -> None:
    screen = _Screen()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COLUMNS", str(columns))
        tables.print_table(
            [
                tables.Column("FIRST", [row[0] for row in rows], min_width=8),
                tables.Column("SECOND", [row[1] for row in rows], min_width=8),
                tables.Column(
                    "THIRD", [row[2] for row in rows], drop=1, min_width=5, keep_end=True
                ),
            ],
            screen,
        )
    lines = screen.getvalue().split("\n")[:-1]
    assert all(cell_len(line) <= columns for line in lines)
    if any(any(row) for row in rows):
        assert len(lines) == 1 + len(rows)
        longest = max(cell_len(text) for row in rows for text in row)
        assert longest <= columns or any("…" in line for line in lines) or "THIRD" not in lines[0]


def test_in_a_pipe_nothing_is_cut() -> None:
    pipe = io.StringIO()
    tables.print_table([tables.Column("A", ["x" * 500]), tables.Column("EMPTY", [""])], pipe)
    assert pipe.getvalue() == f"A\n{'x' * 500}\n"


def test_which_notebooks_are_meant(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(notebooks, "workspace", lambda: tmp_path)
    result = {"metadata": {"papermill": {"output_path": "a-abcd2345.ipynb"}}}
    other = {"metadata": {"papermill": {"output_path": "out.ipynb"}}}
    files = {
        "a.ipynb": {}, "renamed-result.ipynb": result, "papermills-own.ipynb": other,
        ".hidden.ipynb": {}, "below/b.ipynb": {}, "below/.ipynb_checkpoints/b.ipynb": {},
        "results/a-abcd2345.ipynb": result, "[odd].ipynb": {},
    }  # fmt: skip
    for name, document in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(json.dumps(document))

    def found(*arguments: str) -> list[str]:
        return [s.path for s in notebooks.select_notebooks(tuple(map(Path, arguments))).sources]

    assert found(".") == ["[odd].ipynb", "a.ipynb", "papermills-own.ipynb"]
    assert sorted(found("**/*.ipynb")) == sorted([*found("."), "below/b.ipynb"])
    assert found("a.ipynb", ".", "./a.ipynb") == ["a.ipynb", "[odd].ipynb", "papermills-own.ipynb"]
    assert found("renamed-result.ipynb") == ["renamed-result.ipynb"]
    assert found("[odd].ipynb") == ["[odd].ipynb"]
    assert not notebooks.select_notebooks((Path("a.ipynb"),)).is_batch
    assert notebooks.select_notebooks((Path("a.*"),)).is_batch
    assert notebooks.select_notebooks((Path(),)).skipped_results == 1
    for wrong in ("missing.ipynb", "no*match", "results"):
        with pytest.raises(BadInput):
            found(wrong)


def test_what_was_probably_meant() -> None:
    assert (
        did_you_mean("smal", {"small": 1, "big": 2})
        == "Did you mean 'small'? Choose one of: big, small."
    )
    assert did_you_mean("zzz", ["small", "big"]) == "Choose one of: big, small."
    assert did_you_mean("zzz", ["small"]) == "There is only 'small'."


@pytest.mark.parametrize(
    "escape",
    [
        "\x1b]0;title\x07",
        "\x1b]52;c;cm0gLXJm\x1b\\",
        "\x1b[2J",
        "\x1b[10;1H",
        "\x1bc",
        "\x9b2J",
        "\a",
    ],
)
def test_no_escape_of_a_job_reaches_the_terminal(escape: str) -> None:
    """A message, a path or a log may hold what changes a terminal's title or its clipboard."""
    told = output.plain(f"before{escape}after\n")
    assert not set(told) & {"\x1b", "\x9b", "\x07"}
    assert told.startswith("before") and told.endswith("after\n")
    assert output.coloured(f"before{escape}after\n") == "beforeafter\n"


def test_no_escape_of_a_delivery_reaches_the_bars(monkeypatch: pytest.MonkeyPatch) -> None:
    delivery = Delivery(DeliveryState.PENDING, None, "The folder \x1b]0;title\x07out is gone.")
    ended = replace(JOB, state=State.SUCCEEDED, delivery=delivery)
    monkeypatch.setattr("sys.stderr", io.StringIO())
    bars = progress.ProgressBars()
    bars.show(ended)
    bars._console.width = 200
    bars._console.print(bars._render())
    told = bars._console.file.getvalue()  # type: ignore[attr-defined]
    assert "is gone." in told and not set(told) & {"\x1b", "\x07"}


def test_a_log_keeps_its_colours() -> None:
    text = "\x1b[0;31mValueError\x1b[0m: \u00e9\r 10%\b\t\n"
    assert output.coloured(text) == text
    assert output.coloured("\x1b]0;no end\n") == "0;no end\n"


def test_texts_to_the_terminal_that_do_not_end_cost_nothing_more() -> None:
    """What a cell prints must not keep `logs` busy: this took hours."""
    assert output.coloured("\x1b]0;title\x07shown") == "shown"
    assert output.coloured("\x1b]" * 500_000) == ""


def test_an_error_of_a_gateway_can_be_quoted(capsys: pytest.CaptureFixture[str]) -> None:
    error = Unavailable("The disk is full.", "Wait.")
    error.request_id = "ab12"
    output.print_error(error)
    said = capsys.readouterr().err.splitlines()
    assert said[:2] == ["Error: The disk is full.", "Wait."]
    assert said[2].startswith("Request ab12: ")
    output.print_error(Unavailable("The disk is full."))
    assert "Request" not in capsys.readouterr().err
