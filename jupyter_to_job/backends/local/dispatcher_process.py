"""Starting this host's dispatcher when it is needed.

The starter takes the lock and passes it to the dispatcher that it starts. So the lock is taken from
that moment on: of twenty submissions at once one starts a process.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from ...domain.environment import variables_for_dispatchers
from .hosts import LOG, host_folder, take_lock, this_host

MAX_LOG = 1 << 20
"""Bytes of the log. A new dispatcher renames a larger one to `log.1`, and begins another."""

_PADDING = 64
"""Characters by which the command line of a runner that is a fork may exceed the dispatcher's."""


def ensure_dispatcher(exchange: Path, capacity: str) -> subprocess.Popen[bytes] | None:
    """Start a dispatcher unless one runs: a session of its own, which outlives its starter.

    Return its process, or None if one runs. Raises OSError.
    """
    lock = take_lock(exchange, this_host())
    if lock is None:
        return None
    arguments = [sys.executable, "-m", "jupyter_to_job.dispatcher", str(exchange)]
    arguments += ["--lock", str(lock)]
    if capacity:
        arguments += ["--capacity", capacity]
    arguments += ["--room", "." * _PADDING]
    try:
        with os.fdopen(_open_log(exchange), "wb") as log:
            return subprocess.Popen(
                arguments,
                env=variables_for_dispatchers(os.environ),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd="/",
                start_new_session=True,
                pass_fds=[lock],
            )
    finally:
        os.close(lock)  # the dispatcher has its own descriptor, and with it the lock


def _open_log(exchange: Path) -> int:
    """Open the log to append to. Only the holder of the dispatcher's lock may do so."""
    path = host_folder(exchange, this_host()) / LOG
    if path.exists() and path.stat().st_size > MAX_LOG:
        path.replace(path.with_name(f"{LOG}.1"))
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
