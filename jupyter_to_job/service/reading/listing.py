"""All jobs of an exchange at a glance: settled ones by the index, the others from directories."""

from __future__ import annotations

import contextlib
import heapq
import threading
from bisect import bisect_left
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from operator import attrgetter
from pathlib import Path
from typing import NamedTuple

from job_runner.protocol import layout

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
from .waiting import WaitingJobs


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
_NO_QUEUE: Mapping[str, Request] = {}


class _Snapshot(NamedTuple):
    """The list of all jobs, valid while the exchange's directory keeps its change stamp.

    Within that time no name appears, goes, or becomes another job's. A job's own directory may
    change; it is read when the job is shown. Neither its place in the list nor that it has ended
    can change.
    """

    settled: Mapping[str, Sequence[IndexRow]]
    """The rows of each owner, oldest first."""
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
        self._waiting = WaitingJobs(exchange)
        self._owners: dict[str, tuple[str, str | None]] = {}
        """The owners of the jobs that the index does not know, and the stamps of their requests."""
        self._by_age: StampCache[str, list[Request]] = StampCache()

    def newest(
        self, owner: str, states: Collection[State] = (), before: str | None = None
    ) -> Iterator[ListEntry]:
        """Yield an owner's jobs, newest first; only those older than the age `before`.

        Jobs whose owner cannot be read are among them, and of a queue all jobs. With `states` only
        jobs in one of them; one may have changed its state just now.
        """
        snapshot, waiting = self._snapshot(), self.waiting_requests()
        unsettled = (name for name in snapshot.unsettled if name not in waiting)
        begun = self._read_owned(owner, unsettled)
        placements = self.placements(waiting, begun)
        entries = [
            _entry(request, job)
            for request, job in self.read_jobs(begun, placements)
            if not states or job.state in states
        ]
        entries = [entry for entry in entries if before is None or entry.age < before]
        entries.sort(key=_BY_AGE, reverse=True)
        rows = snapshot.settled.get(owner, ())
        settled = self._settled_entries(rows, {s.value for s in states}, before)
        parts = [settled, entries]
        if not states or not {State.QUEUED, State.STARTING}.isdisjoint(states):
            parts.append(self._waiting_entries(waiting, placements, before))
        return heapq.merge(*parts, key=_BY_AGE, reverse=True)

    def ended(self, owner: str) -> Sequence[IndexRow]:
        """Return the rows of an owner's ended jobs, oldest first.

        On a network file system there is no index, and there are none. Without a queue those count
        that somebody watched or listed: one that waits must not have the jobs of all owners read.
        """
        if not self._exchange.is_local:
            return ()
        if self._backend.has_queue:
            waiting = self.waiting_requests()
            names = (name for name in self._snapshot().unsettled if name not in waiting)
            self.read_jobs(self._read_owned(owner, names), {})  # what has ended gets its row
        return self._snapshot().settled.get(owner, ())

    def _waiting_entries(
        self,
        waiting: Mapping[str, Request],
        placements: Mapping[str, Placement],
        before: str | None,
    ) -> Iterator[ListEntry]:
        by_age = self._by_age.get("", waiting, lambda: sorted(waiting.values(), key=_age))
        end = len(by_age) if before is None else bisect_left(by_age, before, key=_age)
        for position in range(end - 1, -1, -1):
            request = by_age[position]
            placement = placements.get(request.name, Placement())
            read = partial(self._read_waiting, request, placement)
            yield ListEntry(request, _age(request), read)

    def _read_waiting(self, request: Request, placement: Placement) -> Job | None:
        """Return a job that waited a moment ago, as it is now."""
        with contextlib.suppress(NotFound):
            job = self._reader.job(request, placement)
            return None if self._reader.is_deleted(request.name) else job
        return None

    def _settled_entries(
        self, rows: Sequence[IndexRow], states: set[str], before: str | None
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
        requests = self.read_requests([row.name])
        placements = self.placements(self.waiting_requests(), requests)
        return next((job for _, job in self.read_jobs(requests, placements)), None)

    def _snapshot(self) -> _Snapshot:
        with self._snapshot_lock:  # 10,000 times `stat`: two threads at once slow each other down
            # Without a stamp, on a network file system or just after a change, it is read anew.
            stamp = stamp_of(self._exchange.root) if self._exchange.is_local else None
            rows_and_stamp = stamp and (stamp, self._index.rows())
            return self._snapshots.get(self._exchange.root, rows_and_stamp, self._read_snapshot)

    def _read_snapshot(self) -> _Snapshot:
        names = self._exchange.jobs()
        settled = self.settled_rows(names)
        unsettled = tuple(names - settled.keys())
        self._owners = {n: self._owners[n] for n in unsettled if n in self._owners}
        rows: dict[str, list[IndexRow]] = {}
        for row in sorted(settled.values(), key=_age):
            rows.setdefault(row.owner, []).append(row)
        return _Snapshot(rows, unsettled)

    def _read_owned(self, owner: str, names: Iterable[str]) -> list[Request]:
        """Return the requests of an owner's jobs, and of those whose owner cannot be read.

        Those of others are read once, unless somebody mends a damaged one.
        """
        unknown = (n for n in names if not self._is_known_to_be_of_another(owner, n))
        requests = self.read_requests(unknown)
        for request in requests:
            self._owners[request.name] = (request.owner, self._stamp_of_request(request.name))
        return [request for request in requests if request.owner in ("", owner)]

    def _is_known_to_be_of_another(self, owner: str, name: str) -> bool:
        owner_name, stamp = self._owners.get(name, ("", None))
        is_other = owner_name not in ("", owner)
        return is_other and stamp is not None and stamp == self._stamp_of_request(name)

    def _stamp_of_request(self, name: str) -> str | None:
        return stamp_of(f"{self._exchange.root}/{name}/{layout.REQUEST}")

    def settled_rows(self, names: Iterable[str]) -> dict[str, IndexRow]:
        """Return the rows of those of `names` that the index knows to be settled."""
        rows = self._index.read(names)
        self._waiting.ignore(rows)
        return rows

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

    def read_jobs(
        self, requests: Collection[Request], placements: Mapping[str, Placement]
    ) -> list[tuple[Request, Job]]:
        """Return jobs as they stand now; those that are deleted meanwhile are left out."""
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
            for row in self._index.write(settled, self._exchange.jobs()):
                self._exchange.forget_request(row.name)
        return jobs

    def waiting_requests(self, recorded: Request | None = None) -> Mapping[str, Request]:
        """Return the jobs of the queue to which nothing happened yet.

        It is the same object while none changed. Where the backend has no queue, nobody's place
        depends on the others, and there is nothing to know of all of them. `recorded` was written
        just now by this process, and is not read.
        """
        return self._waiting.requests(recorded) if self._backend.has_queue else _NO_QUEUE

    def reconsider(self, name: str) -> None:
        """Look at a job's directory again at the next call."""
        self._waiting.reconsider(name)

    def placements(
        self, waiting: Mapping[str, Request], others: Iterable[Request]
    ) -> Mapping[str, Placement]:
        """Return the placements of the waiting jobs, and of `others` if they have no attempt.

        One that is about to be cancelled, or has a slot, takes no place from the others. A backend
        without a queue knows also why an attempt does not begin.
        """
        if not self._backend.has_queue:
            return self._backend.queue_status({r.name: r for r in others if _is_readable(r)})
        unstarted = {r.name: r for r in others if r.name not in waiting and self._has_not_begun(r)}
        if not unstarted:
            return self._backend.queue_status(waiting)
        for name in unstarted:  # it may be another job by now, which waits
            self._waiting.reconsider(name)
        waiting = self._waiting.requests()
        statuses = self._backend.queue_status({**waiting, **unstarted})
        return {**statuses, **self._backend.queue_status(waiting)}

    def _has_not_begun(self, request: Request) -> bool:
        return _is_readable(request) and not self._reader.has_attempt(request.name)


def _is_readable(request: Request) -> bool:
    return not isinstance(request, UnreadableRequest)


def _entry(request: Request, job: Job) -> ListEntry:
    return ListEntry(request, _age(request), lambda: job)


def _age(subject: Request | IndexRow) -> str:
    return subject.age if isinstance(subject, Request) else f"{subject.submitted} {subject.name}"
