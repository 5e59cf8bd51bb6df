"""Who runs an attempt, and whether it still does. The lock is the truth.

An attempt's directory is made under another name, locked, and then renamed to its number: so no
attempt is ever visible without its lock held, and two runners cannot both get one number.
"""

from __future__ import annotations

import fcntl
import os
import secrets
import shutil
import socket
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from . import documents, layout

_PROBE = 0.2
"""Seconds within which nobody who only looks holds a lock twice in a row."""


class AttemptExists(Exception):
    """Another runner has this attempt's number."""


class AttemptAlive(Exception):
    """The attempt's lock is held: its runner lives."""


@dataclass
class Claim:
    """The lock on an attempt, held until `release` or the end of the process."""

    directory: Path
    descriptor: int

    def release(self) -> None:
        """Give up the lock: from now on the attempt counts as ended or dead."""
        os.close(self.descriptor)


def claim_attempt(job_dir: Path, number: int) -> Claim:
    """Create attempt `number` with its lock held. Raises AttemptExists."""
    target = layout.attempt_dir(job_dir, number)
    draft = job_dir / f".attempt-{secrets.token_hex(8)}"
    draft.mkdir(mode=0o700)
    try:
        descriptor = _open_lock(draft)
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        documents.write_document(draft / layout.RUNNER, describe_process())
        (draft / layout.JOURNAL).mkdir(mode=0o700)
        try:
            draft.rename(target)
        except OSError as error:
            os.close(descriptor)
            if target.exists():
                raise AttemptExists(f"{target.name} exists already") from error
            raise
        documents.sync_directory(job_dir)
        return Claim(target, descriptor)
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def take_over(attempt_dir: Path) -> Claim:
    """Lock a dead attempt, to finish it. Raises AttemptAlive."""
    descriptor = _open_lock(attempt_dir)
    patience = time.monotonic() + _PROBE
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return Claim(attempt_dir, descriptor)
        except BlockingIOError as error:
            # Someone who only looks (`is_alive`) holds the lock for an instant as well.
            if time.monotonic() > patience:
                os.close(descriptor)
                raise AttemptAlive(f"{attempt_dir.name} is running") from error
            time.sleep(_PROBE / 10)


def is_alive(attempt_dir: Path) -> bool:
    """Tell whether the attempt's runner (or somebody finishing it) holds its lock."""
    try:
        descriptor = os.open(attempt_dir / layout.LOCK, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        # A shared lock: two observers at once must not take each other for the runner.
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False


def describe_process() -> dict[str, Any]:
    """Return what tells this process from every other: for people and for adopting it."""
    pid = os.getpid()
    return {**_describe_host(), "pid": pid, "start_time": _start_time(pid)}


def is_that_process(runner: dict[str, Any]) -> bool:
    """Tell whether the process that a `runner.json` describes still is one of this host.

    Before a signal is sent: a number alone may belong to another process by now.
    """
    here = _describe_host()
    if any(runner.get(key) != value for key, value in here.items()):
        return False
    start = _start_time(int(runner["pid"]))
    return start is not None and start == runner.get("start_time")


def _describe_host() -> dict[str, Any]:
    boot_id = Path("/proc/sys/kernel/random/boot_id")
    known = boot_id.read_text().strip() if boot_id.exists() else None
    return {"host": socket.gethostname(), "boot_id": known}


def _start_time(pid: int) -> int | None:
    """Return a process's start in clock ticks since boot (proc(5), field 22 of stat)."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return None
    return int(stat.rpartition(")")[2].split()[19])


def _open_lock(directory: Path) -> int:
    # Close-on-exec: a kernel that inherited the lock would keep a dead runner alive.
    return os.open(directory / layout.LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
