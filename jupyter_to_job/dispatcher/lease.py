"""What a dispatcher shows of itself: the lock that it holds, signs of life, and its slots."""

from __future__ import annotations

import contextlib
import logging
import os
import time

from job_runner.protocol.liveness import HEARTBEAT_INTERVAL

from ..backends.local.hosts import lock_path
from ..backends.local.slots import Slots, publish
from ..exchange import FileExchange

_log = logging.getLogger(__name__)


class Lease:
    """One term of office: from taking the lock to giving it up."""

    def __init__(
        self, exchange: FileExchange, host: str, lock: int, beat: float = HEARTBEAT_INTERVAL
    ) -> None:
        self._exchange = exchange
        self._host = host
        self._lock = lock
        self._beat = beat
        self._shown: object = None
        self._beat_now()

    def keep(self) -> bool:
        """Give a sign of life if it is time; False if the lock that we hold is not *the* lock.

        Somebody removed its file then, and another dispatcher may hold the new one.
        """
        if time.monotonic() - self._beaten < self._beat:
            return True
        self._beat_now()
        ours = os.fstat(self._lock)
        try:
            there = lock_path(self._exchange.root, self._host).stat()
        except FileNotFoundError:
            there = None
        if there is not None and (there.st_dev, there.st_ino) == (ours.st_dev, ours.st_ino):
            return True
        _log.error("the lock was removed: the jobs are left to another dispatcher")
        return False

    def _beat_now(self) -> None:
        self._beaten = time.monotonic()
        with contextlib.suppress(OSError):  # a full disk: our lock still speaks for us
            os.utime(self._lock)

    def show(self, slots: Slots) -> None:
        """Tell readers of the slots, if they changed."""
        now = (dict(slots.machine.total), slots.machine.complete, dict(slots.held))
        if now == self._shown:
            return
        try:
            publish(self._exchange.root, self._host, slots)
            self._shown = now
        except OSError as error:
            _log.warning("the slots are not shown: %s", error)
