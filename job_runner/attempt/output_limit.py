"""Limits the output of a run: output over the limit is dropped and counted, and the run goes on.

Without a limit one line in an endless loop fills the disk that all jobs share. The middle is
dropped: the beginning is in the journal already, and the end of each cell is kept because results
and errors are there.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterable
from typing import Any

from ..protocol.units import format_bytes

Record = dict[str, Any]

_COUNTED = frozenset(["output", "clear", "update_display", "widget", "widget_close"])
_CELL_BOUNDARIES = frozenset(["cell_start", "cell_end", "end"])
_RECORD_OVERHEAD = 64
"""Bytes of a record beside what is shown."""
_LINE_OVERHEAD = 12
"""Bytes of a line in the result beside its text: indentation, quotes, comma, its end."""
_ALLOWANCE = 64 << 10
"""Bytes that each cell may still show at its beginning when the run is over the cap ..."""
_MAX_TAIL_BYTES = 64 << 10
"""... and at its end."""
_MAX_ERROR_BYTES = 1 << 20
"""Bytes of tracebacks in a cell that are kept in any case, with what was printed before them."""


class OutputLimiter:
    """Passes on the records of a run until its output is over `limit` bytes; None: all of them."""

    def __init__(self, limit: int | None) -> None:
        self.limit = limit
        self.dropped = 0
        """Bytes of output that were dropped so far, without those in the tail of the cell."""
        self._used = 0
        self._reached = False
        self._allowance = 0
        self._errors = _MAX_ERROR_BYTES
        self._tail: deque[tuple[Record, int]] = deque()
        self._captures: dict[str, Record] = {}
        """Of widgets that capture what is printed: whether they last did, in what was dropped."""
        self._tail_size = 0
        self._reported = 0
        """Of `dropped`, the bytes that records have told of."""
        self._outputs = 0
        self._cell = 0

    def filter(self, record: Record) -> Iterable[Record]:
        """Return what to journal for a record, in order: itself, nothing, or what tells of it."""
        if self.limit is None:
            return (record,)
        if record["k"] in _COUNTED:
            return self._apply_limit(record, self.limit)
        tail = self._flush_tail() if record["k"] in _CELL_BOUNDARIES else ()
        if record["k"] == "cell_start":
            self._cell = record["i"]
            self._allowance, self._errors = _ALLOWANCE if self._reached else 0, _MAX_ERROR_BYTES
        return (*tail, record)

    def count_written(self, record: Record, size: int) -> None:
        """Count a record that took `size` bytes of the journal, and more in the result.

        There each line of a text has a line of its own: else 20 MiB of newlines would take 240.
        """
        if record["k"] in _COUNTED and not self._reached:
            lines = sum(text.count("\n") for text in _texts(record) if isinstance(text, str))
            self._used += size + lines * _LINE_OVERHEAD

    def summary(self) -> str:
        """Return the sentence for the job's message; empty if nothing was dropped."""
        if self.limit is None or not self.dropped:
            return ""
        return (
            f"{format_bytes(self.dropped)} of its output was dropped, over the cap of "
            f"{format_bytes(self.limit)}: print less, write to a file, or raise "
            "JUPYTER_TO_JOB_OUTPUT_CAP."
        )

    def _apply_limit(self, record: Record, limit: int) -> Iterable[Record]:
        size = _size(record)
        if not self._reached and self._used + size <= limit:
            return (record,)
        notice = [] if self._reached else [self._marker(record.get("i", self._cell))]
        self._reached = True
        self._cell = record.get("i", self._cell)
        if record.get("output", {}).get("output_type") == "error" and size <= self._errors:
            self._errors -= size + self._tail_size
            return (*notice, *self._flush_tail(), record)
        if size <= self._allowance:
            self._allowance -= size
            return (*notice, record)
        self._allowance = 0  # a later, smaller record would be in the wrong place
        self._drop(record, size)
        return notice

    def _drop(self, record: Record, size: int) -> None:
        """Keep a record for as long as it is among the last ones of its cell."""
        self._outputs += 1
        end, end_size = _end_of(record, size)
        self.dropped += size - end_size
        self._tail.append((end, end_size))
        self._tail_size += end_size
        # A record too large for the tail empties it: what came before is not the end any more.
        while self._tail_size > _MAX_TAIL_BYTES:
            dropped, gone_size = self._tail.popleft()
            self._tail_size -= gone_size
            self.dropped += gone_size
            self._keep_capture(dropped)

    def _keep_capture(self, record: Record) -> None:
        """Keep of a record that is lost what decides where later output is shown."""
        state = record.get("state", {})
        if "msg_id" in state:
            capture = {"k": record["k"], "i": record.get("i", self._cell), "id": record["id"]}
            self._captures[record["id"]] = {**capture, "state": {"msg_id": state["msg_id"]}}

    def _flush_tail(self) -> list[Record]:
        """Return what tells how much of a cell was dropped, with the end of its output."""
        if not self._outputs:
            return []
        lost = self.dropped - self._reported
        marker = self._marker(self._cell, bytes=lost, outputs=self._outputs)
        records = [marker] if lost else []
        records += self._captures.values()
        records += [record for record, _ in self._tail]
        self._captures.clear()
        self._tail.clear()
        self._reported, self._outputs, self._tail_size = self.dropped, 0, 0
        return records

    def _marker(self, cell: int, **counts: int) -> Record:
        return {"k": "dropped", "i": cell, "limit": self.limit, **counts}


def _size(record: Record) -> int:
    """Return how many bytes a record shows, near enough."""
    if record["k"] == "widget":
        return _RECORD_OVERHEAD + len(
            json.dumps([record["state"], record.get("buffers")], default=repr)
        )
    return _RECORD_OVERHEAD + sum(map(_length, _texts(record)))


def _texts(record: Record) -> list[Any]:
    """Return what a record shows: texts, and JSON of MIME types that are JSON."""
    output = record.get("output", record)
    values = [output.get("text"), output.get("evalue"), *(output.get("traceback") or ())]
    values += (output.get("data") or {}).values()
    return values


def _length(value: Any) -> int:
    if isinstance(value, str):
        return len(value) if value.isascii() else len(value.encode(errors="replace"))
    return 0 if value is None else len(json.dumps(value, default=repr))


def _end_of(record: Record, size: int) -> tuple[Record, int]:
    """Return as much of a record as the end of a cell may hold, if it is a stream; and its size."""
    output = record.get("output", {})
    if size <= _MAX_TAIL_BYTES or output.get("output_type") != "stream":
        return record, size
    # The longest characters have four bytes.
    text = output["text"][-(_MAX_TAIL_BYTES // 4) :]
    end = {**record, "output": {**output, "text": text[text.find("\n") + 1 :]}}
    return end, _size(end)
