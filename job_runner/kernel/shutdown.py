"""How long a kernel that was asked to leave may take: as long as it seems to do something.

Exit handlers may still upload (experiment trackers do), and deserve a while. But ipykernel itself
often hangs for 10 s when its output thread was stopped too early: such a process uses no CPU, has
no connection and starts nothing, nor do the children that it had; and nothing is lost with it.
"""

from __future__ import annotations

import asyncio
import contextlib

import psutil

_IDLE = 0.8
"""Seconds without any sign of work after which nothing more is expected."""
_BOUND = 10.0
_LOOK = 0.1

_ProcessTree = frozenset[psutil.Process]


class ShutdownWait:
    """The leave of process `pid`: make it before the process is asked to go."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._before = _process_tree(pid)

    async def wait(self, died: asyncio.Event) -> None:
        """Wait until the process is gone, or idle, or had its time."""
        loop = asyncio.get_running_loop()
        end = loop.time() + _BOUND
        idle_since, seen = loop.time(), -1.0
        while not died.is_set() and loop.time() < end:
            with contextlib.suppress(asyncio.TimeoutError):
                await asyncio.wait_for(died.wait(), _LOOK)
                return
            family = _process_tree(self._pid)
            now = sum(map(_cpu_seconds, family))
            if now != seen or family - self._before or any(map(_is_connected, family)):
                idle_since, seen = loop.time(), now
            elif loop.time() - idle_since > _IDLE:
                return


def _process_tree(pid: int) -> _ProcessTree:
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
