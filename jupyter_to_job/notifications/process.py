"""Starting the process that tells hooks of jobs, from the dispatcher or the controller.

The starter takes the lock and passes it on, so of several starters one starts a process. It works
as long as its starter lives, and then until nothing is under way: what is tried again outlives a
dispatcher that ends because it is idle.
"""

from __future__ import annotations

import fcntl
import logging
import os
import subprocess
import sys
import time
from pathlib import Path

MODULE = "jupyter_to_job.notifications"
RETRY_INTERVAL = 10.0
"""Seconds between two starts, where a notifier ends by itself or an earlier one still works."""
_log = logging.getLogger(__name__)


class NotifierProcess:
    """Keeps a notifier at work on an exchange. `lock` is the file that a working one holds.

    `serves_all`: it tells of the jobs of all hosts.
    """

    def __init__(self, exchange: Path, lock: Path, *, serves_all: bool = False) -> None:
        self._exchange = exchange
        self._lock = lock
        self._options = ["--all"] if serves_all else []
        self._process: subprocess.Popen[bytes] | None = None
        self._start_at = 0.0

    def keep(self) -> None:
        """Start a notifier unless one works."""
        if self._process is not None and self._process.poll() is None:
            return
        if time.monotonic() < self._start_at:
            return
        self._start_at = time.monotonic() + RETRY_INTERVAL
        try:
            self._process = self._start()
        except OSError as error:
            _log.warning("no hooks are told of jobs: %s", error)

    def stop(self) -> None:
        """End the notifier. What it has not told, the next one does."""
        if self._process is not None:
            self._process.terminate()
            self._process.wait()

    def _start(self) -> subprocess.Popen[bytes] | None:
        """Return the new process; None if another one works on the exchange."""
        lock = os.open(self._lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            command = [sys.executable, "-m", MODULE, str(self._exchange), *self._options]
            command += ["--lock", str(lock), "--parent", str(os.getpid())]
            return subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                cwd="/",
                start_new_session=True,
                pass_fds=[lock],
            )
        except BlockingIOError:
            return None
        finally:
            os.close(lock)  # the notifier has its own descriptor, and with it the lock
