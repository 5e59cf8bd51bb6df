"""Executes cells and tells what they say: the loop between a kernel and the journal.

There is no time limit on output, and nothing is written but records. What ends a run from outside
(a stop, a deadline, the kernel's death) is the business of `supervise`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from . import reasons
from .kernel import Kernel, Message
from .messages import record_of
from .reasons import End

Record = dict[str, Any]
Cell = dict[str, Any]

_BREATH = 50
"""Messages after which the loop turns to signals and timers: a flood never keeps it from them."""
_PATIENCE = 5.0
"""Seconds between a cell's reply and the question where its `idle` is."""


@dataclass
class _Turn:
    """A cell that was sent."""

    index: int
    idle: asyncio.Future[None]
    reply: asyncio.Future[Record]
    execution_count: int | None = None


class Engine:
    """Runs prepared cells in one kernel that is ready; `emit` takes records as they come."""

    def __init__(self, kernel: Kernel, emit: Callable[[Record], None]) -> None:
        self._kernel = kernel
        self._emit = emit
        self._turns: dict[str, _Turn] = {}
        self._turn: _Turn | None = None
        self._heard = 0
        self._closing = False

    @property
    def current(self) -> int | None:
        """Return the index of the cell that runs."""
        return None if self._turn is None else self._turn.index

    async def run(self, cells: Iterable[tuple[int, Cell]]) -> End | None:
        """Execute (index, cell) pairs in order; return how it ended. None: `drain` broke it off.

        Raises what listening to the kernel raised, at once: a cell would wait for ever.
        """
        work = asyncio.create_task(self._run_cells(cells))
        tasks = {work, *(asyncio.create_task(pump()) for pump in (self._iopub, self._shell))}
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for broken in done - {work}:
                broken.result()
            return work.result()
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _run_cells(self, cells: Iterable[tuple[int, Cell]]) -> End | None:
        for index, cell in cells:
            if self._closing:
                return None
            end = await self._run_cell(index, cell)
            if end is not None:
                return end
        return reasons.SUCCESS

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
        turn = self._turn = _Turn(index, loop.create_future(), loop.create_future())
        self._emit({"k": "cell_start", "i": index})
        self._turns[self._kernel.execute("".join(cell["source"]))] = turn
        ok = False
        try:
            reply = await turn.reply
            await self._all_output(turn)
            end = _end_of(reply, index, turn.execution_count)
            if end is not None and end.reason == "CellError" and _may_raise(cell):
                end = None
            ok = end is None
            return end
        finally:
            count = turn.execution_count
            self._emit({"k": "cell_end", "i": index, "ok": ok, "execution_count": count})
            self._turn = None

    async def _all_output(self, turn: _Turn) -> None:
        """Wait for the cell's `idle`, which follows all of its output.

        A kernel that could not keep its own queue may have dropped it: the `idle` of a later
        question then tells that it will not come any more.
        """
        while not turn.idle.done():
            await asyncio.wait({turn.idle}, timeout=_PATIENCE)
            if not turn.idle.done():
                self._turns[self._kernel.ask()] = turn
        turn.idle.result()

    async def _iopub(self) -> None:
        while True:
            self._hear(await self._kernel.iopub())
            self._heard += 1
            if self._heard % _BREATH == 0:
                await asyncio.sleep(0)

    async def _shell(self) -> None:
        while True:
            reply = await self._kernel.shell()
            turn = self._turns.get(reply["parent_header"].get("msg_id", ""))
            if turn is not None and not turn.reply.done():
                turn.reply.set_result(reply["content"])

    def _hear(self, message: Message) -> None:
        """Take one published message: output goes to the cell that caused it, however late."""
        parent = message["parent_header"].get("msg_id", "")
        kind, content = message["msg_type"], message["content"]
        turn = self._turns.get(parent, self._turn)
        if turn is None:
            return
        if kind == "status":
            if content.get("execution_state") == "idle" and parent in self._turns:
                _settle(turn.idle)
            return
        if content.get("execution_count") is not None:
            turn.execution_count = content["execution_count"]
        record = record_of(kind, content, turn.index, message.get("buffers", ()))
        if record is not None:
            self._emit(record)


def _settle(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)


def _may_raise(cell: Cell) -> bool:
    return "raises-exception" in cell["metadata"].get("tags", ())


def _end_of(reply: Record, index: int, count: int | None) -> End | None:
    """Tell from the kernel's answer whether the run goes on."""
    payload = reply.get("payload") or ()
    if any(isinstance(p, dict) and p.get("source") == "ask_exit" for p in payload):
        return reasons.cell_error("SystemExit", "", index, count)
    if reply.get("status") == "ok":
        return None
    name, value = reply.get("ename", "an error"), reply.get("evalue", "")
    return reasons.cell_error(str(name), str(value), index, count)
