"""How far a run is, from its records."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from .journal.validation import is_moment, validated

Record = dict[str, Any]


@dataclass(frozen=True)
class Progress:
    """Code cells that ran without ending the run, of how many, and the index of the running one.

    Only code cells that are not empty count. The index is the one among all cells of the prepared
    notebook.
    """

    cells_done: int = 0
    cells_total: int = 0
    current_cell: int | None = None


@dataclass
class ProgressFold:
    """Progress, record by record; `running` once the first cell was sent.

    `began` is the time of the first record, in unix seconds, and `end` the record of the end.
    `usage` is the latest usage record, None before the first.
    """

    progress: Progress = Progress()
    running: bool = False
    began: float | None = None
    end: Record | None = None
    usage: Record | None = None

    def feed(self, record: Record) -> None:
        """Take one more record. An invalid one changes nothing."""
        if self.began is None and is_moment(record.get("t")):
            self.began = record.get("t")
        cells_done, total = self.progress.cells_done, self.progress.cells_total
        match record:
            case {"k": "prepared", "cells_total": int(count)}:
                self.progress = Progress(cells_done, count, self.progress.current_cell)
            case {"k": "cell_start", "i": int(index)}:
                self.running = True
                self.progress = Progress(cells_done, total, index)
            case {"k": "cell_end", "ok": ok}:
                self.progress = Progress(cells_done + (1 if ok else 0), total)
            case {"k": "usage"} if validated(record) is record:
                self.usage = {k: v for k, v in record.items() if k not in ("k", "t")}
            case {"k": "end", "state": "succeeded" | "failed"} if validated(record) is record:
                self.end = self.end or record  # two hosts may have finished the same dead attempt


def progress(records: Iterable[Record]) -> Progress:
    """Return the progress after all records."""
    state = ProgressFold()
    for record in records:
        state.feed(record)
    return state.progress
