"""Turns changes of jobs into jupyter_events events, so that no browser ever polls.

The service's feed blocks, so it has a thread of its own. Where the workspace is on this side of a
gateway, this thread also delivers ended jobs.
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
from ..domain.job import Deleted, Job
from ..service.delivery import deliver_if_pulling
from ..service.port import Jobs

MAX_EVENTS = 4
"""Events of one job in a second. Its final state is always emitted."""
EVENT_INTERVAL = 1 / MAX_EVENTS
RETRY_INTERVAL = 2.0
"""Seconds before the feed is started again after the backend could not be reached."""


@dataclass
class _RateLimit:
    """The state of a job's previous event, and the times of its most recent events."""

    state: str = ""
    times: deque[float] = field(default_factory=lambda: deque(maxlen=MAX_EVENTS))

    def allows(self, state: str, moment: float) -> bool:
        """Tell whether an event may be emitted: a new state needs only room in the second."""
        if len(self.times) == MAX_EVENTS and moment - self.times[0] < 1.0:
            return False
        return not self.times or state != self.state or moment - self.times[-1] >= EVENT_INTERVAL


class Feed:
    """Calls `emit` with every job that changed or was deleted, from a thread of its own."""

    def __init__(
        self,
        jobs: Jobs,
        emit: Callable[[Job | Deleted], object],
        log: logging.Logger | Any,
    ) -> None:
        self._jobs = jobs
        self._emit = emit
        self._log = log
        self._stopping = threading.Event()
        self._limits: dict[str, _RateLimit] = {}
        self._pending: dict[str, Job] = {}

    def start(self) -> None:
        """Start a thread that does not keep the server from ending."""
        threading.Thread(target=self._run, name="jupyter-to-job-feed", daemon=True).start()

    def stop(self) -> None:
        """Ask the thread to end."""
        self._stopping.set()

    def _run(self) -> None:
        while not self._stopping.is_set():
            try:
                for change in self._jobs.changes():
                    if self._stopping.is_set():
                        return
                    if isinstance(change, Deleted):
                        self._pending.pop(change.name, None)
                        self._emit(change)
                    elif change is not None:
                        self._pending[change.name] = self._deliver_if_pulling(change)
                    self._emit_due()
            except JobsError as error:
                self._log.warning("The feed of jobs stopped: %s", error)
            except Exception:
                self._log.exception("The feed of jobs failed")
            self._stopping.wait(RETRY_INTERVAL)

    def _emit_due(self) -> None:
        """Emit the events that are due, and forget the limits of jobs quiet for a second."""
        moment = time.monotonic()
        for name, job in list(self._pending.items()):
            state = f"{job.state.value} {job.delivery.state.value}"
            limit = self._limits.setdefault(name, _RateLimit())
            if limit.allows(state, moment):
                self._emit(job)
                limit.state = state
                limit.times.append(moment)
                del self._pending[name]
        for name in self._limits.keys() - self._pending.keys():
            if moment - self._limits[name].times[-1] > 1.0:
                del self._limits[name]

    def _deliver_if_pulling(self, job: Job) -> Job:
        try:
            return deliver_if_pulling(self._jobs, job)
        except JobsError as error:
            if error.retryable:
                raise
            # Another try would fail, too: one job must not keep the feed from the others.
            self._log.warning("%s cannot be delivered: %s", job.name, error)
            return job
