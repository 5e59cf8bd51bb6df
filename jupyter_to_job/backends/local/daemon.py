"""Starting the dispatcher when it is needed, and telling whether one is there.

The lock is the truth: a dispatcher holds it from before its first scan until it leaves, and whoever
starts a second one only makes a process that finds it taken and goes.
"""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
from pathlib import Path

FOLDER = ".dispatcher"
LOCK = "lock"
LOG = "log"


def lock_path(exchange: Path) -> Path:
    """Return the lock that a living dispatcher of this exchange holds."""
    return exchange / FOLDER / LOCK


def try_lock(exchange: Path) -> int | None:
    """Take the dispatcher's lock; return its descriptor, or None if another holds it."""
    lock_path(exchange).parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    descriptor = os.open(lock_path(exchange), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        return None
    return descriptor


def ensure_dispatcher(exchange: Path, capacity: str) -> bool:
    """Start a dispatcher unless one is there: a session of its own, which outlives its starter.

    True if one was started.
    """
    descriptor = try_lock(exchange)
    if descriptor is None:
        return False
    os.close(descriptor)
    arguments = [sys.executable, "-m", "jupyter_to_job.dispatcher", str(exchange)]
    if capacity:
        arguments += ["--capacity", capacity]
    with (exchange / FOLDER / LOG).open("ab") as log:
        subprocess.Popen(
            arguments,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            cwd="/",
            start_new_session=True,
        )
    return True
