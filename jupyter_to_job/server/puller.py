"""Publishes the results of ended jobs in this workspace, beside the feed and never in it.

A result may be large, or its folder read-only, or the gateway may be away just then. Each job waits
for its own next try, and no event waits for any of them.
"""

from __future__ import annotations

import logging
import threading
import time
from dataclasses import dataclass
from typing import Any

from ..domain.errors import Conflict, JobsError, NotFound
from ..domain.job import DeliveryState, Job
from ..service.delivery import is_to_be_pulled
from ..service.port import Jobs

WORKERS = 4
"""Results that are fetched at a time."""
MIN_DELAY, MAX_DELAY = 2.0, 300.0
"""Seconds until a result is tried again: after its first failure, and at most."""
_NOT_YET = "its result is not there yet, or for another process"


@dataclass
class _Pull:
    """A result that is to be published: when it is tried, after how many seconds again, and what
    went wrong last."""

    due_at: float = 0.0
    delay: float = MIN_DELAY
    fault: str = ""
    is_running: bool = False


class ResultPuller:
    """Delivers jobs in threads of its own, each until it is delivered or deleted."""

    def __init__(self, jobs: Jobs, log: logging.Logger | Any, min_delay: float = MIN_DELAY) -> None:
        self._jobs = jobs
        self._log = log
        self._min_delay = min_delay
        self._pulls: dict[str, _Pull] = {}
        self._has_news = threading.Condition()
        self._is_stopping = False

    def start(self) -> None:
        """Start the threads, which do not keep the server from ending."""
        for number in range(WORKERS if self._jobs.pulls else 0):
            name = f"jupyter-to-job-pull-{number}"
            threading.Thread(target=self._run, name=name, daemon=True).start()

    def stop(self) -> None:
        """Ask the threads to end."""
        with self._has_news:
            self._is_stopping = True
            self._has_news.notify_all()

    def see(self, job: Job) -> None:
        """Take note of a job as it stands: its result is fetched if nobody has published it."""
        with self._has_news:
            if not is_to_be_pulled(self._jobs, job):
                self.forget(job.name)
            elif job.name not in self._pulls:
                self._pulls[job.name] = _Pull(delay=self._min_delay)
                self._has_news.notify()

    def forget(self, name: str) -> None:
        """Leave a job alone."""
        with self._has_news:
            self._pulls.pop(name, None)

    def _run(self) -> None:
        while True:
            name = self._take()
            if name is None:
                return
            fault = self._deliver(name)
            self._settle(name, fault)

    def _take(self) -> str | None:
        """Wait until a job is due, and return its name; None at the end."""
        with self._has_news:
            while not self._is_stopping:
                waiting = {n: p.due_at for n, p in self._pulls.items() if not p.is_running}
                name = min(waiting, key=waiting.__getitem__, default=None)
                wait = None if name is None else waiting[name] - time.monotonic()
                if name is not None and wait is not None and wait <= 0:
                    self._pulls[name].is_running = True
                    return name
                self._has_news.wait(wait)
            return None

    def _deliver(self, name: str) -> str | None:
        """Try to publish a result; return what was wrong, "" for nothing, None to give it up."""
        try:
            delivery = self._jobs.deliver(name).delivery
        except (NotFound, Conflict):  # deleted, or of another workspace at the same path
            return None
        except JobsError as error:
            return str(error)
        except Exception as error:  # one job must not keep the others from their results
            self._log.exception("The delivery of %s failed", name)
            return f"{type(error).__name__}: {error}"
        if delivery.state in (DeliveryState.PENDING, DeliveryState.HELD):
            return delivery.message or _NOT_YET
        return ""

    def _settle(self, name: str, fault: str | None) -> None:
        """Plan the next try of a job that was not delivered, each time later."""
        with self._has_news:
            pull = self._pulls.get(name)
            if pull is None:
                return
            if not fault:
                del self._pulls[name]
                return
            if fault not in (pull.fault, _NOT_YET):
                self._log.warning("%s is not delivered: %s", name, fault)
            pull.fault, pull.is_running = fault, False
            pull.due_at = time.monotonic() + pull.delay
            pull.delay = min(2 * pull.delay, MAX_DELAY)
            self._has_news.notify()
