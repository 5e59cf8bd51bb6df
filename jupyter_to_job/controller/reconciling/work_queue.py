"""The queue of jobs that are to be looked at, with the rules of client-go's work queue.

A job is in it once, however often it is added. No two workers have the same job: one that is added
meanwhile comes back when the worker is done.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from ..metrics import Metrics

MIN_RETRY_DELAY, MAX_RETRY_DELAY = 2.0, 60.0
"""Seconds before a job that failed is tried again: the first time, and at most."""


class WorkQueue:
    """A queue of job names. Call its methods on the event loop only."""

    def __init__(self) -> None:
        self._queue: asyncio.Queue[str] = asyncio.Queue()
        self._waiting: set[str] = set()
        self._processing: set[str] = set()
        self._failures: dict[str, int] = {}
        self._retries: dict[str, asyncio.TimerHandle] = {}
        self._timers: dict[str, asyncio.TimerHandle] = {}
        self._count_error: Callable[[], None] = lambda: None

    def measure(self, metrics: Metrics, name: str) -> None:
        """Show length and errors under the name of this queue."""
        metrics.queue.labels(name).set_function(lambda: len(self._waiting))
        self._count_error = metrics.errors.labels(name).inc

    def add(self, job: str) -> None:
        """Queue a job, unless it is queued already."""
        if job in self._waiting:
            return
        self._waiting.add(job)
        if job not in self._processing:
            self._queue.put_nowait(job)

    def add_after(self, job: str, seconds: float) -> None:
        """Queue a job when some time has passed."""
        asyncio.get_running_loop().call_later(seconds, self.add, job)

    def set_timer(self, job: str, seconds: float) -> None:
        """Queue a job when some time has passed, instead of at the time that was set before."""
        self.cancel_timer(job)
        self._timers[job] = asyncio.get_running_loop().call_later(seconds, self.add, job)

    def cancel_timer(self, job: str) -> None:
        """Forget the time that was set for a job."""
        if (timer := self._timers.pop(job, None)) is not None:
            timer.cancel()

    def add_rate_limited(self, job: str, *, is_error: bool = True) -> None:
        """Queue a job that failed after a delay, which doubles with each failure.

        One that waits for something ordinary, as for room in a quota, is not counted as an error.
        """
        if is_error:
            self._count_error()
        count = self._failures[job] = self._failures.get(job, 0) + 1
        delay = min(MIN_RETRY_DELAY * 2 ** min(count - 1, 10), MAX_RETRY_DELAY)
        self._cancel_retry(job)
        self._retries[job] = asyncio.get_running_loop().call_later(delay, self.add, job)

    def forget(self, job: str) -> None:
        """Forget the failures of a job that succeeded."""
        self._failures.pop(job, None)
        self._cancel_retry(job)

    def is_failing(self, job: str) -> bool:
        """Tell whether the last try of a job failed: then it is queued again by itself."""
        return job in self._failures

    async def get(self) -> str:
        """Wait for a job, and return it. Call `done` afterwards."""
        job = await self._queue.get()
        self._waiting.discard(job)
        self._processing.add(job)
        return job

    def done(self, job: str) -> None:
        """Give a job back. It is queued again if it was added meanwhile."""
        self._processing.discard(job)
        if job in self._waiting:
            self._queue.put_nowait(job)

    def _cancel_retry(self, job: str) -> None:
        if (retry := self._retries.pop(job, None)) is not None:
            retry.cancel()
