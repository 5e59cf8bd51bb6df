"""Forks of the dispatcher, which need no new interpreter.

Starting an interpreter and importing what delivers a notebook takes longer than delivering it. A
fork is safe because the dispatcher has one thread. It closes all the dispatcher's descriptors: the
lock above all, which would keep the next dispatcher out.
"""

from __future__ import annotations

import logging
import os
import signal
import sys
import traceback
from collections.abc import Callable

_STANDARD_STREAMS = 3
"""Descriptors below this are input, output and errors."""
_STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT)
"""Signals that are blocked until the fork has its own handlers."""


class Fork:
    """A fork of this process that does some work and exits; used like a `subprocess.Popen`."""

    def __init__(
        self,
        work: Callable[[], int],
        log: int,
        install_signal_handlers: Callable[[], None] | None = None,
    ) -> None:
        """Begin `work`, which returns an exit status; its output goes to the descriptor `log`.

        The fork leads a session of its own and outlives the dispatcher. Signals are blocked until
        `install_signal_handlers` has returned. Raises OSError.
        """
        self._status: int | None = None
        signal.pthread_sigmask(signal.SIG_BLOCK, _STOP_SIGNALS)
        try:
            self.pid = os.fork()
            if self.pid == 0:
                _run_in_child(work, log, install_signal_handlers)
        finally:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, _STOP_SIGNALS)

    def poll(self) -> int | None:
        """Return the exit status, negative for a signal; None while it runs."""
        if self._status is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self._status = os.waitstatus_to_exitcode(status)
        return self._status


def _run_in_child(
    work: Callable[[], int], log: int, install_signal_handlers: Callable[[], None] | None
) -> None:
    """Detach from the dispatcher, do the work and exit; never returns."""
    status = 1
    try:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        if install_signal_handlers is not None:
            install_signal_handlers()
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _STOP_SIGNALS)
        os.setsid()
        os.chdir("/")
        logging.basicConfig(handlers=[], level=logging.WARNING, force=True)  # as Python starts
        null = os.open(os.devnull, os.O_RDONLY)
        for descriptor, source in enumerate((null, log, log)):
            os.dup2(source, descriptor)
        os.closerange(_STANDARD_STREAMS, max(map(int, os.listdir("/dev/fd"))) + 1)  # noqa: PTH208 - numbers
        status = work()
    except BaseException:
        traceback.print_exc()
    finally:
        try:
            sys.stderr.flush()
        finally:  # on a full disk, too: the fork must never go on as a second dispatcher
            os._exit(status)
