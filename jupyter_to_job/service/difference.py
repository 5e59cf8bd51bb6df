"""What changed in a notebook since it was submitted: its cells, and their lines.

Which cell became which is found by nbdime where it is installed, and else by difflib. nbdime brings
an extension of Jupyter's server and one of JupyterLab, so nobody gets it unasked.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from typing import Any, BinaryIO

from ..domain.errors import BadNotebook, TooLarge

MAX_COMPARED = 64 << 20
"""Bytes of a notebook that is read for a comparison: a larger one would take seconds."""
_SIMILAR = 0.5
"""From this ratio on, two sources are the same cell, changed."""
Cell = dict[str, Any]
Pair = tuple[int | None, int | None]


@dataclass(frozen=True)
class CellDifference:
    """A cell: `same`, `changed`, `removed` since the submission, or `added`.

    `before` is its index in the snapshot and `after` in the notebook as it is now; None: it is not
    there. `lines` are pairs of `" "`, `"-"` or `"+"` and the text of a line.
    """

    kind: str
    cell_type: str
    before: int | None
    after: int | None
    lines: list[tuple[str, str]]


def compare(snapshot: BinaryIO, current: BinaryIO) -> dict[str, Any]:
    """Return the differences of two notebooks as `GET jobs/{name}/difference` answers them.

    Outputs and metadata do not count. Raises BadNotebook and TooLarge.
    """
    before, after = _cells(snapshot, "The snapshot"), _cells(current, "The notebook")
    differences = [_difference(before, after, pair) for pair in align(before, after)]
    return {"cells": [asdict(difference) for difference in differences]}


def align(before: list[Cell], after: list[Cell]) -> Iterator[Pair]:
    """Yield the indices of cells that belong together, in order."""
    return iter(_by_nbdime(before, after) if find_spec("nbdime") else _by_difflib(before, after))


def _cells(file: BinaryIO, label: str) -> list[Cell]:
    """Return a notebook's cells as far as they are compared."""
    data = file.read(MAX_COMPARED + 1)
    if len(data) > MAX_COMPARED:
        raise TooLarge(f"{label} is over {MAX_COMPARED >> 20} MiB.", "Clear its outputs.")
    import nbformat

    try:
        notebook = nbformat.reads(data.decode(), as_version=4)
        return [json.loads(json.dumps(_compared(cell))) for cell in notebook.cells]
    except (nbformat.ValidationError, ValueError, AttributeError, KeyError, TypeError) as error:
        raise BadNotebook(f"{label} is no notebook: {error}.") from error


def _compared(cell: Cell) -> Cell:
    return {"cell_type": cell["cell_type"], "source": cell["source"]}


def _by_nbdime(before: list[Cell], after: list[Cell]) -> Iterator[Pair]:
    from nbdime import diff_notebooks
    from nbformat import from_dict

    document = {"nbformat": 4, "nbformat_minor": 4, "metadata": {}}
    empty: Cell = {"metadata": {}, "outputs": [], "execution_count": None}
    notebooks = [
        from_dict({**document, "cells": [{**empty, **cell} for cell in cells]})
        for cells in (before, after)
    ]
    changes = {entry.key: entry.diff for entry in diff_notebooks(*notebooks)}
    first = second = 0
    for entry in changes.get("cells", ()):
        while first < entry.key:
            yield first, second
            first, second = first + 1, second + 1
        if entry.op == "addrange":
            for _ in entry.valuelist:
                yield None, second
                second += 1
        elif entry.op == "removerange":
            for _ in range(entry.length):
                yield first, None
                first += 1
        else:
            yield first, second
            first, second = first + 1, second + 1
    for index in range(first, len(before)):
        yield index, second + index - first


def _by_difflib(before: list[Cell], after: list[Cell]) -> Iterator[Pair]:
    first_keys, second_keys = map(_keys, (before, after))
    matcher = difflib.SequenceMatcher(None, first_keys, second_keys, autojunk=False)
    for kind, first, first_end, second, second_end in matcher.get_opcodes():
        if kind == "equal":
            yield from zip(range(first, first_end), range(second, second_end), strict=True)
            continue
        for index in range(first, first_end):
            is_similar = (_are_similar(before[index], after[n]) for n in range(second, second_end))
            offset = next((n for n, similar in enumerate(is_similar) if similar), None)
            if offset is None:
                yield index, None
                continue
            yield from ((None, n) for n in range(second, second + offset))
            yield index, second + offset
            second += offset + 1
        yield from ((None, n) for n in range(second, second_end))


def _keys(cells: list[Cell]) -> list[tuple[str, str]]:
    return [(cell["cell_type"], cell["source"]) for cell in cells]


def _are_similar(cell: Cell, other: Cell) -> bool:
    if cell["cell_type"] != other["cell_type"]:
        return False
    matcher = difflib.SequenceMatcher(None, _lines(cell), _lines(other), autojunk=False)
    if matcher.ratio() >= _SIMILAR:
        return True
    matcher = difflib.SequenceMatcher(None, cell["source"], other["source"])
    return matcher.real_quick_ratio() >= _SIMILAR and matcher.quick_ratio() >= _SIMILAR


def _difference(before: list[Cell], after: list[Cell], pair: Pair) -> CellDifference:
    first, second = pair
    old = None if first is None else before[first]
    new = None if second is None else after[second]
    cell = new or old or {}
    if old is None or new is None:
        kind, sign = ("added", "+") if old is None else ("removed", "-")
        lines = [(sign, line) for line in _lines(cell)]
    else:
        kind = "same" if _compared(old) == _compared(new) else "changed"
        lines = list(_changed_lines(_lines(old), _lines(new)))
    return CellDifference(kind, cell["cell_type"], first, second, lines)


def _changed_lines(old: list[str], new: list[str]) -> Iterator[tuple[str, str]]:
    matcher = difflib.SequenceMatcher(None, old, new, autojunk=False)
    for kind, first, first_end, second, second_end in matcher.get_opcodes():
        if kind == "equal":
            yield from ((" ", line) for line in old[first:first_end])
        else:
            yield from (("-", line) for line in old[first:first_end])
            yield from (("+", line) for line in new[second:second_end])


def _lines(cell: Cell) -> list[str]:
    source: str = cell["source"]
    return source.splitlines()
