"""Real processes that tests start, find and end: by the paths on their command lines."""

from __future__ import annotations

import contextlib
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import psutil

from job_runner.protocol.journal.journal import read_journal

BOUND = 60.0
Found = TypeVar("Found")


def until(
    condition: Callable[[], Found | None], what: str, bound: float = BOUND, pause: float = 0.02
) -> Found:
    """Wait for a condition, looked at after each pause; return its value once it is true."""
    end = time.monotonic() + bound
    while time.monotonic() < end:
        value = condition()
        if value:
            return value
        time.sleep(pause)
    raise AssertionError(f"not within {bound} s: {what}")


def processes(module: str, path: Path) -> list[psutil.Process]:
    """Return the processes that run `python -m module` on `path`, or on something below it."""
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            line = process.cmdline()
            below = any(part.startswith(str(path)) for part in line)
            if below and module in line and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
    return found


def end_all(path: Path) -> None:
    """Kill whatever dispatcher or runner works on an exchange, and remove what is left of it."""
    modules = ("jupyter_to_job.dispatcher", "jupyter_to_job.notifications", "job_runner")
    for module in modules:
        for process in processes(module, path):
            kill(process)
    for journal in path.rglob("journal"):
        started = next(iter(read_journal(journal)), None)
        if started is not None and started.record.get("sockets"):
            shutil.rmtree(started.record["sockets"], ignore_errors=True)


def kill(process: psutil.Process) -> None:
    """Kill a process, and wait until it is gone."""
    with contextlib.suppress(psutil.NoSuchProcess):
        process.kill()
    until(lambda: gone(process), f"the end of {process.pid}")


def gone(process: psutil.Process) -> bool:
    """Tell whether a process has ended; whether its parent buried it is not our business.

    A thread of a killed process may be in a write to the disk, and hold files open until that ends.
    """
    try:
        if not process.is_running():
            return True
        return process.status() == psutil.STATUS_ZOMBIE and process.num_threads() <= 1
    except psutil.NoSuchProcess:
        return True
