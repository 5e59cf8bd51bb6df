"""The part of an attempt that needs the kernel: prepare meanwhile, execute, see it off.

Imported once the kernel's process was started: an event loop, ZeroMQ and papermill take about as
long to import as a kernel takes to start.
"""

from __future__ import annotations

import asyncio
import os
import time
from contextlib import suppress
from typing import Any

from .. import signals
from ..diagnosis import endings
from ..diagnosis.diagnosis import Diagnosis
from ..diagnosis.endings import End, RunFailed
from ..diagnosis.exit_codes import Exit
from ..kernel.client import KernelClient
from ..kernel.process import KernelProcess
from ..notebook.metadata import provenance, recorded_paths
from ..notebook.parameterize import Notebook, code_cells, prepare_notebook
from ..protocol import layout, liveness
from ..protocol.result.notebook import METADATA_KEY
from ..resources.monitor import Monitor
from .attempt import Attempt
from .engine import Engine
from .reaper import Reaper
from .supervise import supervise, wait_until_ready

_SYNC_PERIOD = 1.0
"""Seconds between acknowledgements: what a lost host may cost."""
_RECEIPT_PERIOD = 10.0
"""Seconds until the next receipt in the journal, or a tenth of the run so far if that is more."""


def execute(attempt: Attempt, process: KernelProcess, failure: RunFailed | None) -> End:
    """Execute the attempt's notebook in a kernel on its way; return, and record, how it ended.

    `failure` is why there is none: the notebook is prepared all the same, to bear the reason.
    Raises RunFailed for a notebook that cannot be prepared; OSError.
    """
    if failure is not None:
        _prepare(attempt, process)
        raise failure
    return asyncio.run(_run(attempt, process))


async def _run(attempt: Attempt, process: KernelProcess) -> End:
    stopped = _stopped(attempt.claim)
    kernel = KernelClient(process)
    ended_kindly = False
    try:
        end = await _prepare_and_execute(attempt, process, kernel, stopped)
        # Before the kernel takes its leave, which may last: a run that had succeeded stays so.
        attempt.conclude(end)
        ended_kindly = end.exit_code in (Exit.SUCCEEDED, Exit.CELL)
        return end
    finally:
        write = attempt.write_result if attempt.recorded else None
        await kernel.shutdown(graceful=ended_kindly, while_waiting=write)


async def _prepare_and_execute(
    attempt: Attempt, process: KernelProcess, kernel: KernelClient, stopped: asyncio.Future[None]
) -> End:
    try:
        kernel.connect()
        notebook = _prepare(attempt, process)
        with Reaper(spare=kernel.process.pid):
            return await _execute(attempt, kernel, notebook, stopped)
    except RunFailed as failed:
        return failed.end


def _prepare(attempt: Attempt, process: KernelProcess) -> Notebook:
    """Prepare the notebook and journal it."""
    request = attempt.request
    notebook = prepare_notebook(
        attempt.job_dir / layout.SNAPSHOT,
        request.get("parameters") or {},
        process.name,
        language=process.language,
        names=recorded_paths(request),
    )
    if came_from := provenance(request):
        notebook["metadata"][METADATA_KEY] = came_from
    total = len(code_cells(notebook))
    attempt.emit({"k": "prepared", "cells_total": total, "notebook": notebook})
    return notebook


async def _execute(
    attempt: Attempt, kernel: KernelClient, notebook: Notebook, stopped: asyncio.Future[None]
) -> End:
    """Execute all cells of a notebook whose kernel is on its way, as long as it can be recorded."""
    request = attempt.request
    environ = {**os.environ, **attempt.variables}
    with Monitor(
        kernel.process.pid, request.get("memory_limit"), attempt.usage, environ
    ) as monitor:
        work = asyncio.create_task(
            _execute_cells(attempt, kernel, notebook, stopped, monitor, environ)
        )
        tasks: set[asyncio.Task[Any]] = {work, asyncio.create_task(_keep_safe(attempt))}
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for broken in done - {work}:
                broken.result()  # what was said to be safe is not
            return work.result()
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)


async def _execute_cells(
    attempt: Attempt,
    kernel: KernelClient,
    notebook: Notebook,
    stopped: asyncio.Future[None],
    monitor: Monitor,
    environ: dict[str, str],
) -> End:
    if not await wait_until_ready(kernel, stopped):
        return endings.terminated(None)
    attempt.emit({"k": "kernel", "pid": kernel.process.pid, "language_info": kernel.language_info})
    witness = Diagnosis(monitor.memory_status, attempt.request, environ)

    def emit(record: dict[str, Any]) -> None:
        witness.on_record(record)
        attempt.emit(record)

    return await supervise(
        Engine(kernel, emit, witness.cell_failed),
        kernel,
        [(index, notebook["cells"][index]) for index in code_cells(notebook)],
        stop=stopped,
        limit=attempt.request.get("max_runtime"),
        monitor=monitor,
        witness=witness,
    )


def _stopped(claim: liveness.Claim) -> asyncio.Future[None]:
    """Return a future that is done once we were told to stop."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[None] = loop.create_future()

    def settle() -> None:
        if not future.done():
            future.set_result(None)

    def wake() -> None:
        # If this is all that we come to do, the run is known to have lived when it was cancelled.
        claim.beat()
        # The signal may come when the loop is gone and the result is being written.
        with suppress(RuntimeError):
            loop.call_soon_threadsafe(settle)

    signals.on_stop(wake)
    return future


async def _keep_safe(attempt: Attempt) -> None:
    """Acknowledge what was written once a second, off the loop: fdatasync may take long.

    And leave a receipt now and then: a run that is killed has one, too. Raises OSError.
    """
    receipt_at = 0.0
    while True:
        await asyncio.sleep(_SYNC_PERIOD)
        lasted = time.time() - attempt.started
        if lasted >= receipt_at and attempt.usage.memory.count > 1:
            attempt.emit({"k": "usage", **attempt.usage.to_json()})
            receipt_at = lasted + max(_RECEIPT_PERIOD, lasted / 10)
        await asyncio.to_thread(attempt.journal.sync)
