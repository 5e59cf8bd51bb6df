"""What each cell of a run used, from the journal. Outputs are not read."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from job_runner.protocol import times
from job_runner.protocol.figures import OF_CELL
from job_runner.protocol.journal import journal
from job_runner.protocol.journal.validation import is_notebook, validated
from job_runner.protocol.progress import Places, place_in_source, source_places

from ...domain.errors import NotFound
from ...domain.job_record import CellReceipt

MAX_RECEIPTS = 10_000
"""Cells of an answer: no notebook that a person reads has more."""
MAX_TITLE = 120
"""Characters of a cell's code that are shown."""


def read_receipts(path: Path, max_line: int | None = None) -> list[CellReceipt]:
    """Return the receipts of the cells that began, in their order, from the journal at `path`.

    Records with a longer line than `max_line` are passed over. Raises NotFound where the journal
    was removed meanwhile.
    """
    reader = _ReceiptReader()
    try:
        for entry in journal.read_journal(path, skip_outputs=True, max_line=max_line):
            if validated(entry.record) is entry.record:
                reader.feed(entry.record)
    except FileNotFoundError as error:
        raise NotFound("The journal is gone.") from error
    return list(reader.receipts.values())[:MAX_RECEIPTS]


class _ReceiptReader:
    """Makes receipts of records; `receipts` is by the index in the prepared notebook."""

    def __init__(self) -> None:
        self.receipts: dict[int, CellReceipt] = {}
        self._titles: list[str] = []
        self._places: Places = ()

    def feed(self, record: dict[str, Any]) -> None:
        """Take one more valid record."""
        match record:
            case {"k": "prepared", "notebook": notebook} if is_notebook(notebook):
                self._titles = [_title(cell["source"]) for cell in notebook["cells"]]
                self._places = source_places(record)
            case {"k": "cell_start", "i": int(index)}:
                self.receipts[index] = self._begin(index, record.get("t"))
            case {"k": "cell_end", "i": int(index), "ok": bool(ok)}:
                self._end(index, ok, record)
            case {"k": "end"}:
                for index, receipt in self.receipts.items():
                    # All cells may have run, and the end names the one with an error.
                    if receipt.state == "running" or index == record.get("cell"):
                        self.receipts[index] = replace(receipt, state="failed")

    def _begin(self, index: int, moment: float | None) -> CellReceipt:
        title = self._titles[index] if 0 <= index < len(self._titles) else ""
        started = None if moment is None else times.from_unix(moment)
        return CellReceipt(place_in_source(index, self._places), title, "running", started)

    def _end(self, index: int, ok: bool, record: dict[str, Any]) -> None:
        receipt = self.receipts.get(index) or self._begin(index, None)
        usage = record.get("usage") or {}
        figures: dict[str, Any] = {name: usage.get(name) for name in OF_CELL}
        moment = record.get("t")
        if figures["wall"] is None and receipt.started is not None and moment is not None:
            elapsed = moment - times.parse(receipt.started).timestamp()
            figures["wall"] = round(max(0.0, elapsed), 3)
        self.receipts[index] = replace(receipt, state="done" if ok else "failed", **figures)


def _title(source: str | list[str]) -> str:
    """Return the first line of a cell that is not empty."""
    text = source if isinstance(source, str) else "".join(source)
    return next((line.strip() for line in text.splitlines() if line.strip()), "")[:MAX_TITLE]
