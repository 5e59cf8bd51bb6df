"""The benchmark of the runner still runs, and it notices output that is lost, torn or reordered."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from benchmarks.runner.comparison import compare
from benchmarks.runner.measure import RunFolders, notebook
from benchmarks.runner.peers import OURS
from benchmarks.runner.report import Report
from benchmarks.runner.result_checks import exactly, find_fault, overwritten
from benchmarks.runner.workloads import trivial


def test_a_workload_is_run_checked_and_shown(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    comparison = compare(RunFolders(tmp_path), trivial(), [OURS], rounds=1, peer_rounds=0)

    result = comparison.find("ours")
    assert result is not None
    assert result.wrong == ""
    (run,) = result.runs
    assert 0 < run.cpu < run.cpu_all
    assert 10e6 < run.memory < 500e6
    report = Report()
    report.comparison(comparison)
    assert report.print_summary() == 0
    assert "trivial" in capsys.readouterr().out
    assert [path.name for path in tmp_path.iterdir()] == ["home"]


EXPECTED = exactly(lambda: [[("stdout", "one\ntwo\n"), ("execute_result", "3")]])
PRINTED = {"output_type": "stream", "name": "stdout", "text": ["one\n", "two\n"]}
VALUE = {"output_type": "execute_result", "execution_count": 1, "metadata": {},
         "data": {"text/plain": "3"}}  # fmt: skip


@pytest.mark.parametrize(
    ("outputs", "wrong"),
    [
        ([PRINTED, VALUE], ""),
        ([{**PRINTED, "text": "one\n"}, {**PRINTED, "text": "two\n"}, VALUE], ""),
        ([{**PRINTED, "text": "one\n"}, VALUE], "cell 1: 1 of 2 lines"),
        ([PRINTED], "cell 1: 1 of 2 outputs"),
        ([VALUE, PRINTED], "cell 1: execute_result instead of stdout"),
        ([{**PRINTED, "name": "stderr"}, VALUE], "cell 1: stderr instead of stdout"),
    ],
)
def test_lost_output_is_noticed(tmp_path: Path, outputs: list[Any], wrong: str) -> None:
    made = json.loads(notebook(["pass"]))
    made["cells"][0]["outputs"] = outputs
    path = tmp_path / "result.ipynb"
    path.write_text(json.dumps(made))
    assert find_fault(path, EXPECTED) == wrong


@pytest.mark.parametrize(
    ("leave", "wrong"),
    [
        (Path.exists, "no file"),
        (lambda path: path.write_text(""), "file of 0 bytes"),
        (lambda path: path.write_text('{"cells": ['), "torn file of 11 bytes"),
        (lambda path: path.write_text(notebook([])), "0 of 1 cells"),
    ],
)
def test_a_file_that_is_no_result_is_named(
    tmp_path: Path, leave: Callable[[Path], object], wrong: str
) -> None:
    leave(tmp_path / "result.ipynb")
    assert find_fault(tmp_path / "result.ipynb", EXPECTED) == wrong


@pytest.mark.parametrize(
    ("sent", "shown"),
    [
        ("plain\n", "plain\n"),
        ("\r 10%\r 20%\n", " 20%\n"),
        ("long line\rno\nnext", "nong line\nnext"),
    ],
)
def test_carriage_returns_go_back_to_the_start_of_the_line(sent: str, shown: str) -> None:
    assert overwritten(sent) == shown
