"""Folds records to the executed notebook.

The rules are the same during the run, at its end and after a crash: any prefix of a journal folds
to a valid notebook, and a journal with damaged lines to a notebook that says so. `docs/protocol.md`
describes the records. Unknown kinds are a newer runner's and are skipped.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timezone
from functools import cached_property
from typing import Any

from ..figures import figures_of_cell, figures_of_run
from ..journal.truncation import cut_notice, dropped_notice, omitted_notice
from ..journal.validation import damage_notice
from .notebook import (
    METADATA_KEY,
    Cell,
    Notebook,
    blank_notebook,
    copy_notebook,
    empty_code_cell,
    valid_language,
)
from .outputs import Outputs, OutputStore
from .widgets import WidgetFold

Record = dict[str, Any]

MAX_RECOVERED = 1000
"""Cells that are made for records of unknown cells: what more of them print shares one cell."""
_SHARED_CELL = 999_999


class NotebookFold:
    """The executed notebook, record by record, with its outputs in `store`.

    `snapshot` is called only where the record `prepared` is missing; its notebook is not changed.
    """

    def __init__(self, snapshot: Callable[[], Notebook], store: OutputStore) -> None:
        self._snapshot = snapshot
        self._store = store
        self._cells: list[Cell] = []  # as prepared: indices in records do not shift with banners
        self._recovered: dict[int | None, Cell] = {}
        self._outputs: dict[int | None, Outputs] = {}
        self._clear_next: set[int | Outputs] = set()
        self._current: int | None = None
        self._completed = 0
        self._began: float | None = None
        self._start_times: dict[int, float] = {}
        self._widgets = WidgetFold()
        self._ended = False

    @classmethod
    def in_place(cls, prepared: Notebook, store: OutputStore) -> NotebookFold:
        """Return a fold that works on `prepared` itself, in place."""
        fold = cls(dict, store)
        fold.notebook, fold._cells = prepared, list(prepared["cells"])
        return fold

    @cached_property
    def notebook(self) -> Notebook:
        """The notebook, without the outputs and widgets that `result` completes."""
        return blank_notebook(self._snapshot())

    def feed(self, record: Record) -> None:
        """Take one more record, a valid one."""
        record = self._with_known_cell(record)
        handler = getattr(self, f"_on_{record.get('k')}", None)
        if handler is not None:
            handler(record)

    def _with_known_cell(self, record: Record) -> Record:
        """Return the record, of the shared cell if its own would be one unknown cell too many."""
        index = record.get("i")
        if not isinstance(index, int) or index < len(self._cells) or index in self._recovered:
            return record
        return record if len(self._recovered) < MAX_RECOVERED else {**record, "i": _SHARED_CELL}

    def result(self) -> Notebook:
        """Return the notebook as it is now. It changes with later records."""
        for outputs in self._outputs.values():
            outputs.flush()
        if self._widgets.used:
            self.notebook["metadata"]["widgets"] = self._widgets.metadata()
        return self.notebook

    def _on_prepared(self, record: Record) -> None:
        if self._cells:
            return
        self.notebook = copy_notebook(record["notebook"])
        self._cells = list(self.notebook["cells"])
        for index, cell in list(self._recovered.items()):
            moved = None if index is None else -1 - index
            del self._recovered[index]
            self._cell(moved)["outputs"] = cell["outputs"]
            if index in self._outputs:
                self._outputs[moved] = self._outputs.pop(index)
        self._began = record.get("t")
        metadata = self.notebook["metadata"].setdefault("papermill", {})
        metadata.update(start_time=_iso(self._began), end_time=None, duration=None, exception=None)

    def _on_kernel(self, record: Record) -> None:
        info = valid_language(record.get("language_info") or {})
        if info:
            self.notebook["metadata"]["language_info"] = info

    def _on_cell_start(self, record: Record) -> None:
        self._current = record["i"]
        self._complete_until(record["i"], record)
        if record.get("t") is not None:
            self._start_times[record["i"]] = record["t"]
        _set_status(self._cell(record["i"]), record, "running", exception=False)

    def _on_cell_end(self, record: Record) -> None:
        cell = self._cell(record["i"])
        cell["execution_count"] = record.get("execution_count")
        usage = figures_of_cell(record.get("usage") or {})
        if usage:
            cell["metadata"][METADATA_KEY] = usage
        if record["i"] in self._outputs:
            self._outputs[record["i"]].flush()
        self._end_cell(record["i"], record, ok=record["ok"])

    def _on_output(self, record: Record) -> None:
        self._clear_if_due(record["i"])
        outputs, output = self._target_outputs(record["i"]), record["output"]
        if output["output_type"] == "stream":
            outputs.stream(output["name"], output["text"])
            return
        display = record.get("display_id") if "data" in output else None
        if display is not None:
            self._update(display, output)
        outputs.add(output, display)

    def _on_update_display(self, record: Record) -> None:
        self._update(record["display_id"], record)

    def _on_clear(self, record: Record) -> None:
        self._clear_next.add(self._widgets.capturing(record["i"]) or record["i"])
        if not record.get("wait"):
            self._clear_if_due(record["i"])

    def _on_widget(self, record: Record) -> None:
        self._widgets.feed(record)

    def _on_widget_close(self, record: Record) -> None:
        self._widgets.close(record["id"])

    def _on_damaged(self, record: Record) -> None:
        if self._current is not None:
            self._clear_if_due(self._current)
        self._outputs_of(self._current).stream("stderr", damage_notice(record))

    def _on_omitted(self, record: Record) -> None:
        self._outputs_of(self._current).stream("stderr", omitted_notice(record))

    def _on_cut(self, record: Record) -> None:
        self._outputs_of(self._current).stream("stderr", cut_notice(record))

    def _on_dropped(self, record: Record) -> None:
        output = {"output_type": "stream", "name": "stderr", "text": dropped_notice(record)}
        self._on_output({"i": record["i"], "output": output})

    def _on_end(self, record: Record) -> None:
        if self._ended:  # two hosts finished the same dead attempt
            return
        self._ended = True
        if record["state"] == "succeeded":
            self._complete_until(len(self._cells), record)
        elif record.get("cell") is not None:
            cell = self._cell(record["cell"])
            metadata = cell["metadata"].get("papermill", {})
            if metadata.get("status") == "running":
                self._end_cell(record["cell"], record, ok=False)
            elif metadata.get("status") == "completed":  # it only showed an error: all cells ran
                metadata.update(status="failed", exception=True)
                self._complete_until(len(self._cells), record)
        usage = figures_of_run(record.get("usage") or {})
        if usage:
            self.notebook["metadata"].setdefault(METADATA_KEY, {})["usage"] = usage
        metadata = self.notebook["metadata"].setdefault("papermill", {})
        metadata["exception"] = None if record["state"] == "succeeded" else True
        metadata["end_time"] = _iso(record.get("t"))
        if self._began is not None and record.get("t") is not None:
            metadata["duration"] = round(record["t"] - self._began, 6)
        old = (self.notebook["nbformat"], self.notebook["nbformat_minor"]) < (4, 5)
        for position, cell in record.get("banner", ()):
            banner_cell = {k: v for k, v in cell.items() if k != "id" or not old}
            self.notebook["cells"].insert(position, banner_cell)

    def _cell(self, index: int | None) -> Cell:
        """Return a code cell by its index; a new cell if the record of the notebook is damaged."""
        if index is not None and 0 <= index < len(self._cells):
            cell = self._cells[index]
            if cell["cell_type"] == "code":
                return cell
        if index not in self._recovered:
            cell = self._recovered[index] = empty_code_cell(self.notebook, f"recovered-{index}")
            self.notebook["cells"].append(cell)
        return self._recovered[index]

    def _complete_until(self, index: int, record: Record) -> None:
        """Complete the cells before `index` that are not executed: text, and empty code."""
        for cell in self._cells[self._completed : index]:
            if cell["metadata"].get("papermill", {}).get("status", "pending") == "pending":
                _set_status(
                    cell, record, "completed", exception=False, end_time=_iso(record.get("t"))
                )
                cell["metadata"]["papermill"]["duration"] = 0.0
        self._completed = max(self._completed, index)

    def _end_cell(self, index: int, record: Record, *, ok: bool) -> None:
        metadata = self._cell(index)["metadata"].setdefault("papermill", {})
        metadata["status"], metadata["exception"] = ("completed", False) if ok else ("failed", True)
        metadata["end_time"] = _iso(record.get("t"))
        if record.get("t") is not None and index in self._start_times:
            metadata["duration"] = round(record["t"] - self._start_times.pop(index), 6)
        self._current = None

    def _target_outputs(self, index: int) -> Outputs:
        """Return the outputs that an output of a cell goes to: the cell's, or a widget's."""
        return self._widgets.capturing(index) or self._outputs_of(index)

    def _outputs_of(self, index: int | None) -> Outputs:
        """Return the outputs of a cell."""
        if index not in self._outputs:
            self._outputs[index] = self._store.outputs(self._cell(index))
        return self._outputs[index]

    def _update(self, display_id: str, content: Record) -> None:
        for store in (self._store, self._widgets.store):
            store.update(display_id, content)

    def _clear_if_due(self, index: int) -> None:
        widget_outputs = self._widgets.capturing(index)
        target = widget_outputs or index
        if target in self._clear_next:
            self._clear_next.discard(target)
            outputs = widget_outputs or self._outputs.get(index)
            if outputs is not None:
                outputs.clear()


def _set_status(cell: Cell, record: Record, status: str, **fields: Any) -> None:
    moment = _iso(record.get("t"))
    times = {"start_time": moment, "end_time": None, "duration": None}
    cell["metadata"].setdefault("papermill", {}).update({**times, "status": status, **fields})


def _iso(moment: float | None) -> str | None:
    """Return unix seconds as papermill writes times."""
    return None if moment is None else datetime.fromtimestamp(moment, timezone.utc).isoformat()
