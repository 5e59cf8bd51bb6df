"""Turns changes of jobs into jupyter_events events, so that no browser ever polls.

The service's feed blocks, so it has a thread of its own. Where the workspace is on this side of a
gateway, `puller` hears of each job, too, and publishes its result.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from itertools import islice
from typing import Any

from ..domain.errors import JobsError, NotFound
from ..domain.job import Deleted, Job
from ..service.port import Jobs
from .puller import ResultPuller

MAX_EVENTS = 4
"""Events of one job in a second. Its final state is always emitted."""
EVENT_INTERVAL = 1 / MAX_EVENTS
RETRY_INTERVAL = 2.0
"""Seconds before the feed is started again after the backend could not be reached."""
LOOK_DELAY = 5.0
"""Seconds in which a feed that has begun tells of the jobs that are open, one after the other. The
feed of a controller that has just started is silent at first."""
MAX_LOOKS = 10
"""Jobs that are asked for one after the other, before the feed is listened to again."""


class Feed:
    """Calls `emit` with every job that changed or was deleted, from a thread of its own."""

    def __init__(
        self,
        jobs: Jobs,
        emit: Callable[[Job | Deleted], object],
        log: logging.Logger | Any,
        puller: ResultPuller,
    ) -> None:
        self._jobs = jobs
        self._puller = puller
        self._emit = emit
        self._log = log
        self._stopping = threading.Event()
        self._pending: dict[str, Job] = {}
        self._open: set[str] = set()
        """The jobs that were not decided when the feed last told of them."""
        self._emitted: dict[str, float] = {}
        """When the previous event of a job was emitted, if that was a moment ago."""

    def start(self) -> None:
        """Start a thread that does not keep the server from ending."""
        threading.Thread(target=self._run, name="jupyter-to-job-feed", daemon=True).start()

    def stop(self) -> None:
        """Ask the thread to end."""
        self._stopping.set()

    def _run(self) -> None:
        while not self._stopping.is_set():
            try:
                self._follow()
            except JobsError as error:
                self._log.warning("The feed of jobs stopped: %s", error)
            except Exception:
                self._log.exception("The feed of jobs failed")
            self._stopping.wait(RETRY_INTERVAL)

    def _follow(self) -> None:
        """Tell of changes until the feed ends.

        It begins with the jobs that are open. Those that were open before, and are not among them,
        have ended or were deleted while nobody listened.
        """
        unheard = set(self._open)
        begun: float | None = None
        for change in self._jobs.changes():
            if self._stopping.is_set():
                return
            begun = begun or time.monotonic()
            if change is not None:
                unheard.discard(change.name)
                self._see(change)
            if time.monotonic() - begun > LOOK_DELAY:
                for name in list(islice(unheard, MAX_LOOKS)):
                    unheard.discard(name)
                    self._see(self._look_at(name))
            self._emit_due()

    def _look_at(self, name: str) -> Job | Deleted:
        try:
            return self._jobs.get(name)
        except NotFound:
            return Deleted(name)

    def _see(self, change: Job | Deleted) -> None:
        if isinstance(change, Deleted):
            self._open.discard(change.name)
            self._pending.pop(change.name, None)
            self._puller.forget(change.name)
            self._emit(change)
            return
        (self._open.discard if change.decided else self._open.add)(change.name)
        self._pending[change.name] = change
        self._puller.see(change)

    def _emit_due(self) -> None:
        """Emit the events that are due; the others wait for their time, or for a newer state."""
        moment = time.monotonic()
        for name, emitted in list(self._emitted.items()):
            if moment - emitted >= EVENT_INTERVAL:
                del self._emitted[name]
        for name in [name for name in self._pending if name not in self._emitted]:
            self._emit(self._pending[name])
            del self._pending[name]
            self._emitted[name] = moment
