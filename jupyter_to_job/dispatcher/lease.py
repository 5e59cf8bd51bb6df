"""The dispatcher's lease: the lock that it holds, its heartbeat, and its published slots."""

from __future__ import annotations

import contextlib
import logging
import os
import time

from job_runner.protocol.liveness import HEARTBEAT_INTERVAL

from ..backends.local.hosts import lock_path
from ..backends.local.slots import Slots, publish_slots
from ..exchange import FileExchange

RETRY_INTERVAL = 10.0
"""Seconds before slots are written again that could not be written."""
_log = logging.getLogger(__name__)


class Lease:
    """The time from taking the lock to giving it up; `lock` is its descriptor."""

    def __init__(
        self,
        exchange: FileExchange,
        host: str,
        lock: int,
        heartbeat_interval: float = HEARTBEAT_INTERVAL,
    ) -> None:
        self._exchange = exchange
        self._host = host
        self._lock = lock
        self._heartbeat_interval = heartbeat_interval
        self._published: object = None
        self._publish_at = 0.0
        self._is_shown = True
        self._send_heartbeat()

    def renew(self) -> bool:
        """Send a heartbeat if it is time. Return False if the lease is lost.

        It is lost when the lock's file was removed: another dispatcher may hold the new one.
        """
        if time.monotonic() - self._heartbeat_time < self._heartbeat_interval:
            return True
        self._send_heartbeat()
        with contextlib.suppress(FileNotFoundError):
            current = lock_path(self._exchange.root, self._host).stat()
            if os.path.samestat(current, os.fstat(self._lock)):
                return True
        _log.error("the lock was removed: the jobs are left to another dispatcher")
        return False

    def _send_heartbeat(self) -> None:
        self._heartbeat_time = time.monotonic()
        with contextlib.suppress(OSError):  # a full disk: readers still see the lock
            os.utime(self._lock)

    def publish_slots(self, slots: Slots) -> None:
        """Write the slots for readers, if they changed."""
        state = (dict(slots.machine.total), slots.machine.is_complete, dict(slots.allocations))
        if state == self._published or time.monotonic() < self._publish_at:
            return
        try:
            publish_slots(self._exchange.root, self._host, slots)
            self._published, self._is_shown = state, True
        except OSError as error:
            self._publish_at = time.monotonic() + RETRY_INTERVAL
            if self._is_shown:  # logged once, not at each try
                _log.warning("the slots are not shown: %s", error)
            self._is_shown = False
