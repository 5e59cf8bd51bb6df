"""From records to what people see: the executed notebook, its progress, its text.

The same code at a normal end and after a crash: any prefix of a journal folds to a valid notebook.

Records, by their kind `k` (`t` is always unix seconds):
`prepared` {notebook, cells_total}: the notebook as papermill's rules made it, parameters in it and
old outputs out of it; `cell_start` {i, time}; `output` {i, output}; `clear` {i, wait};
`update_display` {display_id, data, metadata}; `cell_end` {i, time, seconds, ok, execution_count};
`end` {metadata, banner}: [[position, cell], ...] to insert in that order.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

Record = dict[str, Any]
Cell = dict[str, Any]
Notebook = dict[str, Any]


@dataclass(frozen=True)
class Progress:
    """Code cells that ended, of how many, and the notebook's cell that runs now."""

    cells_done: int = 0
    cells_total: int = 0
    current_cell: int | None = None


@dataclass
class ProgressFold:
    """Progress, record by record; `running` once the first cell was sent."""

    progress: Progress = Progress()
    running: bool = False

    def feed(self, record: Record) -> None:
        """Take one more record."""
        done, total = self.progress.cells_done, self.progress.cells_total
        match record.get("k"):
            case "prepared":
                self.progress = Progress(0, record["cells_total"])
            case "cell_start":
                self.running = True
                self.progress = Progress(done, total, record["i"])
            case "cell_end":
                self.progress = Progress(done + 1, total)


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
            yield f"\n[{record['bytes']} bytes of the journal are damaged here]\n"
        elif record.get("k") == "output":
            yield from _text_of(record["output"])


def _text_of(output: dict[str, Any]) -> Iterator[str]:
    match output.get("output_type"):
        case "stream":
            yield output["text"]
        case "error":
            yield "\n".join([*output["traceback"], ""]) or f"{output['ename']}\n"
        case "execute_result" | "display_data":
            text = output["data"].get("text/plain")
            if text:
                yield ("".join(text) if isinstance(text, list) else text) + "\n"


@dataclass
class Run:
    """The notebook being put together."""

    notebook: Notebook
    displays: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    clear_next: set[int] = field(default_factory=set)

    def feed(self, record: Record) -> None:
        handler = getattr(self, "_on_" + str(record.get("k")), None)
        if handler is not None:
            handler(record)

    def _cell(self, record: Record) -> Cell:
        cells: list[Cell] = self.notebook["cells"]
        return cells[record["i"]]

    def _on_prepared(self, record: Record) -> None:
        self.notebook = record["notebook"]

    def _on_cell_start(self, record: Record) -> None:
        self._cell(record)["metadata"]["papermill"].update(
            status="running", start_time=record["time"], exception=False
        )

    def _on_output(self, record: Record) -> None:
        self._flush_clear(record)
        outputs, output = self._cell(record)["outputs"], dict(record["output"])
        display = output.pop("transient", {}).get("display_id")
        last = outputs[-1] if outputs else {}
        if output["output_type"] == "stream" and last.get("name") == output["name"]:
            # Pieces are kept apart until `close` joins them: joining here would be quadratic.
            last["text"].append(output["text"])
            return
        if output["output_type"] == "stream":
            output["text"] = [output["text"]]
        outputs.append(output)
        if display is not None:
            self.displays.setdefault(display, []).append(output)

    def _on_update_display(self, record: Record) -> None:
        for output in self.displays.get(record["display_id"], []):
            output["data"], output["metadata"] = record["data"], record["metadata"]

    def _on_clear(self, record: Record) -> None:
        if record.get("wait"):
            self.clear_next.add(record["i"])
        else:
            self._cell(record)["outputs"].clear()

    def _flush_clear(self, record: Record) -> None:
        if record["i"] in self.clear_next:
            self.clear_next.discard(record["i"])
            self._cell(record)["outputs"].clear()

    def _on_cell_end(self, record: Record) -> None:
        cell = self._cell(record)
        cell["execution_count"] = record["execution_count"]
        cell["metadata"]["papermill"].update(
            status="completed" if record["ok"] else "failed",
            exception=not record["ok"],
            end_time=record["time"],
            duration=record["seconds"],
        )

    def _on_end(self, record: Record) -> None:
        self.notebook["metadata"].setdefault("papermill", {}).update(record["metadata"])
        for position, cell in record["banner"]:
            self.notebook["cells"].insert(position, cell)

    def close(self) -> None:
        for cell in self.notebook["cells"]:
            for output in cell.get("outputs", ()):
                if output["output_type"] == "stream":
                    output["text"] = "".join(output["text"])


def fold(snapshot: Notebook, records: Iterable[Record]) -> Notebook:
    """Return the notebook that a journal describes. `snapshot` is nbformat 4 and stays as it is."""
    run = Run(copy.deepcopy(snapshot))
    for record in records:
        run.feed(record)
    run.close()
    return run.notebook
