"""Reaps orphaned processes when running as PID 1 of a container."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import Iterator


@contextlib.contextmanager
def reaped_orphans(spare: int) -> Iterator[None]:
    """Reap orphans meanwhile; does nothing unless this process is PID 1.

    `spare` is the id of the kernel's process, which its owner waits for.
    """
    if os.getpid() != 1:
        yield
        return
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGCHLD, _reap, spare)
    loop.call_soon(_reap, spare)
    try:
        yield
    finally:
        loop.remove_signal_handler(signal.SIGCHLD)


def _reap(spare: int) -> None:
    with contextlib.suppress(ChildProcessError):
        while True:
            # WNOWAIT does not reap: the status of `spare` is left to its owner.
            status = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            if status is None or status.si_pid == spare:
                return
            os.waitpid(status.si_pid, os.WNOHANG)
