"""What the controller does with its disk at intervals: measure, and remove what is not needed."""

from __future__ import annotations

import logging
import shutil
import threading
import time

from ...domain.errors import JobsError
from ...exchange import FileExchange
from ...exchange.retention import Policy, enforce
from ..metrics import Metrics
from .blobs import collect
from .budgets import Budgets

MIN_INTERVAL = 60.0
"""Seconds between two rounds, at least."""
SHARE = 100
"""A round may take one part in this many of the time."""
DISK_INTERVAL = 60.0
"""Seconds between two looks at how much of the disk is free, at most, while no round is made."""
_log = logging.getLogger(__name__)


class Housekeeping:
    """A thread that keeps house from `start` until `stop`.

    It measures what owners use, removes old blobs and what killed processes left behind, and clears
    jobs that were kept long enough.
    """

    def __init__(
        self, exchange: FileExchange, budgets: Budgets, policy: Policy, metrics: Metrics
    ) -> None:
        self._exchange = exchange
        self._budgets = budgets
        self._policy = policy
        self._metrics = metrics
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="housekeeping", daemon=True)

    def start(self) -> None:
        """Begin with a first round."""
        self._thread.start()

    def stop(self) -> None:
        """End it after the present round."""
        self._stop.set()

    def _run(self) -> None:
        interval = 0.0
        while self._wait(interval):
            begun = time.monotonic()
            try:
                self._exchange.remove_leftovers()
                removed = collect(self._exchange.root)
                if removed:
                    _log.info("%d blobs removed that nothing used any more", removed)
                for name in enforce(self._exchange, self._policy):
                    _log.info("%s: cleared", name)
                self._metrics.exchange_used.set(self._budgets.measure())
            except (OSError, JobsError):  # of the disk: it is tried again
                _log.exception("the disk cannot be tidied up")
            interval = max(MIN_INTERVAL, SHARE * (time.monotonic() - begun))

    def _wait(self, seconds: float) -> bool:
        """Wait for the next round, and look at the disk meanwhile. False: there is to be none."""
        end = time.monotonic() + seconds
        while not self._stop.is_set():
            self._measure_disk()
            remaining = end - time.monotonic()
            if remaining <= 0:
                return True
            self._stop.wait(min(remaining, DISK_INTERVAL))
        return False

    def _measure_disk(self) -> None:
        """Tell how much of the disk is free: an alert goes by it, so it waits for no round."""
        try:
            disk = shutil.disk_usage(self._exchange.root)
        except OSError:
            _log.exception("the disk's free space is not known")
            return
        # The reserve is told with the first figure: compared with none the disk would be full.
        self._metrics.exchange_free.set(disk.free)
        self._metrics.exchange_reserve.set(self._budgets.caps.reserve)
        self._metrics.exchange_size.set(disk.total)
