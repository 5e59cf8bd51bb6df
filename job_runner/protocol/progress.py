"""How far a run is, from its records."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import count
from typing import Any

from .figures import figures_of_run
from .journal.validation import are_places, is_moment, is_notebook, validated

Record = dict[str, Any]
Places = tuple[int | None, ...]

INJECTED_TAG = "injected-parameters"
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
    `usage` is the latest usage record, None before the first. `places` are what `source_places`
    returns.
    """

    progress: Progress = Progress()
    running: bool = False
    began: float | None = None
    end: Record | None = None
    usage: Record | None = None
    places: Places = ()

    def feed(self, record: Record) -> None:
        """Take one more record. An invalid one changes nothing."""
        if self.began is None and is_moment(record.get("t")):
            self.began = record.get("t")
        match record:
            case {"k": "prepared", "cells_total": int(count)}:
                self.places = source_places(record)
                total = max(count - self.places.count(None), 0)
                cells = max((place + 1 for place in self.places if place is not None), default=0)
                self._update(cells_total=total, cells=cells)
            case {"k": "cell_start", "i": int(index)}:
                self.running = True
                self._update(current_cell=place_in_source(index, self.places))
            case {"k": "cell_end", "ok": ok}:
                cell = record.get("i")
                is_added = isinstance(cell, int) and place_in_source(cell, self.places) is None
                cells_done = self.progress.cells_done + (1 if ok and not is_added else 0)
                self._update(cells_done=cells_done, current_cell=None)
            case {"k": "usage"} if validated(record) is record:
                self.usage = figures_of_run(record)
            case {"k": "end", "state": "succeeded" | "failed"} if validated(record) is record:
                self.end = self.end or record  # two hosts may have finished the same dead attempt

    def _update(self, **changes: Any) -> None:
        self.progress = replace(self.progress, **changes)


def place_in_source(index: int, places: Places) -> int | None:
    """Return a prepared cell's index in the notebook that was sent; None for an added cell."""
    return places[index] if 0 <= index < len(places) else index


def source_places(record: Record) -> Places:
    """Return where each prepared cell is in the notebook that was sent; None: the run added it.

    An older runner's record has no places: then a cell with the tag of papermill's is an added one.
    """
    notebook: Any = record.get("notebook")
    if not is_notebook(notebook):
        return ()
    cells, places = notebook["cells"], record.get("places")
    if are_places(places, len(cells)):
        return tuple(places)
    return tuple(places_by_tag(cells))


def places_by_tag(cells: Sequence[dict[str, Any]]) -> Iterator[int | None]:
    """Yield what `source_places` returns, as far as the tags of the cells tell."""
    numbers = count()
    for cell in cells:
        is_added = cell["cell_type"] == "code" and _has_tag(cell, INJECTED_TAG)
        yield None if is_added else next(numbers)


def _has_tag(cell: dict[str, Any], tag: str) -> bool:
    tags = cell["metadata"].get("tags")
    return isinstance(tags, list) and tag in tags


def progress(records: Iterable[Record]) -> Progress:
    """Return the progress after all records."""
    state = ProgressFold()
    for record in records:
        state.feed(record)
    return state.progress
