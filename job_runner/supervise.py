"""What may end a run from outside, beside the cells themselves: a stop, the deadline, a death."""

from __future__ import annotations

import asyncio
import contextlib
import signal
from collections.abc import Callable, Iterable
from typing import Any

from . import reasons
from .engine import Engine
from .kernel import Kernel
from .reasons import End

_QUIET = 0.3
"""Seconds without output after which none is on its way (ipykernel flushes at 0.2)."""
_QUIET_DEAD = 0.05
"""The same for a kernel that is gone: only what is in our own queue is left."""
_DRAIN_LIMIT = 1.0


async def supervise(
    engine: Engine,
    kernel: Kernel,
    cells: Iterable[tuple[int, dict[str, Any]]],
    *,
    stop: asyncio.Future[None],
    limit: float | None,
    out_of_memory: Callable[[], bool],
) -> End:
    """Execute `cells` until they end, `stop` is done, `limit` seconds pass or the kernel dies.

    Whatever was printed by then is emitted first. `out_of_memory` tells whether the host has
    killed for memory since the run began.
    """
    work = asyncio.create_task(engine.run(cells))
    died = asyncio.create_task(kernel.died.wait())
    try:
        ends: set[asyncio.Future[Any]] = {work, died, stop}
        await asyncio.wait(ends, timeout=limit, return_when=asyncio.FIRST_COMPLETED)
        is_dead, is_stopped = died.done(), stop.done()
        if not work.done():
            await engine.drain(_QUIET_DEAD if is_dead else _QUIET, _DRAIN_LIMIT)
        end = work.result() if work.done() else None
        if end is not None:
            return end
        if is_dead:
            return _death(kernel, engine.current, out_of_memory)
        if is_stopped:
            return reasons.terminated(engine.current)
        return reasons.deadline(limit or 0, engine.current)
    finally:
        died.cancel()
        work.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await work


def _death(kernel: Kernel, cell: int | None, out_of_memory: Callable[[], bool]) -> End:
    status = kernel.exit_status()
    killed = status == -signal.SIGKILL and out_of_memory()
    return reasons.kernel_died(status, kernel.last_words(), cell, out_of_memory=killed)
