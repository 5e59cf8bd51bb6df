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
def library(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Compare with nbdime, and as if it were not installed; return which of them."""
    if request.param == "difflib":
        hides: Callable[[str], Any] = lambda name: None if name == "nbdime" else find_spec(name)  # noqa: E731
        monkeypatch.setattr(difference, "find_spec", hides)
    return str(request.param)


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


@pytest.mark.parametrize(
    ("cells", "lines", "expected"),
    [(60, 20, "difflib"), (1, 2000, "difflib"), (5, 3, "nbdime"), (60, 0, "nbdime")],
)
def test_only_what_is_small_is_left_to_nbdime(
    library: str, monkeypatch: pytest.MonkeyPatch, cells: int, lines: int, expected: str
) -> None:
    """It compares each cell with each. Equal ones at the beginning and at the end do not count."""
    used: list[tuple[str, int]] = []

    def noting(name: str) -> Callable[..., Any]:
        aligner = getattr(difference, f"_by_{name}")

        def align(old_cells: list[Any], new_cells: list[Any]) -> Any:
            used.append((name, len(old_cells)))
            return aligner(old_cells, new_cells)

        return align

    for name in ("nbdime", "difflib"):
        monkeypatch.setattr(difference, f"_by_{name}", noting(name))
    same = [f"same_{n} = 1" for n in range(100)]
    old = ["\n".join(f"a{n} = {m}" for m in range(lines)) for n in range(cells)]
    new = ["\n".join(f"{m}z+{n}" for m in range(lines)) + "q" for n in range(cells)]
    found = compared([*same, *old, *same[:50]], [*same, *new, *same[:50]])
    assert used == [(expected if library == "nbdime" else "difflib", cells)]
    assert found[:100] == [("same", n, n) for n in range(100)]
    assert found[-50:] == [("same", n, n) for n in range(100 + cells, 150 + cells)]
    assert {kind for kind, _, _ in found[100:-50]} <= {"removed", "added", "changed"}


def test_a_changed_cell_is_looked_for_nearby(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not among all: of a thousand rewritten cells that would be a million comparisons."""
    monkeypatch.setattr(difference, "_MAX_PRODUCT", 0)
    seen: list[Any] = []
    monkeypatch.setattr(difference, "_are_similar", lambda *cells: seen.append(cells))
    found = compared([f"a{n}" for n in range(200)], [f"{n}z" for n in range(200)])
    assert len(found) == 400
    assert len(seen) == 200 * difference._MAX_CANDIDATES


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
