"""Executes cells and journals what they say: the loop between a kernel and the journal.

Nothing else is written during a run. Whatever ends it (a stop, a deadline, the kernel's death) is
an event that this loop waits for beside the kernel's messages.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from datetime import datetime, timezone
from queue import Empty
from typing import Any

from . import reasons
from .kernel import Kernel
from .reasons import End

Record = dict[str, Any]
DRAIN = 0.3
"""Seconds that output already on its way gets after an interruption (ipykernel flushes at 0.2)."""

_OUTPUTS = {"stream", "display_data", "execute_result", "error"}


class Engine:
    """Runs prepared cells in one kernel. `emit` takes records as they come.

    `interrupted` resolves, whenever it likes, to how the run ends then (a stop, a deadline).
    """

    def __init__(
        self,
        kernel: Kernel,
        emit: Callable[[Record], None],
        interrupted: Callable[[int], asyncio.Future[End]],
        out_of_memory: Callable[[], bool],
    ) -> None:
        self._kernel = kernel
        self._emit = emit
        self._interrupted = interrupted
        self._out_of_memory = out_of_memory
        self._execution_count: int | None = None

    async def run(self, cells: list[tuple[int, Record]]) -> End:
        """Execute (index, cell) pairs in order; return how it ended."""
        for index, cell in cells:
            end = await self._run_cell(index, cell)
            if end is not None:
                return end
        return reasons.SUCCESS

    async def _run_cell(self, index: int, cell: Record) -> End | None:
        """Execute one cell beside everything that may end it. None: go on with the next."""
        began = time.monotonic()
        self._emit({"k": "cell_start", "i": index, "time": _now()})
        work = asyncio.create_task(self._execute(index, "".join(cell["source"])))
        died = asyncio.create_task(self._kernel.died.wait())
        stop = self._interrupted(index)
        await asyncio.wait({work, died, stop}, return_when=asyncio.FIRST_COMPLETED)
        if not work.done():
            await asyncio.wait({work}, timeout=DRAIN)
        if work.done():
            end = work.result()
        else:
            work.cancel()
            end = stop.result() if stop.done() else await self._death(index)
        died.cancel()
        tolerated = "raises-exception" in cell["metadata"].get("tags", ())
        if end is not None and end.reason == "CellError" and tolerated:
            end = None
        self._emit(
            {
                "k": "cell_end",
                "i": index,
                "time": _now(),
                "seconds": round(time.monotonic() - began, 6),
                "ok": end is None,
                "execution_count": self._execution_count,
            }
        )
        return end

    async def _death(self, index: int) -> End:
        status = await self._kernel.exit_status()
        memory = status == -9 and self._out_of_memory()
        return reasons.kernel_died(status, index, out_of_memory=memory)

    async def _execute(self, index: int, source: str) -> End | None:
        """Send one cell and journal its output until the kernel is idle again and has answered."""
        client = self._kernel.client
        self._execution_count = None
        message_id = client.execute(source, allow_stdin=False, stop_on_error=False)
        reply = asyncio.create_task(self._reply(message_id))
        try:
            while True:
                message = await client.get_iopub_msg()
                if message["parent_header"].get("msg_id") != message_id:
                    continue
                kind, content = message["msg_type"], message["content"]
                if kind == "status" and content["execution_state"] == "idle":
                    return _end_of(await reply, index, self._execution_count)
                self._journal(index, kind, content)
        finally:
            reply.cancel()

    async def _reply(self, message_id: str) -> Record:
        while True:
            try:
                message: Record = await self._kernel.client.get_shell_msg(timeout=None)
            except Empty:
                continue
            if message["parent_header"].get("msg_id") == message_id:
                content: Record = message["content"]
                return content

    def _journal(self, index: int, kind: str, content: Record) -> None:
        """Turn one message of the kernel into records."""
        if kind == "execute_input":
            self._execution_count = content["execution_count"]
        elif kind in _OUTPUTS:
            self._emit({"k": "output", "i": index, "output": _output(kind, content)})
        elif kind == "clear_output":
            self._emit({"k": "clear", "i": index, "wait": content.get("wait", False)})
        elif kind == "update_display_data":
            display = content.get("transient", {}).get("display_id")
            update = {"data": content["data"], "metadata": content["metadata"]}
            self._emit({"k": "update_display", "display_id": display, **update})


def _output(kind: str, content: Record) -> Record:
    """Return the nbformat output of a message; `transient` stays, for updates to find it."""
    fields = {
        "stream": ("name", "text"),
        "display_data": ("data", "metadata", "transient"),
        "execute_result": ("data", "metadata", "execution_count", "transient"),
        "error": ("ename", "evalue", "traceback"),
    }[kind]
    return {"output_type": kind, **{f: content[f] for f in fields if f in content}}


def _end_of(reply: Record, index: int, count: int | None) -> End | None:
    """Tell from the kernel's answer whether the run goes on."""
    if any(p.get("source") == "ask_exit" for p in reply.get("payload", ())):
        return reasons.cell_error("SystemExit", "", index, count)
    if reply["status"] == "ok":
        return None
    return reasons.cell_error(reply.get("ename", "an error"), reply.get("evalue", ""), index, count)


def _now() -> str:
    return datetime.now(timezone.utc).isoformat()
