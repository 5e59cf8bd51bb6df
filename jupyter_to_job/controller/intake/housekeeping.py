"""What the controller does with its disk at intervals: measure, and remove what is not needed."""

from __future__ import annotations

import logging
import shutil
import threading
import time
from collections.abc import Callable
from functools import partial

from ...exchange import FileExchange
from ...exchange.ballast import hold_ballast
from ...exchange.retention import Policy, enforce
from ..metrics import Metrics
from .blobs import collect
from .budgets import Budgets

MIN_INTERVAL = 60.0
"""Seconds between two rounds, at least."""
SHARE = 100
"""A round may take one part in this many of the time."""
DISK_INTERVAL = 60.0
"""Seconds between two looks at how much of the disk is free."""
_log = logging.getLogger(__name__)


class Housekeeping:
    """Two threads that keep house from `start` until `stop`.

    One measures what owners use, removes old blobs and what killed processes left behind, and
    clears jobs that were kept long enough. It measures before all else, too: until then only what
    is new counts. The other looks at how much of the disk is free: an alert goes by it, and a round
    may take many minutes.
    """

    def __init__(
        self, exchange: FileExchange, budgets: Budgets, policy: Policy, metrics: Metrics
    ) -> None:
        self._exchange = exchange
        self._budgets = budgets
        self._policy = policy
        self._metrics = metrics
        self._stop = threading.Event()

    def start(self) -> None:
        """Begin with a first round, and a first look at the disk."""
        for run in (self._run, self._watch_disk):
            threading.Thread(target=run, name="housekeeping", daemon=True).start()

    def stop(self) -> None:
        """End it after the present round."""
        self._stop.set()

    def _run(self) -> None:
        self._try(self._measure, "counted")
        interval = 0.0
        while not self._stop.wait(interval):
            begun = time.monotonic()
            self._try(self._tidy, "tidied up")
            self._try(partial(hold_ballast, self._exchange.root), "given its ballast")
            self._try(self._measure, "counted")
            interval = max(MIN_INTERVAL, SHARE * (time.monotonic() - begun))

    def _try(self, step: Callable[[], object], what: str) -> None:
        """Take a step, `what` in the log. Its error ends neither the others nor later rounds."""
        try:
            step()
        except Exception:
            _log.exception("the disk cannot be %s", what)

    def _measure(self) -> None:
        self._metrics.exchange_used.set(self._budgets.measure())

    def _tidy(self) -> None:
        self._exchange.remove_leftovers()
        removed = collect(self._exchange.root)
        if removed:
            _log.info("%d blobs removed that nothing used any more", removed)
        for name in enforce(self._exchange, self._policy):
            _log.info("%s: cleared", name)

    def _watch_disk(self) -> None:
        interval = 0.0
        while not self._stop.wait(interval):
            interval = DISK_INTERVAL
            self._measure_disk()

    def _measure_disk(self) -> None:
        try:
            free, size = self._budgets.free(), shutil.disk_usage(self._exchange.root).total
        except OSError:
            _log.exception("the disk's free space is not known")
            return
        # The reserve is told with the first figure: compared with none the disk would be full.
        self._metrics.exchange_free.set(free)
        self._metrics.exchange_reserve.set(self._budgets.caps.reserve)
        self._metrics.exchange_size.set(size)
