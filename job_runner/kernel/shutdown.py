"""Waits for a kernel to exit after a shutdown request, as long as it seems to do something.

Exit handlers may still upload (experiment trackers do), and threads may still save a checkpoint. A
process that uses no CPU, has no connection and starts nothing probably hangs, with the children
that it had. It may also wait for a disk, so it gets as long as jupyter_client would give it.
"""

from __future__ import annotations

import asyncio
import contextlib

import psutil

_IDLE_TIMEOUT = 5.0
"""Seconds without any sign of work after which the kernel is taken to hang."""
_TIMEOUT = 10.0
_POLL_INTERVAL = 0.5
"""Seconds between two looks at the processes; that the kernel is gone is noticed at once."""

ProcessTree = frozenset[psutil.Process]


async def wait_for_exit(pid: int, initial: ProcessTree, died: asyncio.Event) -> bool:
    """Wait until process `pid` is gone or idle, or the time is over; tell whether it is gone.

    `initial` is its tree before the shutdown request was sent.
    """
    loop = asyncio.get_running_loop()
    end = loop.time() + _TIMEOUT
    idle_since, cpu_seconds = loop.time(), -1.0
    while not died.is_set() and loop.time() < end:
        with contextlib.suppress(asyncio.TimeoutError):
            await asyncio.wait_for(died.wait(), _POLL_INTERVAL)
            break
        tree = process_tree(pid)
        total = sum(map(_cpu_seconds, tree))
        if total != cpu_seconds or tree - initial or any(map(_is_connected, tree)):
            idle_since, cpu_seconds = loop.time(), total
        elif loop.time() - idle_since > _IDLE_TIMEOUT:
            break
    return died.is_set()


def process_tree(pid: int) -> ProcessTree:
    """Return a process and its descendants."""
    with contextlib.suppress(psutil.Error):
        process = psutil.Process(pid)
        return frozenset([process, *process.children(recursive=True)])
    return frozenset()


def _cpu_seconds(process: psutil.Process) -> float:
    with contextlib.suppress(psutil.Error):
        times = process.cpu_times()
        return float(times.user + times.system)
    return 0.0


def _is_connected(process: psutil.Process) -> bool:
    """Tell whether a process talks to another over a network; its debugger only listens."""
    with contextlib.suppress(psutil.Error):
        # psutil 6 gave it another name.
        connections = getattr(process, "net_connections", None) or process.connections
        return any(connection.raddr for connection in connections(kind="inet"))
    return False
