"""Adapts the engine to papermill's NotebookExecutionManager: records become its callbacks."""

from __future__ import annotations

import asyncio
import contextvars
import os
import time
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import nbformat
from nbclient.exceptions import CellTimeoutError, DeadKernelError
from papermill.exceptions import PapermillExecutionError

from ..attempt.engine import Engine, may_raise
from ..attempt.supervise import supervise, wait_until_ready
from ..diagnosis.diagnosis import Diagnosis
from ..diagnosis.endings import End, RunFailed
from ..diagnosis.exit_codes import Exit
from ..kernel.client import KernelClient
from ..kernel.process import KernelProcess
from ..notebook.parameterize import code_cells
from ..protocol.journal.validation import validated
from ..protocol.progress import places_by_tag
from ..protocol.result.fold import NotebookFold
from ..protocol.result.outputs import MemoryOutputStore
from ..resources.monitor import Monitor
from ..resources.usage import Usage
from .options import Options


def execute(nb_man: Any, kernel_name: str, options: Options) -> None:
    """Execute all cells. papermill itself finds the errors of cells in the outputs.

    For every other end this raises what papermill's own engine would: nbclient's errors for a dead
    kernel and for a cell that took too long, RuntimeError for a kernel that did not start.
    It raises papermill's error for an exit after which papermill would go on.
    """
    process = KernelProcess(kernel_name, mark=f"papermill-{id(nb_man)}")
    try:
        process.start(Path.cwd(), {})
        end = _run(_execute(nb_man, process, options), process)
    except RunFailed as failure:
        raise RuntimeError(failure.end.message) from failure
    finally:
        process.close()
    if end.exit_code == Exit.KERNEL_DIED:
        raise DeadKernelError(end.message)
    if end.exit_code == Exit.TERMINATED:
        raise CellTimeoutError(f"A cell took longer than {options.execution_timeout} s.")
    if end.reason == "ExitedEarly":
        _raise_for_excused_exit(nb_man.nb.cells[end.cell], end)


def _raise_for_excused_exit(cell: Any, end: End) -> None:
    """Raise an error if papermill would go on after a cell's exit, and count it as success.

    Later cells did not run. Other exits are left to papermill: it ends at an untagged one as well,
    and it finds every one with another status.
    """
    if not may_raise(cell):
        return
    for output in cell.outputs:
        if (output.output_type, output.get("ename")) != ("error", "SystemExit"):
            continue
        if output.evalue in ("", "0"):
            error = ("SystemExit", output.evalue, [end.message])
            raise PapermillExecutionError(end.cell, cell.execution_count, cell.source, *error)


def _run(execution: Coroutine[Any, Any, End], process: KernelProcess) -> End:
    """Run an event loop; in a thread of its own where a loop runs already, as in a notebook."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(execution)
    context = contextvars.copy_context()  # what is printed belongs to the cell that calls
    with ThreadPoolExecutor(1) as pool:
        future = pool.submit(context.run, asyncio.run, execution)
        try:
            return future.result()
        except BaseException:
            process.kill()  # after an interrupt: the thread ends with its kernel
            raise


class RecordAdapter:
    """Writes the engine's records into papermill's notebook."""

    def __init__(self, nb_man: Any, options: Options) -> None:
        self._nb_man = nb_man
        self._options = options
        self._cells = nb_man.nb.cells
        # papermill may save at any moment, and can write nothing but nodes.
        self._fold = NotebookFold.in_place(nb_man.nb, MemoryOutputStore(nbformat.from_dict))
        self._next_index = 0
        self._has_failed_cell = False
        self._timer: asyncio.TimerHandle | None = None
        self.timeout: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def on_record(self, record: dict[str, Any]) -> None:
        """Fold a record, and report cells that start and end to papermill's manager."""
        index = record.get("i")
        if record["k"] == "cell_start":
            self._start(record["i"])
        elif record["k"] == "cell_end":
            self._end(self._cells[index], index, record)
        else:
            if "output" in record:
                self._options.copy_output(record["output"])
            self._fold.feed(validated({"t": time.time(), **record}))
            self._nb_man.autosave_cell()

    def _skip_to(self, index: int) -> None:
        """Have papermill complete the cells before `index` that are not sent to a kernel."""
        for skipped in range(self._next_index, index):
            self._nb_man.cell_start(self._cells[skipped], skipped)
            self._nb_man.cell_complete(self._cells[skipped], skipped)
        self._next_index = index + 1

    def complete(self) -> None:
        """Have papermill complete the last cells, unless one before them ended the run."""
        if not self._has_failed_cell:
            self._skip_to(len(self._cells))

    def _start(self, index: int) -> None:
        self._skip_to(index)
        self._nb_man.cell_start(self._cells[index], index)
        limit = self._options.execution_timeout
        if limit is not None and limit > 0:  # nbclient has no limit for zero and below either
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(limit, self.timeout.set_result, None)

    def _end(self, cell: Any, index: int | None, record: dict[str, Any]) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._fold.result()
        cell.execution_count = record["execution_count"]
        if not record["ok"]:
            self._has_failed_cell = True
            self._nb_man.cell_exception(cell, index)
        self._nb_man.cell_complete(cell, index)


async def _execute(nb_man: Any, process: KernelProcess, options: Options) -> End:
    notebook = nb_man.nb
    adapter = RecordAdapter(nb_man, options)
    kernel = KernelClient(process)
    is_graceful = False
    try:
        with Monitor(kernel.process.pid, None, Usage(), os.environ) as monitor:
            diagnosis = Diagnosis(monitor.memory_status)
            started = wait_until_ready(kernel, adapter.timeout, diagnosis)
            await asyncio.wait_for(started, options.start_timeout)
            notebook.metadata.language_info = nbformat.from_dict(kernel.language_info)
            places = code_cells(notebook, places_by_tag(notebook.cells))
            end = await supervise(
                Engine(kernel, adapter.on_record, diagnosis.cell_failed),
                kernel,
                [(place, notebook.cells[place.index]) for place in places],
                stop=adapter.timeout,
                max_runtime=None,
                monitor=monitor,
                diagnosis=diagnosis,
            )
        is_graceful = end.exit_code in (Exit.SUCCEEDED, Exit.CELL)
        if is_graceful:
            adapter.complete()
        return end
    except asyncio.TimeoutError as error:
        message = f"The kernel {process.name!r} did not answer within {options.start_timeout} s."
        raise RuntimeError(message) from error
    finally:
        await kernel.shutdown(graceful=is_graceful)
