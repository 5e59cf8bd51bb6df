"""What changed in a notebook since it was submitted: its cells, and their lines.

Which cell became which is found by nbdime where it is installed, and else by difflib. nbdime brings
an extension of Jupyter's server and one of JupyterLab, so nobody gets it unasked. It compares all
characters with all, which takes minutes where much was rewritten: difflib does that.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from typing import Any, BinaryIO

from ..domain.errors import BadNotebook, TooLarge

MAX_COMPARED = 8 << 20
"""Bytes of a notebook that is read for a comparison: while it is parsed nobody is answered."""
_MAX_PRODUCT = 10_000_000
"""Of the sizes of two lists of cells that nbdime compares: it takes about a second."""
_CELL_SIZE = 10
"""Characters that a cell counts for beside its own."""
_MAX_CANDIDATES = 50
"""Cells among which difflib looks for what became of one."""
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
    old_cells, new_cells = _cells(snapshot, "The snapshot"), _cells(current, "The notebook")
    differences = [_difference(old_cells, new_cells, pair) for pair in align(old_cells, new_cells)]
    return {"cells": [asdict(difference) for difference in differences]}


def align(old_cells: list[Cell], new_cells: list[Cell]) -> Iterator[Pair]:
    """Yield the indices of cells that belong together, in order."""
    equal = [old == new for old, new in zip(old_cells, new_cells, strict=False)]
    begin = equal.index(False) if False in equal else len(equal)
    old_end, new_end = len(old_cells), len(new_cells)
    while min(old_end, new_end) > begin and old_cells[old_end - 1] == new_cells[new_end - 1]:
        old_end, new_end = old_end - 1, new_end - 1
    old_changed, new_changed = old_cells[begin:old_end], new_cells[begin:new_end]
    is_small = _size(old_changed) * _size(new_changed) <= _MAX_PRODUCT
    pairs = _by_nbdime if is_small and find_spec("nbdime") else _by_difflib
    yield from zip(range(begin), range(begin), strict=True)
    for old_index, new_index in pairs(old_changed, new_changed):
        yield _shifted(old_index, begin), _shifted(new_index, begin)
    yield from zip(range(old_end, len(old_cells)), range(new_end, len(new_cells)), strict=True)


def _size(cells: list[Cell]) -> int:
    return sum(len(cell["source"]) + _CELL_SIZE for cell in cells)


def _shifted(index: int | None, by: int) -> int | None:
    return None if index is None else index + by


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


def _by_nbdime(old_cells: list[Cell], new_cells: list[Cell]) -> Iterator[Pair]:
    from nbdime import diff_notebooks
    from nbformat import from_dict

    document = {"nbformat": 4, "nbformat_minor": 4, "metadata": {}}
    empty: Cell = {"metadata": {}, "outputs": [], "execution_count": None}
    notebooks = [
        from_dict({**document, "cells": [{**empty, **cell} for cell in cells]})
        for cells in (old_cells, new_cells)
    ]
    changes = {entry.key: entry.diff for entry in diff_notebooks(*notebooks)}
    old_index = new_index = 0
    for entry in changes.get("cells", ()):
        while old_index < entry.key:
            yield old_index, new_index
            old_index, new_index = old_index + 1, new_index + 1
        if entry.op == "addrange":
            for _ in entry.valuelist:
                yield None, new_index
                new_index += 1
        elif entry.op == "removerange":
            for _ in range(entry.length):
                yield old_index, None
                old_index += 1
        else:
            yield old_index, new_index
            old_index, new_index = old_index + 1, new_index + 1
    for index in range(old_index, len(old_cells)):
        yield index, new_index + index - old_index


def _by_difflib(old_cells: list[Cell], new_cells: list[Cell]) -> Iterator[Pair]:
    old_keys, new_keys = map(_keys, (old_cells, new_cells))
    matcher = difflib.SequenceMatcher(None, old_keys, new_keys, autojunk=False)
    for kind, old_index, old_end, new_index, new_end in matcher.get_opcodes():
        if kind == "equal":
            yield from zip(range(old_index, old_end), range(new_index, new_end), strict=True)
            continue
        for index in range(old_index, old_end):
            candidates = range(new_index, min(new_end, new_index + _MAX_CANDIDATES))
            is_similar = (_are_similar(old_cells[index], new_cells[n]) for n in candidates)
            offset = next((n for n, similar in enumerate(is_similar) if similar), None)
            if offset is None:
                yield index, None
                continue
            yield from ((None, n) for n in range(new_index, new_index + offset))
            yield index, new_index + offset
            new_index += offset + 1
        yield from ((None, n) for n in range(new_index, new_end))


def _keys(cells: list[Cell]) -> list[tuple[str, str]]:
    return [(cell["cell_type"], cell["source"]) for cell in cells]


def _are_similar(cell: Cell, candidate: Cell) -> bool:
    if cell["cell_type"] != candidate["cell_type"]:
        return False
    matcher = difflib.SequenceMatcher(None, _lines(cell), _lines(candidate), autojunk=False)
    if matcher.ratio() >= _SIMILAR:
        return True
    matcher = difflib.SequenceMatcher(None, cell["source"], candidate["source"])
    return matcher.real_quick_ratio() >= _SIMILAR and matcher.quick_ratio() >= _SIMILAR


def _difference(old_cells: list[Cell], new_cells: list[Cell], pair: Pair) -> CellDifference:
    old_index, new_index = pair
    old = None if old_index is None else old_cells[old_index]
    new = None if new_index is None else new_cells[new_index]
    cell = new or old or {}
    if old is None or new is None:
        kind, sign = ("added", "+") if old is None else ("removed", "-")
        lines = [(sign, line) for line in _lines(cell)]
    else:
        kind = "same" if _compared(old) == _compared(new) else "changed"
        lines = list(_changed_lines(_lines(old), _lines(new)))
    return CellDifference(kind, cell["cell_type"], old_index, new_index, lines)


def _changed_lines(old: list[str], new: list[str]) -> Iterator[tuple[str, str]]:
    matcher = difflib.SequenceMatcher(None, old, new, autojunk=False)
    for kind, old_index, old_end, new_index, new_end in matcher.get_opcodes():
        if kind == "equal":
            yield from ((" ", line) for line in old[old_index:old_end])
        else:
            yield from (("-", line) for line in old[old_index:old_end])
            yield from (("+", line) for line in new[new_index:new_end])


def _lines(cell: Cell) -> list[str]:
    source: str = cell["source"]
    return source.splitlines()
