"""One attempt of a job, from claim to outcome: `job_runner run <job directory>`."""

from __future__ import annotations

import asyncio
import errno
import sys
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

from . import memory, reasons, reserve, scratch, stop
from .ending import end_record, look_back, write_ending
from .engine import Engine
from .kernel import Kernel
from .prepare import Notebook, code_cells, kernel_name, prepare
from .protocol import documents, layout, liveness
from .protocol.journal import JournalWriter
from .reaper import Reaper
from .reasons import End, Exit, RunFailed
from .supervise import supervise
from .usage import Usage, sample

_SYNC_PERIOD = 1.0
"""Seconds between acknowledgements: what a lost host may cost."""
_NO_SPACE = (errno.ENOSPC, errno.EDQUOT)


@dataclass
class Attempt:
    """What one attempt has at hand."""

    job_dir: Path
    directory: Path
    request: dict[str, Any]
    journal: JournalWriter
    started: float = field(default_factory=time.time)
    usage: Usage = field(default_factory=Usage)
    end: End | None = None

    def emit(self, record: dict[str, Any]) -> None:
        """Journal one record."""
        self.journal.append({"t": round(time.time(), 6), **record})

    def conclude(self, end: End) -> End:
        """Journal how the run ended, once: whatever happens afterwards, it ended like this."""
        if self.end is None:
            self.end = end
            self.emit(end_record(end))
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
        return _run_claimed(job_dir, claim.directory, request)
    except OSError as error:
        # Without an outcome the attempt counts as dead, and `finish` takes it up again.
        _say(f"The exchange cannot be written: {error}")
        return Exit.IO
    finally:
        claim.release()


def _run_claimed(job_dir: Path, directory: Path, request: dict[str, Any]) -> int:
    """Run, and write how it ended."""
    attempt = Attempt(job_dir, directory, request, JournalWriter(directory / layout.JOURNAL))
    with reserve.held(directory):
        end = _guarded(attempt)
    end = attempt.conclude(end)
    attempt.journal.close()
    write_ending(job_dir, directory, end, attempt.started, attempt.usage.to_json())
    _say(f"{end.reason}: {end.message}" if end.reason else "Every cell ran.")
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
    request = attempt.request
    stopped = _stopped()
    snapshot = (attempt.job_dir / layout.SNAPSHOT).read_bytes()
    kernel = Kernel(kernel_name(snapshot, request.get("kernel")), str(attempt.directory))
    start = {"kernel": kernel.name, "sockets": str(kernel.folder)}
    attempt.emit({"k": "start", "v": documents.VERSION, **start})
    ended_kindly = False
    try:
        started = await _start(attempt, kernel)
        notebook = _prepare(attempt, kernel)
        if isinstance(started, RunFailed):
            raise started
        with Reaper(spare=kernel.pid):
            end = await _execute(attempt, kernel, notebook, stopped)
        # Before the kernel takes its leave, which may last: a run that had succeeded stays so.
        attempt.conclude(end)
        ended_kindly = end.exit_code in (Exit.SUCCEEDED, Exit.CELL)
        return end
    finally:
        await kernel.close(kindly=ended_kindly)
        scratch.collect_artifacts(attempt.job_dir, attempt.directory)


async def _start(attempt: Attempt, kernel: Kernel) -> RunFailed | None:
    """Spawn the kernel. A failure is handed back: the notebook is prepared all the same."""
    try:
        cwd = scratch.working_directory(attempt.job_dir, attempt.directory, attempt.request)
        await kernel.start(cwd, attempt.request.get("env") or {})
        attempt.emit({"k": "kernel", "pid": kernel.pid})
    except RunFailed as failure:
        return failure
    return None


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
    """Execute all cells of a notebook whose kernel is on its way."""
    kills_before = memory.oom_kills()
    helpers = [
        asyncio.create_task(sample(kernel.pid, attempt.usage)),
        asyncio.create_task(_keep_synced(attempt.journal)),
    ]
    try:
        if not await _ready(kernel, stopped):
            return reasons.terminated(None)
        attempt.emit({"k": "kernel", "pid": kernel.pid, "language_info": kernel.language_info})
        return await supervise(
            Engine(kernel, attempt.emit),
            kernel,
            [(index, notebook["cells"][index]) for index in code_cells(notebook)],
            stop=stopped,
            limit=attempt.request.get("max_runtime"),
            out_of_memory=lambda: memory.oom_kills() > kills_before,
        )
    finally:
        for helper in helpers:
            helper.cancel()
        for failure in await asyncio.gather(*helpers, return_exceptions=True):
            if isinstance(failure, OSError):
                raise failure  # what was said to be safe is not


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


def _stopped() -> asyncio.Future[None]:
    """Return a future that is done once we were told to stop."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[None] = loop.create_future()

    def settle() -> None:
        if not future.done():
            future.set_result(None)

    def wake() -> None:
        # The signal may come when the loop is gone and the result is being written.
        with suppress(RuntimeError):
            loop.call_soon_threadsafe(settle)

    stop.on_request(wake)
    return future


async def _keep_synced(journal: JournalWriter) -> None:
    """Acknowledge what was written once a second, off the loop: fdatasync may take long."""
    while True:
        await asyncio.sleep(_SYNC_PERIOD)
        await asyncio.to_thread(journal.sync)


def _say(text: str) -> None:
    print(f"job_runner: {text}", file=sys.stderr, flush=True)  # noqa: T201
