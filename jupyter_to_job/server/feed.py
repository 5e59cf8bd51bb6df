"""Turns changes of jobs into jupyter_events events, so that no browser ever polls.

The service's feed blocks, so it has a thread of its own; where the workspace is on this side of a
gateway, ended jobs are also delivered from here.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from typing import Any

from ..domain.errors import JobsError
from ..domain.job import DeliveryState, Job
from ..service.port import Jobs

PERIOD = 0.25
"""Seconds between two events of one job, at least; its last state is always told."""
RETRY = 2.0
"""Seconds before the feed is taken up again after the backend could not be reached."""


class Feed:
    """Calls `tell(data=job)` for every change of a job, from a thread of its own."""

    def __init__(self, jobs: Jobs, tell: Callable[..., object], log: logging.Logger | Any) -> None:
        self._jobs = jobs
        self._emit = tell
        self._log = log
        self._stopping = threading.Event()
        self._told: dict[str, tuple[float, str]] = {}
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
                for job in self._jobs.changes():
                    if self._stopping.is_set():
                        return
                    if job is not None:
                        self._pending[job.name] = self._pulled(job)
                    self._tell()
            except JobsError as error:
                self._log.warning("The feed of jobs stopped: %s", error)
            except Exception:
                self._log.exception("The feed of jobs failed")
            self._stopping.wait(RETRY)

    def _tell(self) -> None:
        """Emit what is due: at once if the state changed, else at most once a period."""
        moment = time.monotonic()
        for name, job in list(self._pending.items()):
            mark = f"{job.state.value} {job.delivery.state.value}"
            last, told = self._told.get(name, (0.0, ""))
            if mark != told or moment - last >= PERIOD:
                self._emit(data=job.to_json())
                self._told[name] = (moment, mark)
                del self._pending[name]
                if job.decided:
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
