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

from .notebook import Cell, Notebook, blank, copy_of, empty_code_cell, valid_language
from .overwritten import settle
from .records import is_moment, sound
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

    `began` is the time of the first record, in unix seconds; `end` the last one, once it stands.
    """

    progress: Progress = Progress()
    running: bool = False
    began: float | None = None
    end: Record | None = None

    def feed(self, record: Record) -> None:
        """Take one more record. One that makes no sense changes nothing."""
        if self.began is None and is_moment(record.get("t")):
            self.began = record.get("t")
        done, total = self.progress.cells_done, self.progress.cells_total
        match record:
            case {"k": "prepared", "cells_total": int(count)}:
                self.progress = Progress(done, count, self.progress.current_cell)
            case {"k": "cell_start", "i": int(index)}:
                self.running = True
                self.progress = Progress(done, total, index)
            case {"k": "cell_end", "ok": ok}:
                self.progress = Progress(done + (1 if ok else 0), total)
            case {"k": "end", "state": "succeeded" | "failed"}:
                self.end = record


def progress(records: Iterable[Record]) -> Progress:
    """Return the progress after all records."""
    state = ProgressFold()
    for record in records:
        state.feed(record)
    return state.progress


def log_text(records: Iterable[Record]) -> Iterator[str]:
    """Yield the text output and tracebacks, as they came."""
    for record in map(sound, records):
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
        self._cursors: dict[int | None, tuple[dict[str, Any], str]] = {}
        self._clear_next: set[int] = set()
        self._current: int | None = None
        self._passed = 0
        self._began: float | None = None
        self._widgets = WidgetFold()
        self._ended = False

    @classmethod
    def over(cls, prepared: Notebook) -> NotebookFold:
        """Return a fold that works on `prepared` itself, in place."""
        run = cls({})
        run.notebook, run._cells = prepared, list(prepared["cells"])
        return run

    def feed(self, record: Record) -> None:
        """Take one more record."""
        record = sound(record)
        handler = getattr(self, f"_on_{record.get('k')}", None)
        if handler is not None:
            handler(record)

    def result(self) -> Notebook:
        """Return the notebook as it stands; it goes on changing with later records."""
        for index, cell in [*enumerate(self._cells), *self._recovered.items()]:
            if cell["cell_type"] == "code":
                self._settle(index, cell["outputs"])
        if self._widgets.used:
            self.notebook["metadata"]["widgets"] = self._widgets.metadata()
        return self.notebook

    def _on_prepared(self, record: Record) -> None:
        if self._cells:
            return
        self.notebook = copy_of(record["notebook"])
        self._cells = list(self.notebook["cells"])
        for index, cell in list(self._recovered.items()):
            del self._recovered[index]
            self._cell(None if index is None else -1 - index)["outputs"] = cell["outputs"]
        self._began = record.get("t")
        metadata = self.notebook["metadata"].setdefault("papermill", {})
        metadata.update(start_time=_iso(self._began), end_time=None, duration=None, exception=None)

    def _on_kernel(self, record: Record) -> None:
        info = valid_language(record.get("language_info") or {})
        if info:
            self.notebook["metadata"]["language_info"] = info

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
                settled, cursor = self._cursors.get(record["i"], (None, ""))
                last["text"] = [last["text"], cursor if settled is last else ""]
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
        if self._ended:  # two hosts finished the same dead attempt
            return
        self._ended = True
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

    def _settle(self, index: int | None, outputs: list[dict[str, Any]]) -> None:
        """Join the pieces of a cell's streams; the last one may go on later."""
        for output in outputs:
            if output["output_type"] == "stream" and not isinstance(output["text"], str):
                output["text"], cursor = settle("".join(output["text"]))
                self._cursors[index] = (output, cursor)

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
