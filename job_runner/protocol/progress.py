"""How far a run is, from its records."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from typing import Any

from .figures import figures_of_run
from .journal.validation import is_moment, is_notebook, validated

Record = dict[str, Any]

_ADDED_TAG = "injected-parameters"
"""papermill's tag of the cell with the parameters of a run."""


@dataclass(frozen=True)
class Progress:
    """Code cells that ran without ending the run, of how many; the running cell, of how many cells.

    Only code cells that are not empty count for the first two. `current_cell` is the running cell's
    index among the `cells` of the notebook that was sent. The cell with the parameters that a run
    adds counts nowhere.
    """

    cells_done: int = 0
    cells_total: int = 0
    current_cell: int | None = None
    cells: int = 0


@dataclass
class ProgressFold:
    """Progress, record by record; `running` once the first cell was sent.

    `began` is the time of the first record, in unix seconds, and `end` the record of the end.
    `usage` is the latest usage record, None before the first. `added` are the indices of the cells
    that do not count.
    """

    progress: Progress = Progress()
    running: bool = False
    began: float | None = None
    end: Record | None = None
    usage: Record | None = None
    added: frozenset[int] = frozenset()

    def feed(self, record: Record) -> None:
        """Take one more record. An invalid one changes nothing."""
        if self.began is None and is_moment(record.get("t")):
            self.began = record.get("t")
        match record:
            case {"k": "prepared", "cells_total": int(count)}:
                notebook: Any = record.get("notebook")
                self.added = added_cells(notebook)
                cells = len(notebook["cells"]) - len(self.added) if is_notebook(notebook) else 0
                total = max(count - len(self.added), 0)
                self._update(cells_total=total, cells=cells)
            case {"k": "cell_start", "i": int(index)}:
                self.running = True
                self._update(current_cell=place_in_source(index, self.added))
            case {"k": "cell_end", "ok": ok}:
                is_added = any(record.get("i") == index for index in self.added)
                cells_done = self.progress.cells_done + (1 if ok and not is_added else 0)
                self._update(cells_done=cells_done, current_cell=None)
            case {"k": "usage"} if validated(record) is record:
                self.usage = figures_of_run(record)
            case {"k": "end", "state": "succeeded" | "failed"} if validated(record) is record:
                self.end = self.end or record  # two hosts may have finished the same dead attempt

    def _update(self, **changes: Any) -> None:
        self.progress = replace(self.progress, **changes)


def place_in_source(index: int, added: Collection[int]) -> int | None:
    """Return a prepared cell's index in the notebook that was sent; None for an added cell."""
    return None if index in added else index - sum(other < index for other in added)


def added_cells(notebook: Any) -> frozenset[int]:
    """Return the indices of the cells that a run adds: that with the parameters, if any."""
    if not is_notebook(notebook):
        return frozenset()
    return frozenset(
        index
        for index, cell in enumerate(notebook["cells"])
        if cell["cell_type"] == "code" and _has_tag(cell, _ADDED_TAG)
    )


def _has_tag(cell: dict[str, Any], tag: str) -> bool:
    tags = cell["metadata"].get("tags")
    return isinstance(tags, list) and tag in tags


def progress(records: Iterable[Record]) -> Progress:
    """Return the progress after all records."""
    state = ProgressFold()
    for record in records:
        state.feed(record)
    return state.progress
