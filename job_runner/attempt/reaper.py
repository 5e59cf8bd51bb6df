"""Reaps orphaned processes when running as PID 1 of a container."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal


class Reaper:
    """Reaps orphans while it is entered; does nothing unless this process is PID 1.

    `spare` is the id of the kernel's process, which its owner waits for.
    """

    def __init__(self, spare: int) -> None:
        self._spare = spare
        self._active = os.getpid() == 1

    def __enter__(self) -> Reaper:
        if self._active:
            loop = asyncio.get_running_loop()
            loop.add_signal_handler(signal.SIGCHLD, self._reap)
            loop.call_soon(self._reap)
        return self

    def __exit__(self, *_: object) -> None:
        if self._active:
            asyncio.get_running_loop().remove_signal_handler(signal.SIGCHLD)

    def _reap(self) -> None:
        with contextlib.suppress(ChildProcessError):
            while True:
                # WNOWAIT does not reap: the status of `spare` is left to its owner.
                status = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
                if status is None or status.si_pid == self._spare:
                    return
                os.waitpid(status.si_pid, os.WNOHANG)
