"""How far a run is, from its records."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from .journal.validation import is_moment, is_notebook, validated

Record = dict[str, Any]

_ADDED_TAG = "injected-parameters"
"""papermill's tag of the cell with the parameters of a run."""


@dataclass(frozen=True)
class Progress:
    """Code cells that ran without ending the run, of how many, and the index of the running one.

    Only code cells that are not empty count, and not the one with the parameters that a run adds.
    So the running cell is the one after those that ran. Its index is the one among all cells of the
    prepared notebook.
    """

    cells_done: int = 0
    cells_total: int = 0
    current_cell: int | None = None


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
        cells_done, total = self.progress.cells_done, self.progress.cells_total
        match record:
            case {"k": "prepared", "cells_total": int(count)}:
                self.added = added_cells(record.get("notebook"))
                count = max(count - len(self.added), 0)
                self.progress = Progress(cells_done, count, self.progress.current_cell)
            case {"k": "cell_start", "i": int(index)}:
                self.running = True
                self.progress = Progress(cells_done, total, index)
            case {"k": "cell_end", "ok": ok}:
                is_added = any(record.get("i") == index for index in self.added)
                self.progress = Progress(cells_done + (1 if ok and not is_added else 0), total)
            case {"k": "usage"} if validated(record) is record:
                self.usage = {k: v for k, v in record.items() if k not in ("k", "t")}
            case {"k": "end", "state": "succeeded" | "failed"} if validated(record) is record:
                self.end = self.end or record  # two hosts may have finished the same dead attempt


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
