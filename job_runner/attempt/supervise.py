"""Ends a run early: on a stop, at the deadline, over the memory limit, when the kernel dies."""

from __future__ import annotations

import asyncio
import contextlib
import signal
from collections.abc import Iterable
from typing import Any

from ..diagnosis import endings
from ..diagnosis.cell_place import CellPlace
from ..diagnosis.diagnosis import Diagnosis
from ..diagnosis.endings import End, RunFailed
from ..kernel.client import KernelClient
from ..resources.monitor import Monitor
from .engine import Engine

_CHECK_INTERVAL = 1.0
"""Seconds between two checks of a run: for processes that the host killed, and of the log."""
_STOP_FOLLOWS = 0.2
"""Seconds between the death of a kernel that starts and the stop of its run."""
_KILLED = (-signal.SIGKILL, -signal.SIGTERM, -signal.SIGINT, -signal.SIGHUP)
"""How a kernel ends that somebody killed, or the host for memory: it may well be installed."""
_QUIET = 0.3
"""Seconds without output after which none is on its way (ipykernel flushes at 0.2)."""
_QUIET_DEAD = 0.05
"""The same for a kernel that is gone: only this process's own queue holds output."""
_DRAIN_TIMEOUT = 0.5
"""Seconds after which the rest of a flood is dropped: a kernel over its memory limit takes more
memory meanwhile, and the sender of a stop waits."""
_INTERRUPT_GRACE = 3.0
"""Seconds for an interrupted cell: for its traceback and its `finally` blocks, which may save
results. Only a cell that ignores the interrupt takes all of it."""
_BACKLOG_TIMEOUT = 5.0
"""Seconds for output that was sent before the run was ended: half of the time that a stop allows.
"""


async def wait_until_ready(
    kernel: KernelClient, stop: asyncio.Future[None], diagnosis: Diagnosis
) -> bool:
    """Wait until the kernel answers. False: `stop` was done first. Raises RunFailed."""
    ready = asyncio.create_task(kernel.ready())
    died = asyncio.create_task(kernel.died.wait())
    try:
        await _wait_for_first({ready, died, stop}, None)
        if ready.done():
            ready.result()
            return True
        # Whoever stops a whole group of processes reaches the kernel first at times.
        await _wait_for_first({stop}, _STOP_FOLLOWS)
        if stop.done():
            return False
        status, log_line = kernel.process.exit_status(), kernel.process.last_log_line()
        if status in _KILLED:
            raise RunFailed(diagnosis.kernel_died(status, log_line, None))
        raise endings.no_kernel(kernel.process.name, f"it ended at once. {log_line}")
    finally:
        died.cancel()
        ready.cancel()
        with contextlib.suppress(asyncio.CancelledError, RunFailed):
            await ready


async def supervise(
    engine: Engine,
    kernel: KernelClient,
    cells: Iterable[tuple[CellPlace, dict[str, Any]]],
    *,
    stop: asyncio.Future[None],
    max_runtime: float | None,
    monitor: Monitor,
    diagnosis: Diagnosis,
) -> End:
    """Execute the cells until they end, or something ends the run early; `diagnosis` explains it.

    That is `stop`, `max_runtime` (in seconds; None: no limit), the memory limit of `monitor`, or
    the kernel's death. All output up to then is emitted first. A cell that is stopped is
    interrupted, so that its traceback shows where it was.
    """
    work = asyncio.create_task(engine.run(cells))
    died = asyncio.create_task(kernel.died.wait())
    over_limit = asyncio.create_task(monitor.over.wait())
    reports = asyncio.create_task(_report_oom_kills(engine, diagnosis))
    log_limit = asyncio.create_task(_limit_log(kernel))
    try:
        await _wait_for_first({work, died, over_limit, stop}, max_runtime)
        reports.cancel()
        is_dead, is_over_limit, is_stopped = died.done(), over_limit.done(), stop.done()
        cell = engine.current
        if not work.done():
            await _drain_remaining(engine, work, died, over_limit)
        end = work.result() if work.done() else None
        if end is not None:
            return end
        if is_over_limit and monitor.limit is not None:
            return endings.memory_limit_exceeded(monitor.used, monitor.limit, engine.current)
        if is_dead:
            process = kernel.process
            status, log_line = process.exit_status(), process.last_log_line()
            return diagnosis.kernel_died(status, log_line, engine.current)
        if is_stopped:
            return diagnosis.interrupted(endings.terminated(cell))
        return diagnosis.interrupted(endings.deadline(max_runtime or 0, cell))
    finally:
        for task in (died, over_limit, reports, log_limit, work):
            task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await work


async def _drain_remaining(
    engine: Engine,
    work: asyncio.Future[End | None],
    died: asyncio.Future[Any],
    over_limit: asyncio.Future[Any],
) -> None:
    """Let the cell end by itself where that is still possible, and emit its output until then."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + _BACKLOG_TIMEOUT
    if not (died.done() or over_limit.done()):
        engine.interrupt()
        await _wait_for_first({work, died, over_limit}, _INTERRUPT_GRACE)
        if engine.has_answered:
            await _wait_for_first({work, died}, deadline - loop.time())
    if not work.done():
        if died.done():
            await engine.drain(_QUIET_DEAD, deadline - loop.time())
        else:
            await engine.drain(_QUIET, _DRAIN_TIMEOUT)


async def _report_oom_kills(engine: Engine, diagnosis: Diagnosis) -> None:
    """Show in the running cell which processes the host killed for memory."""
    while True:
        await asyncio.sleep(_CHECK_INTERVAL)
        line = diagnosis.new_oom_kills()
        if line:
            # The host may have killed the kernel itself, whose death is noticed a moment later.
            await asyncio.sleep(_CHECK_INTERVAL)
            engine.emit_notice(line)


async def _limit_log(kernel: KernelClient) -> None:
    while True:
        await asyncio.sleep(_CHECK_INTERVAL)
        kernel.process.limit_log()


async def _wait_for_first(futures: set[asyncio.Future[Any]], timeout: float | None) -> None:
    """Wait until one of `futures` is done, or `timeout` seconds have passed."""
    await asyncio.wait(futures, timeout=timeout, return_when=asyncio.FIRST_COMPLETED)
