"""Which process runs an attempt, and whether it is alive. The lock decides.

An attempt's directory is made under another name, locked, and then renamed to its number: so no
attempt is ever visible without its lock held, and two runners cannot both get one number.

Not every network file system shows a lock to other hosts. So the holder also touches its file every
`HEARTBEAT_INTERVAL` seconds, the heartbeat. Another host trusts a free lock only after
`HEARTBEAT_TIMEOUT`.
"""

from __future__ import annotations

import fcntl
import functools
import os
import secrets
import shutil
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..host import proc
from . import documents, layout

HEARTBEAT_INTERVAL = 10.0
"""Seconds between two touches of a held lock."""
HEARTBEAT_TIMEOUT = 120.0
"""Seconds after the last heartbeat for which a run of another host counts as alive."""

_DRAFT = ".attempt-"


class AttemptExists(Exception):
    """Another runner has this attempt's number."""


class AttemptAlive(Exception):
    """The attempt's runner is or may be alive: by its lock, or by another host's heartbeat."""


@dataclass
class Claim:
    """The lock on an attempt, held until `release` or the end of the process.

    `last_heartbeat` is the previous holder's, in unix seconds; None if there was none.
    """

    directory: Path
    descriptor: int
    last_heartbeat: float | None = None
    finishing: int | None = None

    def write_heartbeat(self) -> None:
        """Show other hosts that the lock is held."""
        with suppress(OSError):  # on a full or lost disk the next write reports it
            os.utime(self.descriptor)

    @contextmanager
    def keep_heartbeat(self) -> Iterator[None]:
        """Write a heartbeat every `HEARTBEAT_INTERVAL` seconds, in a thread of its own."""
        stopped = threading.Event()

        def write_heartbeats() -> None:
            while not stopped.wait(HEARTBEAT_INTERVAL):
                self.write_heartbeat()

        thread = threading.Thread(target=write_heartbeats, name="heartbeat", daemon=True)
        thread.start()
        try:
            yield
        finally:
            stopped.set()
            thread.join()

    def release(self) -> None:
        """Give up the lock: from now on the attempt counts as ended or dead."""
        os.close(self.descriptor)
        if self.finishing is not None:
            os.close(self.finishing)


def claim_attempt(job_dir: Path, number: int) -> Claim:
    """Create attempt `number` with its lock held. Raises AttemptExists."""
    target = layout.attempt_dir(job_dir, number)
    draft = job_dir / f"{_DRAFT}{secrets.token_hex(8)}"
    draft.mkdir(mode=0o700)
    descriptor = -1
    try:
        try:
            descriptor = _open_lock(draft)
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            documents.write_document(draft / layout.RUNNER, describe_process())
            (draft / layout.JOURNAL).mkdir(mode=0o700)
            draft.rename(target)
        except OSError as error:  # a faster runner may have swept the draft away
            if descriptor >= 0:
                os.close(descriptor)
            if target.exists():
                raise AttemptExists(f"{target.name} exists already") from error
            raise
        documents.sync_directory(job_dir)
        return Claim(target, descriptor)
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def remove_claim_drafts(job_dir: Path) -> None:
    """Remove the drafts of runners that were killed while they claimed an attempt of this job.

    Only the holder of the latest attempt may call it: unfinished claims are too late by then.
    """
    for draft in job_dir.glob(f"{_DRAFT}*"):
        shutil.rmtree(draft, ignore_errors=True)


def take_over(attempt_dir: Path) -> Claim:
    """Lock a dead attempt, to finish it. Raises AttemptAlive, also if it is being finished.

    The runner's lock is taken as a shared one, so that observers still see the attempt as dead.
    """
    heartbeat = last_heartbeat(attempt_dir)
    if _has_remote_heartbeat(attempt_dir, heartbeat):
        raise AttemptAlive(f"{attempt_dir.name} is running on another host")
    finishing = _open_lock(attempt_dir, layout.FINISHING)
    try:
        fcntl.flock(finishing, fcntl.LOCK_EX | fcntl.LOCK_NB)
        descriptor = _open_lock(attempt_dir)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            raise
    except BlockingIOError as error:
        os.close(finishing)
        raise AttemptAlive(f"{attempt_dir.name} is running, or being finished") from error
    # No heartbeat: if this fails at once, other hosts must be able to try next.
    return Claim(attempt_dir, descriptor, heartbeat, finishing)


def is_alive(attempt_dir: Path) -> bool:
    """Tell whether the attempt's runner is alive.

    On this host the lock tells. Another host's attempt may have a free lock and a heartbeat.
    """
    try:
        # Nothing is created, so the file system may be mounted read-only.
        flags = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC
        descriptor = os.open(attempt_dir / layout.LOCK, flags)
    except FileNotFoundError:
        return False
    try:
        # A shared lock, so that two observers do not take each other for the runner.
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        last_heartbeat = os.fstat(descriptor).st_mtime
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return _has_remote_heartbeat(attempt_dir, last_heartbeat)


def describe_process() -> dict[str, Any]:
    """Return what identifies this process among all others."""
    pid = os.getpid()
    return {**_describe_host(), "pid": pid, "start_time": _start_time(pid)}


def is_same_process(runner: dict[str, Any]) -> bool:
    """Tell whether the process that a `runner.json` describes still exists on this host.

    Call it before sending a signal: another process may have the same id by now.
    """
    pid = runner.get("pid")
    start = _start_time(pid) if isinstance(pid, int) and ran_on_this_host(runner) else None
    return start is not None and start == runner.get("start_time")


def ran_on_this_host(runner: dict[str, Any]) -> bool:
    """Tell whether `runner.json` describes a process of this host, which is up since then."""
    return all(runner.get(key) == value for key, value in _describe_host().items())


def _describe_host() -> dict[str, Any]:
    return {"host": socket.gethostname(), "boot_id": _boot_id()}


@functools.cache
def _boot_id() -> str | None:
    if proc.PROC.exists():
        return (proc.PROC / "sys/kernel/random/boot_id").read_text().strip()
    return _run_command("sysctl", "-n", "kern.bootsessionuuid")  # macOS


def _start_time(pid: int) -> int | str | None:
    """Return a process's start in clock ticks since boot (proc(5), field 22 of stat).

    Without /proc it is the time of day, as `ps` prints it. None if there is no such process.
    """
    if not proc.PROC.exists():
        return _run_command("ps", "-o", "lstart=", "-p", str(pid))
    try:
        return int(proc.stat_fields(pid)[proc.START_TIME])
    except (FileNotFoundError, ProcessLookupError):
        return None


def _run_command(*command: str) -> str | None:
    """Return what a program prints; None if it prints nothing, or is not installed."""
    import subprocess

    try:
        completed = subprocess.run(command, capture_output=True, text=True, check=False, timeout=10)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return completed.stdout.strip() or None


def last_heartbeat(attempt_dir: Path) -> float | None:
    """Return when the holder of an attempt's lock last touched it, in unix seconds, if ever."""
    with suppress(FileNotFoundError):
        return (attempt_dir / layout.LOCK).stat().st_mtime
    return None


def _has_remote_heartbeat(attempt_dir: Path, last_heartbeat: float | None) -> bool:
    """Tell whether another host runs the attempt and wrote a heartbeat in time."""
    if last_heartbeat is None or time.time() - last_heartbeat > HEARTBEAT_TIMEOUT:
        return False
    if (attempt_dir / layout.OUTCOME).exists():
        return False
    try:
        runner = documents.read_document(attempt_dir / layout.RUNNER) or {}
    except documents.DocumentError:
        return False  # the host is unknown, so the lock alone decides
    host = runner.get("host")
    return host is not None and host != _describe_host()["host"]


def _open_lock(directory: Path, name: str = layout.LOCK) -> int:
    # Close-on-exec: a kernel that inherited the lock would keep a dead runner alive.
    return os.open(directory / name, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
