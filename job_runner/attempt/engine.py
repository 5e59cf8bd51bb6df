"""Executes cells and emits their output as records: the loop between a kernel and the journal.

There is no time limit on output, and the engine writes nothing but records. `supervise` handles
what ends a run from outside: a stop, the deadline, the kernel's death.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from ..diagnosis import endings
from ..diagnosis.cell_place import CellPlace
from ..diagnosis.endings import INPUT_REFUSED, End
from ..diagnosis.error_patterns import CellFailure, is_clean_exit
from ..kernel.channels import Message
from ..kernel.client import KernelClient
from ..kernel.messages import MAX_STREAM_CHARS, count_of, lines_of, records_of
from .error_outputs import ErrorOutputs

Record = dict[str, Any]
Cell = dict[str, Any]

_QUIET = 0.3
"""Seconds without output after which a kernel that waits for input has sent all of it."""
_IDLE_TIMEOUT = 5.0
"""Seconds to wait for a cell's `idle` after its reply, before an info request is sent."""


@dataclass
class _PendingCell:
    """A cell that was sent to the kernel and has not ended."""

    place: CellPlace
    idle: asyncio.Future[None]
    reply: asyncio.Future[Record]
    execution_count: int | None = None
    is_running: bool = False
    """The kernel executes the cell. An interrupt before that would be lost."""
    input_requested: bool = False
    """The kernel requested input although that is not allowed, and would wait for ever."""
    errors: ErrorOutputs = field(default_factory=ErrorOutputs)


class Engine:
    """Runs prepared cells in one kernel that is ready.

    `emit` gets every record at once. `classify` returns the end for an exception of a cell.
    """

    def __init__(
        self,
        kernel: KernelClient,
        emit: Callable[[Record], None],
        classify: Callable[[CellFailure], End] = endings.cell_error,
    ) -> None:
        self._kernel = kernel
        self._emit = emit
        self._classify = classify
        self._pending: dict[str, _PendingCell] = {}
        self._current: _PendingCell | None = None
        self._buffer: list[Record] = []
        self._buffered_chars = 0
        self._message_count = 0
        self._is_closing = self._is_interrupted = self._is_over = False
        self._end = endings.SUCCESS
        """How the run ends if all cells run: as papermill does it, by the last that has errors."""

    @property
    def current(self) -> CellPlace | None:
        """Return the place of the cell that runs."""
        return None if self._current is None else self._current.place

    @property
    def has_answered(self) -> bool:
        """Tell whether the kernel has replied to the cell, and only output may still come."""
        return self._current is not None and self._current.reply.done()

    async def run(self, cells: Iterable[tuple[CellPlace, Cell]]) -> End | None:
        """Execute (place, cell) pairs in order; return how that ended. None: it was interrupted.

        Raises an exception of the channels at once, because the cell would wait for ever.
        """
        self._kernel.listen(self)
        work = asyncio.create_task(self._run_cells(cells))
        try:
            ends: set[asyncio.Future[Any]] = {work, self._kernel.error}
            await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
            if self._kernel.error.done():
                self._kernel.error.result()
            return work.result()
        finally:
            work.cancel()
            await asyncio.gather(work, return_exceptions=True)
            self._is_over = True

    async def _run_cells(self, cells: Iterable[tuple[CellPlace, Cell]]) -> End | None:
        for place, cell in cells:
            if self._is_closing:
                return None
            end = await self._run_cell(place, cell)
            if end is not None:
                return end
        return None if self._is_interrupted else self._end

    def emit_notice(self, text: str) -> None:
        """Emit a line of the runner's own as output of the running cell."""
        if self._current is not None:
            output = {"output_type": "stream", "name": "stderr", "text": text}
            self._emit_record({"k": "output", "i": self._current.place.index, "output": output})

    def interrupt(self) -> None:
        """Start no further cell, and interrupt the running cell, so that it can end by itself."""
        self._is_closing = True
        if self._current is not None:
            self._is_interrupted = True
            if self._current.is_running:
                self._kernel.interrupt()

    async def drain(self, quiet: float, limit: float) -> None:
        """Start no further cell; wait, at most `limit` s, until no message came for `quiet` s."""
        self._is_closing = True
        end = asyncio.get_running_loop().time() + limit
        while asyncio.get_running_loop().time() < end:
            count = self._message_count
            await asyncio.sleep(quiet)
            if count == self._message_count:
                return

    async def _run_cell(self, place: CellPlace, cell: Cell) -> End | None:
        """Execute one cell; return how the run ended with it, or None to go on with the next."""
        loop, index = asyncio.get_running_loop(), place.index
        pending = self._current = _PendingCell(place, loop.create_future(), loop.create_future())
        self._emit_record({"k": "cell_start", "i": index})
        self._pending[self._kernel.execute("".join(cell["source"]))] = pending
        ok = False
        try:
            reply = await pending.reply
            if pending.input_requested:
                await self.drain(_QUIET, _IDLE_TIMEOUT)
            else:
                await self._wait_for_idle(pending)
            if self._is_interrupted:
                return None  # however the cell ended: it was not allowed to finish
            end = self._end_of(reply, place, pending.execution_count)
            if end is not None and _is_expected(end, pending) and may_raise(cell):
                end = None
            ok = end is None
            if ok and not may_raise(cell):
                self._end = self._end_of_errors(pending) or self._end
            return end
        finally:
            count = pending.execution_count
            self._emit_record({"k": "cell_end", "i": index, "ok": ok, "execution_count": count})
            self._current = None

    async def _wait_for_idle(self, pending: _PendingCell) -> None:
        """Wait for the cell's `idle`, which follows all of its output.

        A kernel whose own queue overflowed may have dropped it. The `idle` of a later info request
        then shows that the cell's own will not come any more.
        """
        while not pending.idle.done():
            await asyncio.wait({pending.idle}, timeout=_IDLE_TIMEOUT)
            if not pending.idle.done():
                self._pending[self._kernel.request_info()] = pending
        pending.idle.result()

    def on_reply(self, message: Message) -> None:
        """Handle the reply to a cell."""
        pending = self._pending.get(message.parent)
        if pending is not None and not pending.reply.done():
            pending.reply.set_result(message.content)

    def on_published(self, message: Message) -> None:
        """Handle a message of iopub or stdin; late output goes to the cell that caused it."""
        self._message_count += 1
        pending = self._pending.get(message.parent, self._current)
        if pending is None or self._is_over:
            return
        kind, content = message.kind, message.content
        if kind == "status":
            if content.get("execution_state") == "idle" and message.parent in self._pending:
                _set_done(pending.idle)
            return
        if kind == "input_request":
            self._refuse_input(pending)
            return
        self._mark_running(pending)
        count = count_of(content)
        if count is not None:
            pending.execution_count = count
        for record in records_of(kind, content, pending.place.index, message.buffers):
            pending.errors.feed(record)
            if kind == "stream":
                self._buffer_stream(record)
            else:
                self._emit_record(record)

    def _mark_running(self, pending: _PendingCell) -> None:
        """Note that the kernel executes a cell, and interrupt it if that was requested before."""
        if not pending.is_running:
            pending.is_running = True
            if self._is_interrupted and pending is self._current:
                self._kernel.interrupt()

    def _refuse_input(self, pending: _PendingCell) -> None:
        """End a cell whose kernel waits for input, which nobody will type."""
        if not pending.reply.done():
            pending.input_requested = True
            pending.reply.set_result({"status": "error", "ename": INPUT_REFUSED})

    def on_batch_end(self) -> None:
        """Emit the buffered stream output: it does not wait for more, which may never come."""
        if not self._buffer:
            return
        record, *more = self._buffer
        if more:
            text = "".join(record["output"]["text"] for record in self._buffer)
            record["output"]["text"] = text
        self._buffer, self._buffered_chars = [], 0
        self._emit(record)

    def _buffer_stream(self, record: Record) -> None:
        """Buffer stream output, which becomes one record with the output just before it."""
        size = len(record["output"]["text"])
        if self._buffer and not (
            self._buffered_chars + size <= MAX_STREAM_CHARS
            and _is_same_stream(self._buffer[0], record)
        ):
            self.on_batch_end()
        self._buffer.append(record)
        self._buffered_chars += size

    def _emit_record(self, record: Record) -> None:
        self.on_batch_end()
        self._emit(record)

    def _end_of(self, reply: Record, place: CellPlace, count: int | None) -> End | None:
        """Return how the run ends by the kernel's reply; None if it goes on, or all cells ran."""
        payload = reply.get("payload")
        for part in payload if isinstance(payload, list) else ():
            if not isinstance(part, dict) or part.get("source") != "ask_exit":
                continue
            # Who writes `exit(1)` means a failure; to IPython it means that the kernel stays.
            if not place.is_last or part.get("keepkernel"):
                return endings.exited_early(CellFailure("SystemExit", "", place, count))
        if reply.get("status") == "ok":
            return None
        name, value = str(reply.get("ename", "an error")), str(reply.get("evalue", ""))
        if place.is_last and is_clean_exit(name, value):
            return None
        return self._classify(CellFailure(name, value, place, count, tuple(lines_of(reply))))

    def _end_of_errors(self, pending: _PendingCell) -> End | None:
        """Return how the run will end by a cell's error outputs; None if it has none."""
        error = pending.errors.first
        if error is None:
            return None
        name, value, lines = error["ename"], error["evalue"], tuple(error["traceback"])
        place, count = pending.place, pending.execution_count
        return self._classify(CellFailure(name, value, place, count, lines, ends_run=False))


def _set_done(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)


def may_raise(cell: Cell) -> bool:
    """Tell whether the run goes on after an exception in a cell."""
    return "raises-exception" in cell["metadata"].get("tags", ())


def _is_expected(end: End, pending: _PendingCell) -> bool:
    """Tell whether a cell that may raise expects this end; it expects no exit and no prompt."""
    return end.reason != "ExitedEarly" and not pending.input_requested


def _is_same_stream(record: Record, following: Record) -> bool:
    return bool(
        record["i"] == following["i"] and record["output"]["name"] == following["output"]["name"]
    )
