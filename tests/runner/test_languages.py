"""A kernel that is not Python's: parameters in its language, its errors, its output."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_notebook

from .jobs import BOUND, RUNNER, Job, banner, stream

Make = Callable[..., Job]
PARAMETERS = {"word": 'it\'s "quoted" $HOME `x`', "count": 3, "flag": True, "nothing": None}


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A folder of Jupyter's data with bash's kernel in it."""
    folder = tmp_path_factory.mktemp("data")
    command = [sys.executable, "-m", "bash_kernel.install", "--prefix", str(folder)]
    subprocess.run(command, check=True, timeout=BOUND)
    return str(folder / "share" / "jupyter")


def bash(*sources: str, tags: dict[int, str] | None = None, named: bool = True) -> str:
    cells = [new_code_cell(source) for source in sources]
    for index, tag in (tags or {}).items():
        cells[index].metadata.tags = [tag]
    made = new_notebook(cells=cells)
    if named:
        made.metadata.kernelspec = {"name": "bash", "display_name": "Bash", "language": "bash"}
    return str(nbformat.writes(made))


def test_parameters_and_output(job: Make, data: str) -> None:
    shell = job(
        bash(
            "word=a", 'echo "$word|$count|$flag|$nothing"', "echo err >&2", tags={0: "parameters"}
        ),
        parameters=PARAMETERS,
    )
    assert shell.run(JUPYTER_PATH=data) == 0, shell.outcome().message
    result = shell.result()
    assert result.cells[1].metadata.tags == ["injected-parameters"]
    assert stream(result.cells[2]) == f"{PARAMETERS['word']}|3|true|\n"
    assert "err" in stream(result.cells[3])
    assert result.metadata.language_info.name == "bash"


def test_the_language_is_that_of_the_kernel_that_runs(job: Make, data: str) -> None:
    """A notebook that names no kernel, run in one that somebody chose."""
    shell = job(bash('echo "$count"', named=False), parameters={"count": "a b"}, kernel="bash")
    assert shell.run(JUPYTER_PATH=data) == 0, shell.outcome().message
    assert stream(shell.result().cells[1]) == "a b\n"


def test_an_error(job: Make, data: str) -> None:
    failing = job(bash("echo kept", "ls /no/such/file", "echo no"))
    assert failing.run(JUPYTER_PATH=data) == 1
    assert (failing.outcome().reason, failing.outcome().cells["done"]) == ("CellError", 1)
    result = failing.result()
    assert len(banner(result)) == 2
    assert "kept\n" in stream(result.cells[1])
    assert "no such file" in str(result.cells[3].outputs).lower()


@pytest.mark.parametrize(
    ("source", "found"),
    [
        (bash("a=1", tags={0: "parameters"}), None),
        (bash("a=1"), []),
    ],
    ids=["cannot be told", "declares none"],
)
def test_inspect(tmp_path: Path, source: str, found: Any) -> None:
    (tmp_path / "in.ipynb").write_text(source)
    command = [*RUNNER, "inspect", str(tmp_path / "in.ipynb")]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=BOUND, check=False)
    assert ran.returncode == 0, ran.stderr
    assert json.loads(ran.stdout) == found


def test_inspect_without_a_kernel_assumes_the_default(tmp_path: Path) -> None:
    source = bash("rate = 0.1  # how fast", tags={0: "parameters"}, named=False)
    (tmp_path / "in.ipynb").write_text(source)
    command = [*RUNNER, "inspect", str(tmp_path / "in.ipynb")]
    ran = subprocess.run(
        command, env=os.environ, capture_output=True, text=True, timeout=BOUND, check=True
    )
    assert json.loads(ran.stdout)[0]["name"] == "rate"
