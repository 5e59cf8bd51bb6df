"""The hosts that share an exchange: each has a dispatcher, with a lock, a log and a heartbeat.

A free lock (`flock`) proves nothing about another host, because not every network file system
carries locks across. So a dispatcher also touches its lock every `HEARTBEAT_INTERVAL` seconds, and
a host is silent only when that has stopped. A watcher measures with its own monotonic clock how
long the heartbeat is unchanged: no wrong clock makes a host silent.
"""

from __future__ import annotations

import enum
import errno
import fcntl
import os
import socket
import time
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote

from job_runner.protocol.liveness import HEARTBEAT_INTERVAL, HEARTBEAT_TIMEOUT

FOLDER = ".dispatcher"
LOCK = "lock"
NOTIFIER_LOCK = "notifier.lock"
"""The lock of the host's notifier, which may outlive its dispatcher."""
LOG = "log"
SLOTS = "slots.json"
_LOCK_TIMEOUT = 0.2
"""Seconds to wait for a process that holds the lock for a moment, in order to test it."""


def this_host() -> str:
    """Return the name of this host in requests and runner documents."""
    return socket.gethostname()


def host_folder(exchange: Path, host: str) -> Path:
    """Return the folder of a host's dispatcher: locks, log and slots."""
    name = quote(host, safe="")
    return exchange / FOLDER / (name if name.strip(".") else f"_{name}")


def lock_path(exchange: Path, host: str) -> Path:
    """Return the lock that a living dispatcher of a host holds."""
    return host_folder(exchange, host) / LOCK


def last_line(log: Path) -> str:
    """Return the last line of a log that is not blank, "" if there is none."""
    try:
        lines = log.read_text(errors="replace").strip().splitlines()
    except OSError:
        return ""
    return lines[-1].strip() if lines else ""


def take_lock(exchange: Path, host: str) -> int | None:
    """Take the dispatcher's lock; return its descriptor, or None if a dispatcher has it."""
    path = lock_path(exchange, host)
    exchange.mkdir(mode=0o700, parents=True, exist_ok=True)
    for folder in (path.parent.parent, path.parent):
        folder.mkdir(mode=0o700, exist_ok=True)
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    end = time.monotonic() + _LOCK_TIMEOUT
    while not _lock(descriptor, fcntl.LOCK_EX):
        # A shared lock is possible only beside the shared lock of a process that tests the lock.
        if not _lock(descriptor, fcntl.LOCK_SH) or time.monotonic() > end:
            os.close(descriptor)
            return None
        fcntl.flock(descriptor, fcntl.LOCK_UN)
        time.sleep(_LOCK_TIMEOUT / 100)
    return descriptor


def has_dispatcher(exchange: Path, host: str) -> bool:
    """Tell whether a dispatcher of `host` holds its lock, as far as this host can see locks."""
    return _is_held(lock_path(exchange, host))


def has_notifier(exchange: Path, host: str) -> bool:
    """Tell the same of the notifier of `host`: it may go on when the dispatcher has ended."""
    return _is_held(host_folder(exchange, host) / NOTIFIER_LOCK)


def _is_held(lock: Path) -> bool:
    try:
        descriptor = os.open(lock, os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        return not _lock(descriptor, fcntl.LOCK_SH)
    finally:
        os.close(descriptor)


def last_heartbeat(exchange: Path, host: str) -> float | None:
    """Return the time of the last heartbeat of a host's dispatcher in unix seconds, if any."""
    try:
        return lock_path(exchange, host).stat().st_mtime
    except OSError:
        return None


def is_recent(exchange: Path, host: str, seconds: float) -> bool:
    """Tell whether a host had a heartbeat less than `seconds` ago, by the wall clocks.

    That is good enough for a message. `HostWatch` decides whether to take over a host's jobs.
    """
    heartbeat = last_heartbeat(exchange, host)
    is_young = heartbeat is not None and time.time() - heartbeat < seconds
    return is_young or has_dispatcher(exchange, host)


def _lock(descriptor: int, kind: int) -> bool:
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in (errno.EWOULDBLOCK, errno.EACCES):
            return False
        raise
    return True


class HostStatus(enum.Enum):
    """Whether another host's dispatcher serves its jobs."""

    SERVED = "served"
    SILENT = "silent"
    UNKNOWN = "unknown"
    """No heartbeat was noticed yet, nor was there none for long enough."""


@dataclass(frozen=True)
class _Heartbeat:
    """A heartbeat, and since when (monotonic seconds) it is the latest one.

    `changed`: that one was seen to arrive, or a dispatcher held the lock.
    """

    time: float | None
    since: float
    changed: bool = False


@dataclass
class HostWatch:
    """Watches other hosts for one dispatcher."""

    exchange: Path
    silence: float = HEARTBEAT_TIMEOUT
    heartbeat_interval: float = HEARTBEAT_INTERVAL
    _heartbeats: dict[str, _Heartbeat] = field(default_factory=dict)

    def status_of(self, host: str) -> HostStatus:
        """Return whether a dispatcher serves a host's jobs."""
        moment, heartbeat = time.monotonic(), last_heartbeat(self.exchange, host)
        latest = self._heartbeats.setdefault(host, _Heartbeat(heartbeat, moment))
        is_served = has_dispatcher(self.exchange, host)
        if is_served or heartbeat != latest.time:
            latest = self._heartbeats[host] = _Heartbeat(heartbeat, moment, changed=True)
        if is_served:
            return HostStatus.SERVED
        quiet = moment - latest.since
        if quiet >= self.silence:
            return HostStatus.SILENT
        if quiet < 1.5 * self.heartbeat_interval:
            return HostStatus.SERVED if latest.changed else HostStatus.UNKNOWN
        # It is unchanged for longer than the interval: its age before the watch began counts, too.
        is_old = heartbeat is not None and time.time() - heartbeat >= self.silence
        return HostStatus.SILENT if is_old else HostStatus.UNKNOWN
