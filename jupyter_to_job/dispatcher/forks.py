"""Processes that begin as copies of the dispatcher: they need no new interpreter.

To start one and import what delivers a notebook took longer than to deliver it. A copy is safe
because the dispatcher has one thread, and it keeps nothing of the dispatcher's: least of all the
lock, which would keep the next dispatcher out.
"""

from __future__ import annotations

import logging
import os
import signal
import sys
import traceback
from collections.abc import Callable

_STANDARD = 3
"""Descriptors below are input, output and errors."""
_TO_END = (signal.SIGTERM, signal.SIGINT)
"""Signals that are held back until the copy has its own handlers."""


class Fork:
    """A copy of this process that does some work and ends; looks like a `subprocess.Popen`."""

    def __init__(
        self,
        work: Callable[[], int],
        log: int,
        install_signal_handlers: Callable[[], None] | None = None,
    ) -> None:
        """Begin `work`, which returns an exit status; what it says goes to the descriptor `log`.

        It leads a session of its own and outlives the dispatcher. `install_signal_handlers`
        installs its handlers: no signal comes before. Raises OSError.
        """
        self._status: int | None = None
        signal.pthread_sigmask(signal.SIG_BLOCK, _TO_END)
        try:
            self.pid = os.fork()
            if self.pid == 0:
                _become(work, log, install_signal_handlers)
        finally:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, _TO_END)

    def poll(self) -> int | None:
        """Return the exit status, negative for a signal; None while it works."""
        if self._status is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self._status = os.waitstatus_to_exitcode(status)
        return self._status


def _become(
    work: Callable[[], int], log: int, install_signal_handlers: Callable[[], None] | None
) -> None:
    """Do the work, as a process that has nothing to do with the dispatcher; never returns."""
    status = 1
    try:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        if install_signal_handlers is not None:
            install_signal_handlers()
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _TO_END)
        os.setsid()
        os.chdir("/")
        logging.basicConfig(handlers=[], level=logging.WARNING, force=True)  # as Python starts
        nothing = os.open(os.devnull, os.O_RDONLY)
        for descriptor, source in enumerate((nothing, log, log)):
            os.dup2(source, descriptor)
        os.closerange(_STANDARD, max(map(int, os.listdir("/dev/fd"))) + 1)  # noqa: PTH208 - numbers
        status = work()
    except BaseException:
        traceback.print_exc()
    finally:
        try:
            sys.stderr.flush()
        finally:  # even if the disk is full: it must not go on as a second dispatcher
            os._exit(status)
