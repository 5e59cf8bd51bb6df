"""The part of an attempt that needs a running kernel: prepare the notebook, execute, shut down.

Imported once the kernel's process was started: importing this and papermill takes about as long as
a kernel takes to start.
"""

from __future__ import annotations

import asyncio
import os
from contextlib import suppress
from typing import Any

from .. import signals
from ..diagnosis import endings
from ..diagnosis.cell_place import CellPlace
from ..diagnosis.diagnosis import Diagnosis
from ..diagnosis.endings import End
from ..diagnosis.exit_codes import Exit
from ..kernel.client import KernelClient
from ..kernel.process import KernelProcess
from ..notebook.metadata import provenance, recorded_paths
from ..notebook.parameterize import code_cells, prepare_notebook
from ..protocol import layout, liveness
from ..protocol.result.notebook import METADATA_KEY
from ..resources.monitor import Monitor
from .attempt import Attempt
from .engine import Engine
from .reaper import reaped_orphans
from .supervise import supervise, wait_until_ready

Cells = list[tuple[CellPlace, dict[str, Any]]]

_SYNC_INTERVAL = 1.0
"""Seconds between acknowledgements: what a lost host may cost."""
_KERNEL_KILLED = (
    "Its kernel did not exit after the last cell, and was killed: what it still wrote may be "
    "missing."
)
_RECEIPT_INTERVAL = 10.0
"""Seconds until the next receipt in the journal, or a tenth of the run so far if that is more."""


class Execution:
    """Executes an attempt's notebook in a kernel whose process was started.

    Leaving its context shuts the kernel down: gracefully, if the attempt's end was recorded and
    allows it. The result is written meanwhile.
    """

    def __init__(self, attempt: Attempt, process: KernelProcess) -> None:
        self._attempt = attempt
        self._process = process
        self._kernel: KernelClient | None = None
        self._loop = asyncio.new_event_loop()

    def __enter__(self) -> Execution:
        return self

    def run(self) -> End:
        """Execute all cells; return how that ended. Raises RunFailed, OSError."""
        return self._loop.run_until_complete(self._run())

    def __exit__(self, *_: object) -> None:
        try:
            if self._kernel is not None:
                self._loop.run_until_complete(self._shut_down(self._kernel))
            self._loop.run_until_complete(self._loop.shutdown_default_executor())
        finally:
            self._loop.close()

    async def _run(self) -> End:
        stop = _stop_future(self._attempt.claim)
        self._kernel = kernel = KernelClient(self._process)
        cells = prepare_attempt(self._attempt, self._process)
        with reaped_orphans(spare=self._process.pid):
            return await _execute(self._attempt, kernel, cells, stop)

    async def _shut_down(self, kernel: KernelClient) -> None:
        end = self._attempt.end
        has_exited = await kernel.shutdown(
            graceful=end is not None and end.exit_code in (Exit.SUCCEEDED, Exit.CELL),
            while_waiting=None if end is None else self._attempt.write_result,
        )
        # Other kernels that are made with ipykernel hang at times, and lose nothing by it.
        if not has_exited and self._process.is_ipykernel:
            self._attempt.notes.append(_KERNEL_KILLED)


def prepare_attempt(attempt: Attempt, process: KernelProcess) -> Cells:
    """Prepare the attempt's notebook and journal it; return the cells that are executed.

    Raises RunFailed, OSError.
    """
    request = attempt.request
    notebook, places = prepare_notebook(
        attempt.job_dir / layout.SNAPSHOT,
        request.get("parameters") or {},
        process.name,
        language=process.language,
        names=recorded_paths(request),
    )
    if came_from := provenance(request):
        notebook["metadata"][METADATA_KEY] = came_from
    executed = code_cells(notebook, places)
    record = {"k": "prepared", "cells_total": len(executed), "places": list(places)}
    attempt.emit({**record, "notebook": notebook})
    return [(place, notebook["cells"][place.index]) for place in executed]


async def _execute(
    attempt: Attempt, kernel: KernelClient, cells: Cells, stop: asyncio.Future[None]
) -> End:
    """Execute the cells of a notebook whose kernel is on its way, as long as it can be recorded."""
    request = attempt.request
    environ = {**os.environ, **attempt.variables}
    with Monitor(
        kernel.process.pid, request.get("memory_limit"), attempt.usage, environ
    ) as monitor:
        work = asyncio.create_task(_execute_cells(attempt, kernel, cells, stop, monitor, environ))
        tasks: set[asyncio.Task[Any]] = {work, asyncio.create_task(_sync_journal(attempt))}
        try:
            completed, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for failed in completed - {work}:
                failed.result()  # raises: the journal cannot be written any more
            return work.result()
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)


async def _execute_cells(
    attempt: Attempt,
    kernel: KernelClient,
    cells: Cells,
    stop: asyncio.Future[None],
    monitor: Monitor,
    environ: dict[str, str],
) -> End:
    diagnosis = Diagnosis(monitor.memory_status, attempt.request, environ)
    if not await wait_until_ready(kernel, stop, diagnosis):
        return endings.terminated(None)
    attempt.emit({"k": "kernel", "pid": kernel.process.pid, "language_info": kernel.language_info})

    def emit(record: dict[str, Any]) -> None:
        diagnosis.on_record(record)
        attempt.emit(record)

    return await supervise(
        Engine(kernel, emit, diagnosis.cell_failed),
        kernel,
        cells,
        stop=stop,
        max_runtime=attempt.request.get("max_runtime"),
        monitor=monitor,
        diagnosis=diagnosis,
    )


def _stop_future(claim: liveness.Claim) -> asyncio.Future[None]:
    """Return a future that is done once we were told to stop."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[None] = loop.create_future()

    def set_result() -> None:
        if not future.done():
            future.set_result(None)

    def on_stop() -> None:
        # Should nothing more be written, this shows that the run lived when it was cancelled.
        claim.write_heartbeat()
        # The signal may come when the loop is closed and the result is being written.
        with suppress(RuntimeError):
            loop.call_soon_threadsafe(set_result)

    signals.on_stop(on_stop)
    return future


async def _sync_journal(attempt: Attempt) -> None:
    """Sync the journal once a second, off the loop, because fdatasync may take long.

    Emit a usage record now and then, so that a run that is killed has one, too. Raises OSError.
    """
    next_receipt = 0.0
    while True:
        await asyncio.sleep(_SYNC_INTERVAL)
        elapsed = attempt.elapsed
        if elapsed >= next_receipt and attempt.usage.memory.count > 1:
            attempt.emit({"k": "usage", **attempt.usage.to_json()})
            next_receipt = elapsed + max(_RECEIPT_INTERVAL, elapsed / 10)
        await asyncio.to_thread(_sync, attempt)


def _sync(attempt: Attempt) -> None:
    attempt.directory.stat()  # what is written to a removed journal would be lost
    attempt.journal.sync()
