"""From records to what people see: the executed notebook, its progress, its text.

The same code at a normal end and after a crash: any prefix of a journal folds to a valid notebook,
and a journal with damaged lines folds to one that says so. The records are described in
`docs/protocol.md`; kinds that are not known here are a newer runner's and are skipped.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any

from .notebook import Cell, Notebook, blank, empty_code_cell
from .widgets import WidgetFold

Record = dict[str, Any]


@dataclass(frozen=True)
class Progress:
    """Code cells that ran without ending the run, of how many, and the index of the one running.

    Only code cells with something in them count; the index is the place among all cells of the
    prepared notebook.
    """

    cells_done: int = 0
    cells_total: int = 0
    current_cell: int | None = None


@dataclass
class ProgressFold:
    """Progress, record by record; `running` once the first cell was sent.

    `began` is the time of the first record, in unix seconds.
    """

    progress: Progress = Progress()
    running: bool = False
    began: float | None = None

    def feed(self, record: Record) -> None:
        """Take one more record."""
        if self.began is None:
            self.began = record.get("t")
        done, total = self.progress.cells_done, self.progress.cells_total
        match record.get("k"):
            case "prepared":
                self.progress = Progress(done, record["cells_total"], self.progress.current_cell)
            case "cell_start":
                self.running = True
                self.progress = Progress(done, total, record["i"])
            case "cell_end":
                self.progress = Progress(done + (1 if record["ok"] else 0), total)


def progress(records: Iterable[Record]) -> Progress:
    """Return the progress after all records."""
    state = ProgressFold()
    for record in records:
        state.feed(record)
    return state.progress


def log_text(records: Iterable[Record]) -> Iterator[str]:
    """Yield the text output and tracebacks, as they came."""
    for record in records:
        if record.get("k") == "damaged":
            yield "\n" + _damage(record)
        elif record.get("k") == "output":
            yield from _text_of(record["output"])


def fold(snapshot: Notebook, records: Iterable[Record]) -> Notebook:
    """Return the notebook that a journal describes. Neither argument is changed.

    `snapshot` counts only where the journal does not come to `prepared`.
    """
    run = NotebookFold(snapshot)
    for record in records:
        run.feed(record)
    return run.result()


class NotebookFold:
    """The executed notebook, record by record."""

    def __init__(self, snapshot: Notebook) -> None:
        self.notebook = blank(snapshot)
        self._cells: list[Cell] = []  # as prepared: indices in records do not shift with banners
        self._recovered: dict[int | None, Cell] = {}
        self._displays: dict[str, list[dict[str, Any]]] = {}
        self._clear_next: set[int] = set()
        self._current: int | None = None
        self._passed = 0
        self._began: float | None = None
        self._widgets = WidgetFold()

    @classmethod
    def over(cls, prepared: Notebook) -> NotebookFold:
        """Return a fold that works on `prepared` itself, in place."""
        run = cls({})
        run.notebook, run._cells = prepared, list(prepared["cells"])
        return run

    def feed(self, record: Record) -> None:
        """Take one more record."""
        handler = getattr(self, f"_on_{record.get('k')}", None)
        if handler is not None:
            handler(record)

    def result(self) -> Notebook:
        """Return the notebook as it stands; it goes on changing with later records."""
        for cell in self.notebook["cells"]:
            for output in cell.get("outputs", ()):
                if output["output_type"] == "stream":
                    output["text"] = "".join(output["text"])
        if self._widgets.used:
            self.notebook["metadata"]["widgets"] = self._widgets.metadata()
        return self.notebook

    def _on_prepared(self, record: Record) -> None:
        self.notebook = copy.deepcopy(record["notebook"])
        self._cells = list(self.notebook["cells"])
        self._began = record.get("t")
        metadata = self.notebook["metadata"].setdefault("papermill", {})
        metadata.update(start_time=_iso(self._began), end_time=None, duration=None, exception=None)

    def _on_kernel(self, record: Record) -> None:
        if record.get("language_info"):
            self.notebook["metadata"]["language_info"] = record["language_info"]

    def _on_cell_start(self, record: Record) -> None:
        self._current = record["i"]
        self._pass_by(record["i"], record)
        _mark(self._cell(record["i"]), record, "running", exception=False)

    def _on_cell_end(self, record: Record) -> None:
        cell = self._cell(record["i"])
        cell["execution_count"] = record["execution_count"]
        self._end_cell(cell, record, ok=record["ok"])

    def _on_output(self, record: Record) -> None:
        self._clear_if_due(record["i"])
        # A copy of the same type: papermill's notebooks hold nodes, not dictionaries.
        outputs, output = self._cell(record["i"])["outputs"], copy.copy(record["output"])
        if output["output_type"] == "stream":
            last = outputs[-1] if outputs else {}
            if last.get("output_type") != "stream" or last.get("name") != output["name"]:
                last = copy.copy(output)
                last["text"] = []
                outputs.append(last)
            # Pieces are kept apart until `result` joins them: joining here would be quadratic.
            if isinstance(last["text"], str):
                last["text"] = [last["text"]]
            last["text"].append(output["text"])
            return
        outputs.append(output)
        display = record.get("display_id")
        if display is not None and "data" in output:
            self._update(display, output)
            self._displays.setdefault(display, []).append(output)

    def _on_update_display(self, record: Record) -> None:
        self._update(record["display_id"], record)

    def _on_clear(self, record: Record) -> None:
        self._clear_next.add(record["i"])
        if not record.get("wait"):
            self._clear_if_due(record["i"])

    def _on_widget(self, record: Record) -> None:
        self._widgets.feed(record)

    def _on_damaged(self, record: Record) -> None:
        output = {"output_type": "stream", "name": "stderr", "text": _damage(record)}
        self._on_output({"i": self._current, "output": output})

    def _on_end(self, record: Record) -> None:
        if record["state"] == "succeeded":
            self._pass_by(len(self._cells), record)
        elif record.get("cell") is not None:
            cell = self._cell(record["cell"])
            if cell["metadata"].get("papermill", {}).get("status") == "running":
                self._end_cell(cell, record, ok=False)
        metadata = self.notebook["metadata"].setdefault("papermill", {})
        metadata["exception"] = None if record["state"] == "succeeded" else True
        metadata["end_time"] = _iso(record.get("t"))
        if self._began is not None and record.get("t") is not None:
            metadata["duration"] = round(record["t"] - self._began, 6)
        old = (self.notebook["nbformat"], self.notebook["nbformat_minor"]) < (4, 5)
        for position, cell in record.get("banner", ()):
            shown = {k: v for k, v in cell.items() if k != "id" or not old}
            self.notebook["cells"].insert(position, shown)

    def _cell(self, index: int | None) -> Cell:
        """Return a code cell by its index; a new one if the record that told of it is damaged."""
        if index is not None and 0 <= index < len(self._cells):
            cell = self._cells[index]
            if cell["cell_type"] == "code":
                return cell
        if index not in self._recovered:
            cell = self._recovered[index] = empty_code_cell(self.notebook, f"recovered-{index}")
            self.notebook["cells"].append(cell)
        return self._recovered[index]

    def _pass_by(self, index: int, record: Record) -> None:
        """Complete the cells before `index` that no kernel ever saw: text, and empty code."""
        for cell in self._cells[self._passed : index]:
            if cell["metadata"].get("papermill", {}).get("status", "pending") == "pending":
                _mark(cell, record, "completed", exception=False, end_time=_iso(record.get("t")))
                cell["metadata"]["papermill"]["duration"] = 0.0
        self._passed = max(self._passed, index)

    def _end_cell(self, cell: Cell, record: Record, *, ok: bool) -> None:
        seen = cell["metadata"].setdefault("papermill", {})
        seen["status"], seen["exception"] = ("completed", False) if ok else ("failed", True)
        seen["end_time"] = _iso(record.get("t"))
        if record.get("t") is not None and seen.get("start_time"):
            began = datetime.fromisoformat(seen["start_time"]).timestamp()
            seen["duration"] = round(record["t"] - began, 6)
        self._current = None

    def _update(self, display_id: str, shown: Record) -> None:
        for output in self._displays.get(display_id, ()):
            output["data"], output["metadata"] = shown["data"], shown["metadata"]

    def _clear_if_due(self, index: int) -> None:
        if index in self._clear_next:
            self._clear_next.discard(index)
            self._cell(index)["outputs"].clear()


def _mark(cell: Cell, record: Record, status: str, **fields: Any) -> None:
    moment = _iso(record.get("t"))
    seen = {"start_time": moment, "end_time": None, "duration": None, "status": status, **fields}
    cell["metadata"].setdefault("papermill", {}).update(seen)


def _iso(moment: float | None) -> str | None:
    """Return unix seconds as papermill writes times."""
    return None if moment is None else datetime.fromtimestamp(moment, timezone.utc).isoformat()


def _damage(record: Record) -> str:
    return f"[{record['bytes']} bytes of the journal are damaged here]\n"


def _text_of(output: dict[str, Any]) -> Iterator[str]:
    match output.get("output_type"):
        case "stream":
            yield output["text"]
        case "error":
            lines = output["traceback"] or [f"{output['ename']}: {output['evalue']}"]
            yield "\n".join(lines) + "\n"
        case "execute_result" | "display_data":
            text = output["data"].get("text/plain")
            if text:
                yield ("".join(text) if isinstance(text, list) else text) + "\n"
