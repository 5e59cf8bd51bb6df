"""Follows jobs as they change, at the cost of the jobs that still may."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from ...domain.job import DeliveryState, Job
from ...domain.reasons import DAMAGED
from ...domain.state import Placement
from ...exchange import FileExchange, Request
from ...exchange.stamps import stamp_of
from .listing import JobLister
from .view import JobReader, waiting_job

_NOWHERE = Placement()
_NOT_NEEDED: Mapping[str, Request] = {}

POLL_INTERVAL = 0.08
"""Seconds between two polls: stats only, so cheap on a local disk. Output is seen within 0.1."""
MOVE_INTERVAL_PER_JOB = 0.002
"""Seconds for each waiting job between two times that all are told where they stand."""
RETRY_INTERVAL = 10.0
"""Seconds after which a damaged job is read again."""
NETWORK_POLL_INTERVAL = 1.0
"""The same on a network file system, where every stat may be a question to a server."""


class JobOwner(NamedTuple):
    """The owner of a job and its source: they decide which callers may hear of it."""

    owner: str
    source: str


class ChangeFeed:
    """Follows the jobs that may still change; with `only`, those of these names."""

    def __init__(
        self,
        exchange: FileExchange,
        lister: JobLister,
        reader: JobReader,
        only: Collection[str] | None = None,
    ) -> None:
        self._exchange = exchange
        self._only = None if only is None else frozenset(only)
        self._all_names: frozenset[str] = frozenset()
        self._lister = lister
        self._reader = reader
        self._names: frozenset[str] = frozenset()
        self._owners: dict[str, tuple[str, str]] = {}
        """The fields of a `JobOwner`. There may be 10,000, and Python's garbage collector does not
        track plain tuples of text."""
        self._unsettled: dict[str, Request] = {}
        self._held: dict[str, tuple[str | None, float | None]] = {}
        """Jobs whose delivery is held, and damaged jobs, with the stamps of their directories.

        A damaged job is due again at a monotonic time: a document of it may have been mended.
        """
        self.deleted: list[tuple[str, JobOwner]] = []
        """The jobs that were deleted between the two most recent polls."""
        self._queue: tuple[object, ...] = ()
        """What the places of the waiting jobs that were returned last came from."""
        self._moves_due_at = 0.0
        self._starting: set[str] = set()
        self._placed: dict[str, Placement] = {}
        """The waiting jobs that were returned, and where they stood."""

    @property
    def interval(self) -> float:
        """Seconds to wait between two polls."""
        return POLL_INTERVAL if self._exchange.is_local else NETWORK_POLL_INTERVAL

    def poll(self) -> list[tuple[Request, Job]]:
        """Return the jobs that may have changed since the previous poll, settled ones once."""
        self.deleted = []
        self._update_names()
        for name, (stamp, due_at) in list(self._held.items()):
            is_due = due_at is not None and time.monotonic() > due_at
            if is_due or stamp is None or stamp != stamp_of(self._exchange.root / name):
                del self._held[name]
                self._unsettled |= {r.name: r for r in self._lister.read_requests([name])}
        waiting = self._lister.waiting_requests() if self._follows_queue() else _NOT_NEEDED
        begun = [self._unsettled[name] for name in self._unsettled.keys() - waiting.keys()]
        placements = self._lister.placements(waiting, begun)
        moved = self._moved(waiting, placements)
        begun += [self._unsettled[name] for name in self._starting if name in self._unsettled]
        return self._read_begun(begun, placements) + moved

    def _follows_queue(self) -> bool:
        """Tell whether a place in the queue matters: of jobs that began, or ended, it does not."""
        return self._only is None or not all(map(self._reader.has_attempt, self._unsettled))

    def _read_begun(
        self, requests: Sequence[Request], placements: Mapping[str, Placement]
    ) -> list[tuple[Request, Job]]:
        """Read the jobs that do not only wait. Settled ones are not followed any more."""
        stamps = {r.name: stamp_of(f"{self._exchange.root}/{r.name}") for r in requests}
        jobs = self._lister.read_jobs(requests, placements)
        for name in stamps.keys() - {request.name for request, _ in jobs}:
            if self._reader.is_deleted(name):  # from then on no reader sees the job
                self._mark_deleted(name)
        for _, job in jobs:
            if job.decided:
                del self._unsettled[job.name]
                self._reader.forget(job.name)
                if job.delivery.state is DeliveryState.HELD or job.reason == DAMAGED:
                    due_at = time.monotonic() + RETRY_INTERVAL if job.reason == DAMAGED else None
                    self._held[job.name] = (stamps[job.name], due_at)
        return jobs

    def _moved(
        self, waiting: Mapping[str, Request], placements: Mapping[str, Placement]
    ) -> list[tuple[Request, Job]]:
        """Return the waiting jobs that are new in the queue, or have moved in it."""
        queue = (waiting, placements, self._names)
        if queue == self._queue:
            return []
        places = {n: placements.get(n, _NOWHERE) for n in waiting if n in self._unsettled}
        started = self._starting
        self._starting = {name for name, place in places.items() if place.starting}
        # Its slot may be free again before the turn of its directory comes in a long queue.
        begun = {n for n in started - self._starting if self._reader.has_attempt(n)}
        for name in begun | self._starting:
            places.pop(name, None)
        for name in begun:
            self._lister.reconsider(name)
        if time.monotonic() < self._moves_due_at:
            places |= {n: place for n, place in self._placed.items() if n in places}
        else:
            self._queue = queue
            self._moves_due_at = time.monotonic() + MOVE_INTERVAL_PER_JOB * len(places)
        previous, self._placed = self._placed, places
        return [
            (waiting[name], waiting_job(waiting[name], placement))
            for name, placement in places.items()
            if placement is not previous.get(name) and placement != previous.get(name)
        ]

    def _update_names(self) -> None:
        """Start to follow new jobs, and stop following those that are gone."""
        all_names = self._exchange.jobs()
        if all_names is self._all_names:
            return
        names = all_names if self._only is None else all_names & self._only
        for name in self._names - names:
            self._mark_deleted(name)
        new_names = set(names - self._names)
        settled = {} if self._names else self._lister.settled_rows(new_names)
        for name, row in settled.items():
            self._owners[name] = (row.owner, row.source)
            if row.delivery != DeliveryState.HELD.value:
                new_names.discard(name)
        for request in self._read_new(new_names):
            self._unsettled[request.name] = request
            self._owners[request.name] = (request.owner, request.source)
        self._all_names, self._names = all_names, names

    def _read_new(self, names: Collection[str]) -> list[Request]:
        """Return the requests of new jobs: of those that wait, the one that the queue has."""
        waiting = self._lister.waiting_requests() if self._only is None else _NOT_NEEDED
        others = [name for name in names if name not in waiting]
        queued = [waiting[n] for n in names if n in waiting and not self._reader.is_deleted(n)]
        return queued + self._lister.read_requests(others)

    def _mark_deleted(self, name: str) -> None:
        self._unsettled.pop(name, None)
        self._held.pop(name, None)
        self._reader.forget(name)
        if name in self._owners:
            self.deleted.append((name, JobOwner(*self._owners.pop(name))))
