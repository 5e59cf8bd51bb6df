"""Executes cells and tells what they say: the loop between a kernel and the journal.

There is no time limit on output, and nothing is written but records. What ends a run from outside
(a stop, a deadline, the kernel's death) is the business of `supervise`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from ..diagnosis import endings
from ..diagnosis.endings import INPUT_REFUSED, End
from ..diagnosis.error_patterns import CellFailure
from ..kernel.channels import Message
from ..kernel.client import KernelClient
from ..kernel.messages import MAX_STREAM_CHARS, count_of, lines_of, records_of

Record = dict[str, Any]
Cell = dict[str, Any]

_QUIET = 0.3
"""Seconds without output after which none is on its way from a kernel that waits."""
_PATIENCE = 5.0
"""Seconds between a cell's reply and the question where its `idle` is."""


@dataclass
class _PendingCell:
    """A cell that was sent."""

    index: int
    idle: asyncio.Future[None]
    reply: asyncio.Future[Record]
    execution_count: int | None = None
    begun: bool = False
    """The kernel executes it: until then an interrupt would be lost."""
    asked: bool = False
    """The kernel asks for input, although it was told not to, and waits for ever."""


class Engine:
    """Runs prepared cells in one kernel that is ready; `emit` takes records as they come.

    `explain` makes an end of an exception that a cell raised.
    """

    def __init__(
        self,
        kernel: KernelClient,
        emit: Callable[[Record], None],
        explain: Callable[[CellFailure], End] = endings.cell_error,
    ) -> None:
        self._kernel = kernel
        self._emit = emit
        self._explain = explain
        self._turns: dict[str, _PendingCell] = {}
        self._turn: _PendingCell | None = None
        self._held: list[Record] = []
        self._held_size = 0
        self._heard = 0
        self._closing = self._interrupted = self._over = False

    @property
    def current(self) -> int | None:
        """Return the index of the cell that runs."""
        return None if self._turn is None else self._turn.index

    @property
    def has_answered(self) -> bool:
        """Tell whether the kernel is through with the cell, and only output may be on its way."""
        return self._turn is not None and self._turn.reply.done()

    async def run(self, cells: Iterable[tuple[int, Cell]]) -> End | None:
        """Execute (index, cell) pairs in order; return how it ended. None: `drain` broke it off.

        Raises what listening to the kernel raised, at once: a cell would wait for ever.
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
            self._over = True

    async def _run_cells(self, cells: Iterable[tuple[int, Cell]]) -> End | None:
        for index, cell in cells:
            if self._closing:
                return None
            end = await self._run_cell(index, cell)
            if end is not None:
                return end
        return None if self._interrupted else endings.SUCCESS

    def tell(self, text: str) -> None:
        """Show a line that is not the kernel's in the cell that runs."""
        if self._turn is not None:
            output = {"output_type": "stream", "name": "stderr", "text": text}
            self._say({"k": "output", "i": self._turn.index, "output": output})

    def interrupt(self) -> None:
        """Start no further cell; interrupt the one that runs, so that it has the last word."""
        self._closing = True
        if self._turn is not None:
            self._interrupted = True
            if self._turn.begun:
                self._kernel.interrupt()

    async def drain(self, quiet: float, limit: float) -> None:
        """Start no further cell; take what still comes, until nothing came for `quiet` seconds."""
        self._closing = True
        end = asyncio.get_running_loop().time() + limit
        while asyncio.get_running_loop().time() < end:
            heard = self._heard
            await asyncio.sleep(quiet)
            if heard == self._heard:
                return

    async def _run_cell(self, index: int, cell: Cell) -> End | None:
        """Execute one cell. None: go on with the next."""
        loop = asyncio.get_running_loop()
        turn = self._turn = _PendingCell(index, loop.create_future(), loop.create_future())
        self._say({"k": "cell_start", "i": index})
        self._turns[self._kernel.execute("".join(cell["source"]))] = turn
        ok = False
        try:
            reply = await turn.reply
            if turn.asked:
                await self.drain(_QUIET, _PATIENCE)
            else:
                await self._all_output(turn)
            if self._interrupted:
                return None  # whatever it made of it: it did not get to do what it was to do
            end = self._end_of(reply, index, turn.execution_count)
            if end is not None and _goes_on(end, turn) and _may_raise(cell):
                end = None
            ok = end is None
            return end
        finally:
            count = turn.execution_count
            self._say({"k": "cell_end", "i": index, "ok": ok, "execution_count": count})
            self._turn = None

    async def _all_output(self, turn: _PendingCell) -> None:
        """Wait for the cell's `idle`, which follows all of its output.

        A kernel that could not keep its own queue may have dropped it: the `idle` of a later
        question then tells that it will not come any more.
        """
        while not turn.idle.done():
            await asyncio.wait({turn.idle}, timeout=_PATIENCE)
            if not turn.idle.done():
                self._turns[self._kernel.request_info()] = turn
        turn.idle.result()

    def on_reply(self, message: Message) -> None:
        """Take the answer to a cell."""
        turn = self._turns.get(message.parent)
        if turn is not None and not turn.reply.done():
            turn.reply.set_result(message.content)

    def on_published(self, message: Message) -> None:
        """Take one published message: output goes to the cell that caused it, however late."""
        self._heard += 1
        turn = self._turns.get(message.parent, self._turn)
        if turn is None or self._over:
            return
        kind, content = message.kind, message.content
        if kind == "status":
            if content.get("execution_state") == "idle" and message.parent in self._turns:
                _settle(turn.idle)
            return
        if kind == "input_request":
            self._refuse(turn)
            return
        self._begin(turn)
        count = count_of(content)
        if count is not None:
            turn.execution_count = count
        for record in records_of(kind, content, turn.index, message.buffers):
            if kind == "stream":
                self._hold(record)
            else:
                self._say(record)

    def _begin(self, turn: _PendingCell) -> None:
        """Note that the kernel is at a cell, and interrupt it if that was to be done."""
        if not turn.begun:
            turn.begun = True
            if self._interrupted and turn is self._turn:
                self._kernel.interrupt()

    def _refuse(self, turn: _PendingCell) -> None:
        """End a cell whose kernel waits for an answer that nobody will give."""
        if not turn.reply.done():
            turn.asked = True
            turn.reply.set_result({"status": "error", "ename": INPUT_REFUSED})

    def on_batch_end(self) -> None:
        """Tell what is held: nothing waits for what may never come."""
        if not self._held:
            return
        first, *more = self._held
        if more:
            text = "".join(record["output"]["text"] for record in self._held)
            first["output"]["text"] = text
        self._held, self._held_size = [], 0
        self._emit(first)

    def _hold(self, record: Record) -> None:
        """Take output that may be one record with what came just before it."""
        size = len(record["output"]["text"])
        if self._held and not (
            self._held_size + size <= MAX_STREAM_CHARS and _is_same_stream(self._held[0], record)
        ):
            self.on_batch_end()
        self._held.append(record)
        self._held_size += size

    def _say(self, record: Record) -> None:
        self.on_batch_end()
        self._emit(record)

    def _end_of(self, reply: Record, index: int, count: int | None) -> End | None:
        """Tell from the kernel's answer whether the run goes on."""
        payload = reply.get("payload")
        if isinstance(payload, list) and any(
            isinstance(p, dict) and p.get("source") == "ask_exit" for p in payload
        ):
            return endings.exited_early(CellFailure("SystemExit", "", index, count))
        if reply.get("status") == "ok":
            return None
        name, value = str(reply.get("ename", "an error")), str(reply.get("evalue", ""))
        return self._explain(CellFailure(name, value, index, count, tuple(lines_of(reply))))


def _settle(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)


def _goes_on(end: End, turn: _PendingCell) -> bool:
    """Tell whether a kernel can run more cells after one that ended like this."""
    return end.reason != "ExitedEarly" and not turn.asked


def _is_same_stream(one: Record, other: Record) -> bool:
    return bool(one["i"] == other["i"] and one["output"]["name"] == other["output"]["name"])


def _may_raise(cell: Cell) -> bool:
    return "raises-exception" in cell["metadata"].get("tags", ())
