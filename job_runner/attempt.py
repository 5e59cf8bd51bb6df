"""One attempt of a job, from claim to outcome: `job_runner run <job directory>`."""

from __future__ import annotations

import asyncio
import errno
import os
import sys
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

from . import gpu, reasons, reserve, scratch, stop
from .ending import end_record, look_back, write_ending
from .engine import Engine
from .kernel import Kernel
from .monitor import Monitor
from .prepare import Notebook, code_cells, kernel_name, prepare
from .protocol import documents, layout, liveness
from .protocol.journal import JournalWriter
from .reaper import Reaper
from .reasons import End, Exit, RunFailed
from .supervise import supervise
from .usage import Usage

_SYNC_PERIOD = 1.0
"""Seconds between acknowledgements: what a lost host may cost."""
_RECEIPT_PERIOD = 10.0
"""Seconds until the next receipt in the journal, or a tenth of the run so far if that is more."""
_NO_SPACE = (errno.ENOSPC, errno.EDQUOT)


@dataclass
class Attempt:
    """What one attempt has at hand."""

    job_dir: Path
    claim: liveness.Claim
    request: dict[str, Any]
    journal: JournalWriter
    started: float = field(default_factory=time.time)
    usage: Usage = field(default_factory=Usage)
    end: End | None = None
    recorded: bool = False

    @property
    def directory(self) -> Path:
        """Return the attempt's directory."""
        return self.claim.directory

    def emit(self, record: dict[str, Any]) -> None:
        """Journal one record."""
        self.journal.append({"t": round(time.time(), 6), **record})

    def conclude(self, end: End) -> End:
        """Journal how the run ended, once: whatever happens afterwards, it ended like this.

        Raises OSError; then it ended like this all the same, and another call tries again.
        """
        self.end = self.end or end
        if not self.recorded:
            self.emit(end_record(self.end))
            self.recorded = True
        return self.end


def run_job(job_dir: Path, number: int | None) -> int:
    """Execute attempt `number` (None: the next) and return the exit code of the contract.

    Raises FileNotFoundError and DocumentError for a directory that holds no readable request.
    """
    request = documents.read_document(job_dir / layout.REQUEST)
    if request is None:
        raise FileNotFoundError(f"{job_dir} holds no {layout.REQUEST}")
    number = number or max(layout.attempts(job_dir), default=0) + 1
    try:
        claim = liveness.claim_attempt(job_dir, number)
    except liveness.AttemptExists as error:
        _say(str(error))
        return Exit.BUSY
    try:
        with claim.beating():
            return _run_claimed(job_dir, claim, request)
    except OSError as error:
        # Without an outcome the attempt counts as dead, and `finish` takes it up again.
        _say(f"The exchange cannot be written: {error}")
        return Exit.IO
    finally:
        claim.release()


def _run_claimed(job_dir: Path, claim: liveness.Claim, request: dict[str, Any]) -> int:
    """Run, and write how it ended."""
    directory = claim.directory
    attempt = Attempt(job_dir, claim, request, JournalWriter(directory / layout.JOURNAL))
    with reserve.held(directory):
        last = _guarded(attempt)
    end = attempt.conclude(last)
    attempt.journal.close()
    write_ending(job_dir, directory, end, attempt.started, attempt.usage.to_json())
    _say(f"{end.reason}: {end.message}" if end.reason else "Every cell ran.")
    if last is not end:
        _say(f"Afterwards: {last.message}")
    return int(end.exit_code or 0)


def _guarded(attempt: Attempt) -> End:
    """Run, and turn whatever goes wrong into an end."""
    try:
        return asyncio.run(_run(attempt))
    except RunFailed as failure:
        return failure.end
    except OSError as error:
        cell = look_back(attempt.directory).cell
        if error.errno in _NO_SPACE:
            return reasons.disk_full(cell)
        return End("BackendError", f"The runner could not go on: {error}.", Exit.IO, cell)
    except Exception as error:  # the last line of defence: the user is told, and nothing is lost
        cell = look_back(attempt.directory).cell
        message = f"The runner failed: {type(error).__name__}: {error}."
        return End("BackendError", message, Exit.INTERNAL, cell)


async def _run(attempt: Attempt) -> End:
    """Start the kernel, prepare the notebook meanwhile, execute."""
    stopped = _stopped(attempt.claim)
    snapshot = (attempt.job_dir / layout.SNAPSHOT).read_bytes()
    name = kernel_name(snapshot, attempt.request.get("kernel"))
    kernel = Kernel(name, str(attempt.directory))
    ended_kindly = False
    try:
        start = {"kernel": kernel.name, "sockets": str(kernel.folder)}
        attempt.emit({"k": "start", "v": documents.VERSION, **start})
        end = await _start_and_execute(attempt, kernel, stopped)
        # Before the kernel takes its leave, which may last: a run that had succeeded stays so.
        attempt.conclude(end)
        ended_kindly = end.exit_code in (Exit.SUCCEEDED, Exit.CELL)
        return end
    finally:
        await kernel.close(kindly=ended_kindly)
        scratch.collect_artifacts(attempt.job_dir, attempt.directory)


async def _start_and_execute(
    attempt: Attempt, kernel: Kernel, stopped: asyncio.Future[None]
) -> End:
    try:
        failure = await _start(attempt, kernel)
        try:
            notebook = _prepare(attempt, kernel)
        finally:
            if failure is not None:
                raise failure
        with Reaper(spare=kernel.pid):
            return await _execute(attempt, kernel, notebook, stopped)
    except RunFailed as failed:
        return failed.end


async def _start(attempt: Attempt, kernel: Kernel) -> RunFailed | None:
    """Spawn the kernel. A failure is handed back: the notebook is prepared all the same."""
    try:
        cwd = scratch.working_directory(attempt.job_dir, attempt.directory, attempt.request)
        await kernel.start(cwd, _variables(attempt.request))
        attempt.emit({"k": "kernel", "pid": kernel.pid})
    except RunFailed as failure:
        return failure
    return None


def _variables(request: dict[str, Any]) -> dict[str, str]:
    """Return the job's own variables, but none that lead to GPUs other than those chosen for it."""
    asked: dict[str, str] = request.get("env") or {}
    chosen = os.environ.keys() & gpu.CHOICE
    return {name: value for name, value in asked.items() if name not in chosen}


def _prepare(attempt: Attempt, kernel: Kernel) -> Notebook:
    """Prepare the notebook and journal it."""
    request = attempt.request
    source = PurePosixPath(request["notebook"])
    notebook = prepare(
        attempt.job_dir / layout.SNAPSHOT,
        request.get("parameters") or {},
        kernel.name,
        language=kernel.language,
        names=(str(source), str(source.parent / f"{request['name']}.ipynb")),
    )
    total = len(code_cells(notebook))
    attempt.emit({"k": "prepared", "cells_total": total, "notebook": notebook})
    return notebook


async def _execute(
    attempt: Attempt, kernel: Kernel, notebook: Notebook, stopped: asyncio.Future[None]
) -> End:
    """Execute all cells of a notebook whose kernel is on its way, as long as it can be recorded."""
    request = attempt.request
    environ = {**os.environ, **_variables(request)}
    with Monitor(kernel.pid, request.get("memory_limit"), attempt.usage, environ) as monitor:
        work = asyncio.create_task(_execute_cells(attempt, kernel, notebook, stopped, monitor))
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
    kernel: Kernel,
    notebook: Notebook,
    stopped: asyncio.Future[None],
    monitor: Monitor,
) -> End:
    if not await _ready(kernel, stopped):
        return reasons.terminated(None)
    attempt.emit({"k": "kernel", "pid": kernel.pid, "language_info": kernel.language_info})
    return await supervise(
        Engine(kernel, attempt.emit),
        kernel,
        [(index, notebook["cells"][index]) for index in code_cells(notebook)],
        stop=stopped,
        limit=attempt.request.get("max_runtime"),
        monitor=monitor,
    )


async def _ready(kernel: Kernel, stopped: asyncio.Future[None]) -> bool:
    """Wait until the kernel answers. False: the run was stopped first. Raises RunFailed."""
    ready = asyncio.create_task(kernel.ready())
    died = asyncio.create_task(kernel.died.wait())
    try:
        ends: set[asyncio.Future[Any]] = {ready, died, stopped}
        await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
        if ready.done():
            ready.result()
            return True
        if stopped.done():
            return False
        raise reasons.no_kernel(kernel.name, f"it ended at once. {kernel.last_words()}")
    finally:
        died.cancel()
        ready.cancel()
        with suppress(asyncio.CancelledError, RunFailed):
            await ready


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

    stop.on_request(wake)
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


def _say(text: str) -> None:
    print(f"job_runner: {text}", file=sys.stderr, flush=True)  # noqa: T201
