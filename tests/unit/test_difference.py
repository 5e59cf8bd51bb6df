"""What changed in a notebook: which cell became which, and their lines, with and without nbdime."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import nbformat.v4 as v4
import pytest

from jupyter_to_job.domain.errors import BadNotebook, TooLarge
from jupyter_to_job.service import difference

TRAIN = "rate = 0.1\nepochs = 5\ntrain(rate, epochs)"


@pytest.fixture(params=["nbdime", "difflib"], autouse=True)
def library(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Compare with nbdime, and as if it were not installed."""
    if request.param == "difflib":
        hides: Callable[[str], Any] = lambda name: None if name == "nbdime" else find_spec(name)  # noqa: E731
        monkeypatch.setattr(difference, "find_spec", hides)


def notebook(*sources: str) -> io.BytesIO:
    document = v4.new_notebook(cells=[v4.new_code_cell(source) for source in sources])
    return io.BytesIO(json.dumps(document).encode())


def compared(before: list[str], after: list[str]) -> list[tuple[str, Any, Any]]:
    answer = difference.compare(notebook(*before), notebook(*after))
    return [(cell["kind"], cell["before"], cell["after"]) for cell in answer["cells"]]


def test_an_unchanged_notebook() -> None:
    assert compared(["a = 1", TRAIN], ["a = 1", TRAIN]) == [("same", 0, 0), ("same", 1, 1)]
    assert compared([], []) == []


def test_cells_that_came_and_went() -> None:
    assert compared(["a = 1", TRAIN, "plot()"], ["import x", "a = 1", TRAIN]) == [
        ("added", None, 0),
        ("same", 0, 1),
        ("same", 1, 2),
        ("removed", 2, None),
    ]
    assert compared([], ["a = 1"]) == [("added", None, 0)]
    assert compared(["a = 1"], []) == [("removed", 0, None)]


def test_the_lines_of_a_changed_cell() -> None:
    changed = TRAIN.replace("0.1", "0.2")
    answer = difference.compare(notebook("a = 1", TRAIN), notebook("a = 1", changed))
    same, cell = answer["cells"]
    assert same["kind"] == "same"
    assert (cell["kind"], cell["before"], cell["after"]) == ("changed", 1, 1)
    assert cell["lines"] == [
        ("-", "rate = 0.1"),
        ("+", "rate = 0.2"),
        (" ", "epochs = 5"),
        (" ", "train(rate, epochs)"),
    ]


def test_outputs_do_not_count() -> None:
    cell = v4.new_code_cell("1", outputs=[v4.new_output("stream", text="1")], execution_count=3)
    ran = io.BytesIO(json.dumps(v4.new_notebook(cells=[cell])).encode())
    (only,) = difference.compare(notebook("1"), ran)["cells"]
    assert only["kind"] == "same"


def test_what_cannot_be_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(BadNotebook):
        difference.compare(notebook("1"), io.BytesIO(b"{}"))
    with pytest.raises(BadNotebook):
        difference.compare(notebook("1"), io.BytesIO(b"\xff"))
    monkeypatch.setattr(difference, "MAX_COMPARED", 10)
    with pytest.raises(TooLarge):
        difference.compare(notebook("1"), notebook("1"))
