"""Turns changes of jobs into jupyter_events events, so that no browser ever polls.

The service's feed blocks, so it has a thread of its own; where the workspace is on this side of a
gateway, ended jobs are also delivered from here.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from ..domain.errors import JobsError
from ..domain.job import Deleted, DeliveryState, Job
from ..service.port import Jobs

MOST = 4
"""Events of one job in a second; its last state is always told."""
PERIOD = 1 / MOST
RETRY = 2.0
"""Seconds before the feed is taken up again after the backend could not be reached."""


@dataclass
class _RateLimit:
    """What was told of a job: the state last, and when its last events were."""

    mark: str = ""
    times: deque[float] = field(default_factory=lambda: deque(maxlen=MOST))

    def may_tell(self, mark: str, moment: float) -> bool:
        """Tell whether it is time: for a new state as soon as there is room in a second."""
        if len(self.times) == MOST and moment - self.times[0] < 1.0:
            return False
        return not self.times or mark != self.mark or moment - self.times[-1] >= PERIOD


class Feed:
    """Calls `tell` with every job that changed or was deleted, from a thread of its own."""

    def __init__(
        self,
        jobs: Jobs,
        tell: Callable[[Job | Deleted], object],
        log: logging.Logger | Any,
    ) -> None:
        self._jobs = jobs
        self._emit = tell
        self._log = log
        self._stopping = threading.Event()
        self._told: dict[str, _RateLimit] = {}
        self._pending: dict[str, Job] = {}

    def start(self) -> None:
        """Begin, in a thread that does not keep the server from ending."""
        threading.Thread(target=self._run, name="jupyter-to-job-feed", daemon=True).start()

    def stop(self) -> None:
        """End soon."""
        self._stopping.set()

    def _run(self) -> None:
        while not self._stopping.is_set():
            try:
                for news in self._jobs.changes():
                    if self._stopping.is_set():
                        return
                    if isinstance(news, Deleted):
                        self._pending.pop(news.name, None)
                        self._emit(news)
                    elif news is not None:
                        self._pending[news.name] = self._pulled(news)
                    self._tell()
            except JobsError as error:
                self._log.warning("The feed of jobs stopped: %s", error)
            except Exception:
                self._log.exception("The feed of jobs failed")
            self._stopping.wait(RETRY)

    def _tell(self) -> None:
        """Emit what is due, and forget those of whom nothing was to tell for a second."""
        moment = time.monotonic()
        for name, job in list(self._pending.items()):
            mark = f"{job.state.value} {job.delivery.state.value}"
            told = self._told.setdefault(name, _RateLimit())
            if told.may_tell(mark, moment):
                self._emit(job)
                told.mark = mark
                told.times.append(moment)
                del self._pending[name]
        for name in self._told.keys() - self._pending.keys():
            if moment - self._told[name].times[-1] > 1.0:
                del self._told[name]

    def _pulled(self, job: Job) -> Job:
        """Deliver an ended job from here, where nobody else reaches the workspace."""
        pending = job.state.final and job.delivery.state is DeliveryState.PENDING
        if not (pending and self._jobs.pulls):
            return job
        try:
            return self._jobs.deliver(job.name)
        except JobsError as error:
            if error.retryable:
                raise
            # It would be so again: one job must not keep the feed from the others.
            self._log.warning("%s cannot be delivered: %s", job.name, error)
            return job
