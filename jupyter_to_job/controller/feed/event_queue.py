"""The events that one stream has not sent yet, in bounded memory."""

from __future__ import annotations

import asyncio
from collections.abc import Collection

from ...backends.kubernetes.records import Manifest
from .job_event import JobEvent

MAX_CHUNK = 64 << 10
"""Bytes that are taken at a time: a slow client gets them within a timeout."""


class EventQueue:
    """Keeps the latest unsent event of each job. Use it on the event loop only.

    So its size is bounded by the number of jobs that it is about, however slowly a client reads.
    The queues of one owner share their events. `origin` is the origin.json of the dev pod that
    reads them; `jobs` limits the queue to these jobs.
    """

    def __init__(self, origin: Manifest, jobs: Collection[str] | None = None) -> None:
        self._origin = origin
        self._jobs = None if jobs is None else frozenset(jobs)
        self._events: dict[str, bytes] = {}
        self._has_events = asyncio.Event()

    def wants(self, job: str) -> bool:
        """Tell whether the queue is about the job."""
        return self._jobs is None or job in self._jobs

    def put(self, job: str, event: JobEvent) -> None:
        """Add an event that the dev pod may see, which replaces an earlier one of the same job."""
        if not self.wants(job):
            return
        data = event.seen_from(self._origin, by_name=self._jobs is not None)
        if data:
            self._events[job] = data
            self._has_events.set()

    async def take(self, timeout: float) -> bytes:
        """Return the oldest events, about `MAX_CHUNK` at most; none after `timeout` seconds."""
        try:
            await asyncio.wait_for(self._has_events.wait(), timeout)
        except asyncio.TimeoutError:
            return b""
        events, size = [], 0
        while self._events and size < MAX_CHUNK:
            job = next(iter(self._events))
            events.append(self._events.pop(job))
            size += len(events[-1])
        if not self._events:
            self._has_events.clear()
        return b"".join(events)
