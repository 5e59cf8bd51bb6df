"""How long a kernel that was asked to leave may take: as long as it seems to do something.

Exit handlers may still upload (experiment trackers do), and deserve a while. But ipykernel itself
often hangs for 10 s when its output thread was stopped too early: such a process uses no CPU, has
no children and no connection, and nothing is lost with it.
"""

from __future__ import annotations

import asyncio
import contextlib

import psutil

_IDLE = 1.0
"""Seconds without any sign of work after which nothing more is expected."""
_BOUND = 10.0
_LOOK = 0.2


async def leave(pid: int, died: asyncio.Event) -> None:
    """Wait until the process is gone, or idle, or had its time."""
    loop = asyncio.get_running_loop()
    end = loop.time() + _BOUND
    idle_since, seen = loop.time(), -1.0
    while not died.is_set() and loop.time() < end:
        with contextlib.suppress(asyncio.TimeoutError):
            await asyncio.wait_for(died.wait(), _LOOK)
            return
        now = _cpu_seconds(pid)
        if now != seen or _is_connected(pid):
            idle_since, seen = loop.time(), now
        elif loop.time() - idle_since > _IDLE:
            return


def _cpu_seconds(pid: int) -> float:
    with contextlib.suppress(psutil.Error):
        times = psutil.Process(pid).cpu_times()
        return times.user + times.system
    return 0.0


def _is_connected(pid: int) -> bool:
    """Tell whether the process has children, or connections over a network."""
    with contextlib.suppress(psutil.Error):
        process = psutil.Process(pid)
        # psutil 6 gave it another name.
        connections = getattr(process, "net_connections", None) or process.connections
        return bool(process.children() or connections(kind="inet"))
    return False
