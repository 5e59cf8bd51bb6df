"""What may end a run beside the cells themselves: a stop, the deadline, memory, a death."""

from __future__ import annotations

import asyncio
import contextlib
import signal
from collections.abc import Iterable
from typing import Any

from . import reasons
from .engine import Engine
from .kernel import Kernel
from .monitor import Monitor
from .reasons import End

_QUIET = 0.3
"""Seconds without output after which none is on its way (ipykernel flushes at 0.2)."""
_QUIET_DEAD = 0.05
"""The same for a kernel that is gone: only what is in our own queue is left."""
_DRAIN_LIMIT = 1.0
_DRAIN_LIMIT_OVER = 0.5
"""The same for a kernel that is over its memory limit, and goes on taking more meanwhile."""


async def supervise(
    engine: Engine,
    kernel: Kernel,
    cells: Iterable[tuple[int, dict[str, Any]]],
    *,
    stop: asyncio.Future[None],
    limit: float | None,
    monitor: Monitor,
) -> End:
    """Execute `cells` until they end, `stop` is done, `limit` seconds pass or the kernel dies.

    Or until it is over the memory limit, which `monitor` tells. Whatever was printed by then is
    emitted first.
    """
    work = asyncio.create_task(engine.run(cells))
    died = asyncio.create_task(kernel.died.wait())
    over = asyncio.create_task(monitor.over.wait())
    try:
        ends: set[asyncio.Future[Any]] = {work, died, over, stop}
        await asyncio.wait(ends, timeout=limit, return_when=asyncio.FIRST_COMPLETED)
        is_dead, is_over, is_stopped = died.done(), over.done(), stop.done()
        if not work.done():
            quiet = _QUIET_DEAD if is_dead else _QUIET
            await engine.drain(quiet, _DRAIN_LIMIT_OVER if is_over else _DRAIN_LIMIT)
        end = work.result() if work.done() else None
        if end is not None:
            return end
        if is_over and monitor.limit is not None:
            return reasons.over_memory(monitor.used, monitor.limit, engine.current)
        if is_dead:
            return _death(kernel, engine.current, monitor)
        if is_stopped:
            return reasons.terminated(engine.current)
        return reasons.deadline(limit or 0, engine.current)
    finally:
        died.cancel()
        over.cancel()
        work.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await work


def _death(kernel: Kernel, cell: int | None, monitor: Monitor) -> End:
    status = kernel.exit_status()
    killed = status == -signal.SIGKILL and monitor.host_killed()
    return reasons.kernel_died(status, kernel.last_words(), cell, out_of_memory=killed)
