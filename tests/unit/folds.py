"""The fold as tests ask for it, and a plain one to hold it to, with everything in memory."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import nbformat

from job_runner.protocol.journal.validation import damage_notice
from job_runner.protocol.result.result import ResultFold
from job_runner.protocol.result.spool import Spool

Record = dict[str, Any]


def fold_to_bytes(snapshot: Any, records: Iterable[Record]) -> bytes:
    """The file that these records come to."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "snapshot.ipynb")
        path.write_text(json.dumps(snapshot))
        with ResultFold(path, Spool.in_folder(Path(folder))) as run:
            for record in records:
                run.feed(record)
            return b"".join(run.chunks())


def fold(snapshot: Any, records: Iterable[Record]) -> Any:
    """The same as nbformat reads it; valid."""
    notebook = nbformat.reads(fold_to_bytes(snapshot, records).decode(), as_version=4)
    nbformat.validate(notebook)
    return notebook


def jupyterlab(text: str) -> str:
    """JupyterLab's `processText` (outputarea 4.x), character by character."""
    shown, at = "", 0
    for char in text:
        if char == "\b":
            if at > 0 and shown[at - 1] != "\n":
                shown = shown[: at - 1] + shown[at + 1 :]
                at -= 1
        elif char == "\r":
            at = shown.rfind("\n", 0, at) + 1
        elif char == "\n":
            shown += "\n"
            at = len(shown)
        else:
            shown = shown[:at] + char + shown[at + 1 :]
            at += 1
    return shown


def fold_in_memory(records: Iterable[Record]) -> list[list[Any]]:
    """The outputs of each cell that has any."""
    run = _MemoryFold()
    for record in records:
        run.feed(record)
    return run.outputs()


class _MemoryFold:
    def __init__(self) -> None:
        self.cells: dict[int | None, list[Any]] = {}
        self.clear: set[int] = set()
        self.current: int | None = None

    def feed(self, record: Record) -> None:
        match record["k"]:
            case "cell_start":
                self.current = record["i"]
            case "cell_end":
                self.current = None
            case "output":
                identifier = record.get("display_id") if "data" in record["output"] else None
                self.update(record["output"], identifier)
                self.add(record["i"], {**record["output"], "display_id": identifier})
            case "update_display":
                self.update(record, record["display_id"])
            case "clear":
                self.clear.add(record["i"])
                if not record["wait"]:
                    self.clear_if_due(record["i"])
            case "damaged":
                stream = {"output_type": "stream", "name": "stderr", "text": damage_notice(record)}
                self.add(self.current, stream)

    def update(self, shown: Record, identifier: str | None) -> None:
        for output in [o for outputs in self.cells.values() for o in outputs]:
            if identifier is not None and output.get("display_id") == identifier:
                output |= {"data": shown["data"], "metadata": shown["metadata"]}

    def add(self, index: int | None, output: Record) -> None:
        self.clear_if_due(index)
        outputs = self.cells.setdefault(index, [])
        last = outputs[-1] if outputs else {}
        if output["output_type"] == "stream" and last.get("name") == output["name"]:
            last["text"] += output["text"]
        else:
            outputs.append(dict(output))

    def clear_if_due(self, index: int | None) -> None:
        if index in self.clear:
            self.clear.discard(index)
            self.cells.pop(index, None)

    def outputs(self) -> list[list[Any]]:
        for output in [o for outputs in self.cells.values() for o in outputs]:
            output.pop("display_id", None)
            if output["output_type"] == "stream":
                output["text"] = jupyterlab(output["text"])
        return [outputs for outputs in self.cells.values() if outputs]
