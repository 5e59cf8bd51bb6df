"""One attempt of a job, from claim to outcome: `job_runner run <job directory>`."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from . import memory, reasons, scratch, stop
from .ending import Ending, now, prepared, write_ending
from .engine import Engine
from .kernel import Kernel
from .prepare import Notebook, code_cells, kernel_name
from .protocol import documents, layout, liveness
from .protocol.journal import JournalWriter
from .reasons import End, Exit, RunFailed

SYNC_PERIOD = 1.0
"""Seconds between acknowledgements: what a lost host may cost."""


@dataclass
class Attempt:
    """What one attempt has at hand."""

    job_dir: Path
    directory: Path
    request: dict[str, Any]
    journal: JournalWriter
    started: str = field(default_factory=now)
    usage: memory.Usage = field(default_factory=memory.Usage)

    def emit(self, record: dict[str, Any]) -> None:
        """Journal one record."""
        self.journal.append({"t": round(time.time(), 3), **record})


def run_job(job_dir: Path, number: int | None) -> int:
    """Execute attempt `number` (None: the next) and return the exit code of the contract."""
    request = documents.read_document(job_dir / layout.REQUEST)
    if request is None:
        raise FileNotFoundError(f"{job_dir} holds no {layout.REQUEST}")
    number = number or max(layout.attempts(job_dir), default=0) + 1
    try:
        claim = liveness.claim_attempt(job_dir, number)
    except liveness.AttemptExists:
        return Exit.BUSY
    journal = JournalWriter(claim.directory / layout.JOURNAL)
    attempt = Attempt(job_dir, claim.directory, request, journal)
    end = _guarded(attempt)
    try:
        return _finish(attempt, end)
    except OSError:
        # Without an outcome the attempt counts as lost, and `finish` takes it up again.
        return Exit.IO
    finally:
        claim.release()


def _finish(attempt: Attempt, end: End) -> int:
    """Write result and outcome."""
    usage = attempt.usage.to_json()
    record = Ending(end, attempt.started, usage)
    return write_ending(attempt.job_dir, attempt.directory, attempt.request, record, attempt.journal)


def _guarded(attempt: Attempt) -> End:
    """Run, and turn whatever goes wrong into an end."""
    try:
        return asyncio.run(_run(attempt))
    except RunFailed as failure:
        return failure.end
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            message = "The disk of the exchange is full; what was written until then is kept."
            return End("DiskFull", message, Exit.IO)
        return End("BackendError", f"The runner could not go on: {error}.", Exit.IO)
    except Exception as error:
        message = f"The runner failed: {type(error).__name__}: {error}."
        return End("BackendError", message, Exit.INTERNAL)


async def _run(attempt: Attempt) -> End:
    """Start the kernel, prepare the notebook meanwhile, execute."""
    request = attempt.request
    snapshot = attempt.job_dir / layout.SNAPSHOT
    name = kernel_name(snapshot.read_bytes(), request.get("kernel"))
    interruption = _interruption()
    cwd = scratch.working_directory(attempt.job_dir, attempt.directory, request)
    kernel = Kernel(name)
    helpers: list[asyncio.Task[None]] = []
    try:
        await kernel.start(cwd, request.get("env") or {})
        helpers = [
            asyncio.create_task(memory.sample(kernel.process.pid, attempt.usage)),
            asyncio.create_task(_keep_synced(attempt.journal)),
            asyncio.create_task(_reap(kernel.process.pid)),
        ]
        notebook = prepared(attempt.job_dir, request, name)
        _announce(attempt, notebook)
        if not await _ready(kernel, interruption):
            return reasons.terminated(None) if interruption.done() else _never_ready(name)
        return await _execute(attempt, kernel, notebook, interruption)
    finally:
        for helper in helpers:
            helper.cancel()
        await kernel.close()
        scratch.collect_artifacts(attempt.directory, request, attempt.job_dir)


def _announce(attempt: Attempt, notebook: Notebook) -> None:
    started = {"start_time": attempt.started, "end_time": None, "duration": None, "exception": None}
    notebook["metadata"]["papermill"].update(started)
    total = len(code_cells(notebook))
    attempt.emit({"k": "prepared", "v": 1, "cells_total": total, "notebook": notebook})


async def _ready(kernel: Kernel, interruption: asyncio.Future[None]) -> bool:
    """Wait for the kernel, unless it dies or the run is stopped first. Raises RunFailed."""
    ready = asyncio.create_task(kernel.ready())
    died = asyncio.create_task(kernel.died.wait())
    await asyncio.wait({ready, died, interruption}, return_when=asyncio.FIRST_COMPLETED)
    died.cancel()
    if ready.done():
        ready.result()
        return True
    ready.cancel()
    with contextlib.suppress(asyncio.CancelledError, RunFailed):
        await ready
    return False


def _never_ready(name: str) -> End:
    raise reasons.no_kernel(name, "it ended while it started.")


async def _execute(
    attempt: Attempt, kernel: Kernel, notebook: Notebook, interruption: asyncio.Future[None]
) -> End:
    """Execute all cells; a stop or the deadline ends the one that runs."""
    loop = asyncio.get_running_loop()
    limit = attempt.request.get("max_runtime")
    deadline = None if limit is None else loop.time() + float(limit)
    kills_before = memory.oom_kills()

    def interrupted(cell: int) -> asyncio.Future[End]:
        ended: asyncio.Future[End] = loop.create_future()

        def settle(end: Callable[[], End]) -> None:
            if not ended.done():
                ended.set_result(end())

        interruption.add_done_callback(lambda _: settle(lambda: reasons.terminated(cell)))
        if deadline is not None and limit is not None:
            loop.call_at(deadline, settle, lambda: reasons.deadline(float(limit), cell))
        return ended

    engine = Engine(kernel, attempt.emit, interrupted, lambda: memory.oom_kills() > kills_before)
    cells = [(index, notebook["cells"][index]) for index in code_cells(notebook)]
    return await engine.run(cells)


def _interruption() -> asyncio.Future[None]:
    """Return a future that is done once SIGTERM came."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[None] = loop.create_future()

    def settle() -> None:
        if not future.done():
            future.set_result(None)

    stop.on_request(lambda: loop.call_soon_threadsafe(settle))
    return future


async def _keep_synced(journal: JournalWriter) -> None:
    """Acknowledge what was written once a second, off the loop: fdatasync may take long."""
    while True:
        await asyncio.sleep(SYNC_PERIOD)
        await asyncio.to_thread(journal.sync)


async def _reap(kernel_pid: int) -> None:
    """As PID 1 of a container, bury the orphans that kernels leave; elsewhere do nothing."""
    while os.getpid() == 1:
        await asyncio.sleep(SYNC_PERIOD)
        with contextlib.suppress(ChildProcessError):
            while True:
                seen = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
                if seen is None or seen.si_pid == kernel_pid:
                    break
                os.waitpid(seen.si_pid, os.WNOHANG)
