"""The hosts that share an exchange: each has a dispatcher, with a lock, a log and a sign of life.

A lock (`flock`) that looks free proves nothing about another host, because not every network file
system carries it across; so a dispatcher also touches its lock every `HEARTBEAT_INTERVAL` seconds,
and a host counts as silent only when that has stopped. Whoever judges another host watches for
change with its own clock: neither a clock that is wrong there nor one that jumps here makes a host
silent.
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
LOG = "log"
SLOTS = "slots.json"
_PATIENCE = 0.2
"""Seconds within which nobody who only looks holds a lock twice in a row."""


def this_host() -> str:
    """Return the name by which requests and runs say that they are this host's."""
    return socket.gethostname()


def host_folder(exchange: Path, host: str) -> Path:
    """Return where a host's dispatcher has its lock, its log and its slots."""
    name = quote(host, safe="")
    return exchange / FOLDER / (name if name.strip(".") else f"_{name}")


def lock_path(exchange: Path, host: str) -> Path:
    """Return the lock that a living dispatcher of a host holds."""
    return host_folder(exchange, host) / LOCK


def take_lock(exchange: Path, host: str) -> int | None:
    """Take the dispatcher's lock; return its descriptor, or None if a dispatcher has it."""
    path = lock_path(exchange, host)
    exchange.mkdir(mode=0o700, parents=True, exist_ok=True)
    for folder in (path.parent.parent, path.parent):
        folder.mkdir(mode=0o700, exist_ok=True)
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    end = time.monotonic() + _PATIENCE
    while not _lock(descriptor, fcntl.LOCK_EX):
        # A shared lock beside the other one: that was somebody who only looks.
        if not _lock(descriptor, fcntl.LOCK_SH) or time.monotonic() > end:
            os.close(descriptor)
            return None
        fcntl.flock(descriptor, fcntl.LOCK_UN)
        time.sleep(_PATIENCE / 100)
    return descriptor


def has_dispatcher(exchange: Path, host: str) -> bool:
    """Tell whether a dispatcher of `host` holds its lock, as far as locks are seen from here."""
    try:
        descriptor = os.open(lock_path(exchange, host), os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        return not _lock(descriptor, fcntl.LOCK_SH)
    finally:
        os.close(descriptor)


def last_heartbeat(exchange: Path, host: str) -> float | None:
    """Return when the host's dispatcher last gave a sign of life (unix seconds), None if never."""
    try:
        return lock_path(exchange, host).stat().st_mtime
    except OSError:
        return None


def is_recent(exchange: Path, host: str, seconds: float) -> bool:
    """Tell whether a host gave a sign of life less than `seconds` ago, by the clocks on the wall.

    Good enough to tell a reader something; `Watch` is what takes a host's jobs away from it.
    """
    sign = last_heartbeat(exchange, host)
    return has_dispatcher(exchange, host) or (sign is not None and time.time() - sign < seconds)


def _lock(descriptor: int, kind: int) -> bool:
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in (errno.EWOULDBLOCK, errno.EACCES):
            return False
        raise
    return True


class HostStatus(enum.Enum):
    """What is known of another host."""

    SERVED = "served"
    SILENT = "silent"
    UNKNOWN = "unknown"
    """No sign of life yet, and not long enough without one."""


@dataclass
class _Watched:
    sign: float | None
    since: float
    changed: bool = False


@dataclass
class HostWatch:
    """Watches other hosts for one dispatcher."""

    exchange: Path
    silence: float = HEARTBEAT_TIMEOUT
    beat: float = HEARTBEAT_INTERVAL
    _known: dict[str, _Watched] = field(default_factory=dict)

    def sight(self, host: str) -> HostStatus:
        """Say whether somebody serves a host's jobs."""
        now, sign = time.monotonic(), last_heartbeat(self.exchange, host)
        seen = self._known.setdefault(host, _Watched(sign, now))
        if has_dispatcher(self.exchange, host):
            self._known[host] = _Watched(sign, now, changed=True)
            return HostStatus.SERVED
        if sign != seen.sign:
            self._known[host] = seen = _Watched(sign, now, changed=True)
        quiet = now - seen.since
        if quiet >= self.silence:
            return HostStatus.SILENT
        if quiet < 1.5 * self.beat:
            return HostStatus.SERVED if seen.changed else HostStatus.UNKNOWN
        # Unchanged for longer than a beat: then its age counts from before we looked.
        old = sign is not None and time.time() - sign >= self.silence
        return HostStatus.SILENT if old else HostStatus.UNKNOWN
