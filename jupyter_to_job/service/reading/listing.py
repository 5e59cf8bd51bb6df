"""All jobs of an exchange at a glance: settled ones by the index, the others from directories."""

from __future__ import annotations

import heapq
import threading
from bisect import bisect_left
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from operator import attrgetter
from pathlib import Path
from typing import NamedTuple

from ...backends.port import Backend
from ...domain.errors import NotFound
from ...domain.job import Job, State
from ...domain.reasons import DAMAGED
from ...domain.state import Placement
from ...exchange import FileExchange, Request
from ...exchange.index import Index, IndexRow
from ...exchange.request import UnreadableRequest
from ...exchange.stamps import StampCache, stamp_of
from .view import JobReader


@dataclass(frozen=True)
class ListEntry:
    """A job in the list, and the request or row that tells its owner and its source.

    Jobs are sorted by their `age`, and cursors hold it. `job` returns the job as it is now, with
    paths relative to the submitter's workspace; None if it is gone.
    """

    subject: Request | IndexRow
    age: str
    job: Callable[[], Job | None]


_BY_AGE = attrgetter("age")


class _Snapshot(NamedTuple):
    """The list of all jobs, valid while the exchange's directory keeps its change stamp.

    Within that time no name appears, goes, or becomes another job's. A job's own directory may
    change; it is read when the job is shown. Neither its place in the list nor that it has ended
    can change.
    """

    settled: tuple[IndexRow, ...]
    """Oldest first."""
    unsettled: tuple[str, ...]
    """Names of the jobs that the index does not know."""


class JobLister:
    """Reads many jobs at once, and brings the index up to date on the way."""

    def __init__(self, exchange: FileExchange, backend: Backend, reader: JobReader) -> None:
        self._exchange = exchange
        self._backend = backend
        self._reader = reader
        self._index = Index(exchange)
        self._snapshots: StampCache[Path, _Snapshot] = StampCache()
        self._snapshot_lock = threading.Lock()
        self._started: frozenset[str] = frozenset()

    def newest(
        self, states: Collection[State] = (), before: str | None = None
    ) -> Iterator[ListEntry]:
        """Yield the readable jobs, newest first; only those older than the age `before`.

        With `states` only jobs in one of them; a settled job may have changed its state just now.
        """
        snapshot = self._snapshot()
        entries = [
            _entry(request, job)
            for request, job in self.read_jobs(self.read_requests(snapshot.unsettled))
            if not states or job.state in states
        ]
        entries = [entry for entry in entries if before is None or entry.age < before]
        entries.sort(key=_BY_AGE, reverse=True)
        settled = self._settled_entries(snapshot.settled, {s.value for s in states}, before)
        return heapq.merge(settled, entries, key=_BY_AGE, reverse=True)

    def _settled_entries(
        self, rows: tuple[IndexRow, ...], states: set[str], before: str | None
    ) -> Iterator[ListEntry]:
        end = len(rows) if before is None else bisect_left(rows, before, key=_age)
        for position in range(end - 1, -1, -1):
            row = rows[position]
            if not states or row.state in states:
                yield ListEntry(row, _age(row), partial(self._read_settled, row))

    def _read_settled(self, row: IndexRow) -> Job | None:
        """Return a settled job, from its directory if something happened to it."""
        if self._index.is_current(row):
            return row.job()
        return next((job for _, job in self.read_jobs(self.read_requests([row.name]))), None)

    def _snapshot(self) -> _Snapshot:
        with self._snapshot_lock:  # 10,000 times `stat`: two threads at once slow each other down
            # Without a stamp, on a network file system or just after a change, it is read anew.
            stamp = stamp_of(self._exchange.root) if self._exchange.is_local else None
            rows_and_stamp = stamp and (stamp, self._index.rows())
            return self._snapshots.get(self._exchange.root, rows_and_stamp, self._read_snapshot)

    def _read_snapshot(self) -> _Snapshot:
        names = self._exchange.jobs()
        settled = self._index.read(names)
        rows = sorted(settled.values(), key=_age)
        return _Snapshot(tuple(rows), tuple(names - settled.keys()))

    def settled_rows(self, names: Iterable[str]) -> dict[str, IndexRow]:
        """Return the rows of those of `names` that the index knows to be settled."""
        return self._index.read(names)

    def read_requests(self, names: Iterable[str]) -> list[Request]:
        """Return the requests of jobs that are not being deleted, unreadable ones among them."""
        requests = []
        for name in names:
            try:
                request = self._exchange.find_request(name)
            except NotFound:
                continue
            if not self._reader.is_deleted(name):
                requests.append(request)
        return requests

    def read_jobs(self, requests: Iterable[Request]) -> list[tuple[Request, Job]]:
        """Return jobs as they stand now; those that are deleted meanwhile are left out."""
        requests = list(requests)
        waiting = [r for r in requests if self._is_waiting(r)]
        # A name that had an attempt may be another job's by now.
        self._started = self._started.difference(r.name for r in waiting)
        placements = self._backend.queue_status(waiting) if waiting else {}
        jobs, settled = [], []
        for request in requests:
            stamp = stamp_of(f"{self._exchange.root}/{request.name}")
            try:
                job = self._reader.job(request, placements.get(request.name, Placement()))
            except NotFound:
                continue
            if self._reader.is_deleted(request.name):
                continue
            jobs.append((request, job))
            if job.decided and job.reason != DAMAGED and stamp is not None:
                settled.append(
                    IndexRow.of(
                        job, stamp=stamp, source=request.source, workspace=request.workspace
                    )
                )
        if settled:
            self._index.write(settled, self._exchange.jobs())
        return jobs

    def waiting_requests(self, request: Request) -> list[Request]:
        """Return the requests of all jobs that nothing was started for, `request` among them.

        A job that had an attempt once is not looked at again.
        """
        names = self._exchange.jobs()
        unstarted = names - (self._started - {request.name})
        waiting = {name for name in unstarted if not self._reader.has_attempt(name)}
        self._started = names - waiting
        # The job itself may have been started just now.
        own_request = [request] if request.name in waiting else []
        others = self.read_requests(waiting - {request.name})
        return [r for r in own_request + others if self._is_waiting(r)]

    def _is_waiting(self, request: Request) -> bool:
        is_readable = not isinstance(request, UnreadableRequest)
        return is_readable and not self._reader.has_attempt(request.name)


def _entry(request: Request, job: Job) -> ListEntry:
    return ListEntry(request, _age(request), lambda: job)


def _age(subject: Request | IndexRow) -> str:
    return f"{subject.submitted} {subject.name}"
