"""What may end a run beside the cells themselves: a stop, the deadline, memory, a death."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterable
from typing import Any

from ..diagnosis import endings
from ..diagnosis.diagnosis import Diagnosis
from ..diagnosis.endings import End, RunFailed
from ..kernel.client import KernelClient
from ..resources.monitor import Monitor
from .engine import Engine

_NEWS_PERIOD = 1.0
"""Seconds between two looks at what the host did to the run."""
_QUIET = 0.3
"""Seconds without output after which none is on its way (ipykernel flushes at 0.2)."""
_QUIET_DEAD = 0.05
"""The same for a kernel that is gone: only what is in our own queue is left."""
_DRAIN_LIMIT = 0.5
"""Seconds after which a flood is left behind; a kernel that is over its memory limit goes on taking
more meanwhile, and whoever told us to stop waits."""
_INTERRUPT_GRACE = 3.0
"""Seconds for a cell that is interrupted: for its traceback and its `finally` blocks, which may
write down what it has so far. Only what heeds no interrupt takes them all."""
_BACKLOG = 5.0
"""Seconds for output that was sent already, when no more is made, from the moment on that ends the
run: half of what a stop leaves us."""


async def wait_until_ready(kernel: KernelClient, stop: asyncio.Future[None]) -> bool:
    """Wait until the kernel answers. False: `stop` was done first. Raises RunFailed."""
    ready = asyncio.create_task(kernel.ready())
    died = asyncio.create_task(kernel.died.wait())
    try:
        ends: set[asyncio.Future[Any]] = {ready, died, stop}
        await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
        if ready.done():
            ready.result()
            return True
        if stop.done():
            return False
        message = f"it ended at once. {kernel.process.last_log_line()}"
        raise endings.no_kernel(kernel.process.name, message)
    finally:
        died.cancel()
        ready.cancel()
        with contextlib.suppress(asyncio.CancelledError, RunFailed):
            await ready


async def supervise(
    engine: Engine,
    kernel: KernelClient,
    cells: Iterable[tuple[int, dict[str, Any]]],
    *,
    stop: asyncio.Future[None],
    limit: float | None,
    monitor: Monitor,
    witness: Diagnosis,
) -> End:
    """Execute `cells` until they end, `stop` is done, `limit` seconds pass or the kernel dies.

    Or until it is over the memory limit, which `monitor` tells. Whatever was printed by then is
    emitted first, and a cell that is stopped is interrupted, so that it shows where it was.
    `witness` knows what else to say of the end.
    """
    work = asyncio.create_task(engine.run(cells))
    died = asyncio.create_task(kernel.died.wait())
    over = asyncio.create_task(monitor.over.wait())
    news = asyncio.create_task(_report_oom_kills(engine, witness))
    try:
        ends: set[asyncio.Future[Any]] = {work, died, over, stop}
        await _first(ends, limit)
        is_dead, is_over, is_stopped = died.done(), over.done(), stop.done()
        cell = engine.current
        if not work.done():
            await _drain_remaining(engine, work, died, over)
        end = work.result() if work.done() else None
        if end is not None:
            return end
        if is_over and monitor.limit is not None:
            return endings.memory_limit_exceeded(monitor.used, monitor.limit, engine.current)
        if is_dead:
            process = kernel.process
            status, log_line = process.exit_status(), process.last_log_line()
            return witness.kernel_died(status, log_line, engine.current)
        if is_stopped:
            return witness.interrupted(endings.terminated(cell))
        return witness.interrupted(endings.deadline(limit or 0, cell))
    finally:
        died.cancel()
        over.cancel()
        news.cancel()
        work.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await work


async def _drain_remaining(
    engine: Engine,
    work: asyncio.Future[End | None],
    died: asyncio.Future[Any],
    over: asyncio.Future[Any],
) -> None:
    """Have the cell end by itself, unless it is too late for that; take what it sends by then."""
    loop = asyncio.get_running_loop()
    until = loop.time() + _BACKLOG
    if not (died.done() or over.done()):
        engine.interrupt()
        await _first({work, died, over}, _INTERRUPT_GRACE)
        if engine.has_answered:
            await _first({work, died}, until - loop.time())
    if not work.done():
        is_gone = died.done()
        quiet, limit = (_QUIET_DEAD, until - loop.time()) if is_gone else (_QUIET, _DRAIN_LIMIT)
        await engine.drain(quiet, limit)


async def _report_oom_kills(engine: Engine, witness: Diagnosis) -> None:
    """Say in the cell that runs what the host does to it."""
    while True:
        await asyncio.sleep(_NEWS_PERIOD)
        line = witness.new_oom_kills()
        if line:
            engine.tell(line)


async def _first(ends: set[asyncio.Future[Any]], limit: float | None) -> None:
    """Wait until one of `ends` is done, or `limit` seconds have passed."""
    await asyncio.wait(ends, timeout=limit, return_when=asyncio.FIRST_COMPLETED)
