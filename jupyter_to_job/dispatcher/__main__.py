"""`python -m jupyter_to_job.dispatcher EXCHANGE`: a submission starts it; it exits when idle."""

from __future__ import annotations

import argparse
import logging
import os
import select
import signal
import sys
from pathlib import Path

from job_runner.protocol.liveness import HEARTBEAT_INTERVAL, HEARTBEAT_TIMEOUT

from ..backends.local.hosts import HostWatch, take_lock, this_host
from ..backends.local.slots import Machine
from ..exchange import FileExchange
from .lease import Lease
from .loop import Dispatcher
from .processes import has_python


def main() -> int:
    """Serve the exchange until there is nothing to do; 0 also if another dispatcher serves it.

    1: its Python was moved or removed, and the next command starts one that has it.
    """
    options = _options()
    logging.basicConfig(format="%(asctime)s %(levelname)s %(message)s", level=logging.INFO)
    host, lock = this_host(), options.lock
    watch = HostWatch(options.exchange, options.silence, options.beat)
    dispatcher = Dispatcher(FileExchange(options.exchange), Machine(options.capacity), host, watch)
    pause = Pause()
    if lock is not None:
        os.set_inheritable(lock, False)  # a runner that inherits it would keep the lock
    while True:
        lock = take_lock(options.exchange, host) if lock is None else lock
        if lock is None:
            return 0
        lease = Lease(dispatcher.exchange, host, lock, options.beat)
        dispatcher.serve(lease, options.idle, pause)
        os.close(lock)
        lock = None
        if not has_python():
            logging.error("%s is gone: the jobs are left to another dispatcher", sys.executable)
            return 1
        # A submitter who found the lock taken just now has started no other dispatcher.
        if not dispatcher.has_work():
            dispatcher.retain()
            return 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="jupyter_to_job.dispatcher", description=__doc__)
    parser.add_argument("exchange", type=Path)
    parser.add_argument("--capacity", default="", help="slots, e.g. cpu=2,memory=4Gi")
    parser.add_argument(
        "--idle", type=float, default=10.0, help="seconds without work before leaving"
    )
    # The starter passes a descriptor of the lock that it took, and padding of the command line that
    # forks overwrite with a longer one. Tests shorten the two intervals.
    parser.add_argument("--lock", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--room", help=argparse.SUPPRESS)
    parser.add_argument("--silence", type=float, default=HEARTBEAT_TIMEOUT, help=argparse.SUPPRESS)
    parser.add_argument("--beat", type=float, default=HEARTBEAT_INTERVAL, help=argparse.SUPPRESS)
    return parser.parse_args()


class Pause:
    """Waits for some seconds, or until a child process has ended."""

    def __init__(self) -> None:
        self._read_end, write_end = os.pipe()
        for descriptor in (self._read_end, write_end):
            os.set_blocking(descriptor, False)
        signal.set_wakeup_fd(write_end, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)  # without a handler Python writes nothing
        # The starter may have blocked signals. Runners would inherit that from the dispatcher.
        signal.pthread_sigmask(signal.SIG_SETMASK, ())

    def __call__(self, seconds: float) -> bool:
        """Return after `seconds`, or earlier; tell whether a process ended."""
        child_ended = bool(select.select([self._read_end], [], [], seconds)[0])
        if child_ended:
            os.read(self._read_end, 4096)
        return child_ended


if __name__ == "__main__":
    sys.exit(main())
