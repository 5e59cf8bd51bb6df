"""All jobs of an exchange at a glance: settled ones by the index, the others from directories."""

from __future__ import annotations

import heapq
import threading
from bisect import bisect_left
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from operator import attrgetter

from ...backends.port import Backend
from ...domain.errors import Damaged, NotFound
from ...domain.job import Job, State
from ...domain.state import Placement
from ...exchange import FileExchange, Request
from ...exchange.index import Index, IndexRow, stamp_of
from .view import JobReader


@dataclass(frozen=True)
class ListEntry:
    """A job in the list: who asked for it and from where."""

    subject: Request | IndexRow
    age: str
    """By what jobs are in order, and what a cursor holds."""
    _job: Callable[[], Job | None] = field(repr=False)

    def job(self) -> Job | None:
        """Return the whole of it as it is now, with paths relative to the submitter's workspace.

        None if it is gone.
        """
        return self._job()


_BY_AGE = attrgetter("age")


@dataclass(frozen=True)
class _Snapshot:
    """All jobs of a moment; it is good for as long as the exchange's folder has that `stamp`.

    Within that time no name appears, goes, or becomes another job's. What may change is inside of
    a job's directory, and looked at when the job is shown: not its place in the list, nor that it
    has ended.
    """

    stamp: str | None = None
    rows: Mapping[str, IndexRow] = field(default_factory=dict)
    """What it was made from: all that the index had."""
    settled: tuple[IndexRow, ...] = ()
    """Oldest first."""
    others: tuple[str, ...] = ()
    """Names of those that the index does not know."""


class JobLister:
    """Looks at many jobs at once, and keeps the index right by the way."""

    def __init__(self, exchange: FileExchange, backend: Backend, view: JobReader) -> None:
        self._exchange = exchange
        self._backend = backend
        self._view = view
        self._index = Index(exchange.root)
        self._looking = threading.Lock()
        self._seen = _Snapshot()
        self._begun: frozenset[str] = frozenset()

    def newest(
        self, states: Collection[State] = (), before: str | None = None
    ) -> Iterator[ListEntry]:
        """Yield the jobs that can be read, newest first; only those older than an age `before`.

        With `states` those that are in one of them: a settled one may have left it just now.
        """
        sight = self._sight()
        looked = [
            ListEntry(request, _age(request), partial(_itself, job))
            for request, job in self.look(self.requests(sight.others))
            if not states or job.state in states
        ]
        looked = [entry for entry in looked if before is None or entry.age < before]
        looked.sort(key=_BY_AGE, reverse=True)
        settled = self._settled(sight, {state.value for state in states}, before)
        return heapq.merge(settled, looked, key=_BY_AGE, reverse=True)

    def _settled(
        self, sight: _Snapshot, states: set[str], before: str | None
    ) -> Iterator[ListEntry]:
        rows, end = sight.settled, len(sight.settled)
        if before is not None:
            end = bisect_left(rows, before, key=_age)
        for at in range(end - 1, -1, -1):
            row = rows[at]
            if not states or row.state in states:
                yield ListEntry(row, _age(row), partial(self._now, row))

    def _now(self, row: IndexRow) -> Job | None:
        """Return a settled job, from its directory if something happened to it."""
        if self._index.is_current(row):
            return row.job()
        return next((job for _, job in self.look(self.requests([row.name]))), None)

    def _sight(self) -> _Snapshot:
        with self._looking:  # 10,000 times `stat`: two threads at once would hinder each other
            self._seen = self._looked_again()
            return self._seen

    def _looked_again(self) -> _Snapshot:
        # A stamp that is too young to be relied on is None: then all of it is done again.
        stamp = stamp_of(self._exchange.root) if self._index.is_local else None
        rows = self._index.rows()
        if stamp is not None and stamp == self._seen.stamp and rows is self._seen.rows:
            return self._seen
        names = self._exchange.jobs()
        found = (rows[name] for name in names if name in rows)
        settled = {row.name: row for row in found if self._index.is_current(row)}
        others = tuple(name for name in names if name not in settled)
        return _Snapshot(stamp, rows, tuple(sorted(settled.values(), key=_age)), others)

    def settled(self, names: Iterable[str]) -> dict[str, IndexRow]:
        """Return those of `names` that the index knows to be settled."""
        return self._index.read(names)

    def requests(self, names: Iterable[str]) -> list[Request]:
        """Return what was asked of those that can be read, and are not being deleted."""
        found = []
        for name in names:
            try:
                request = self._exchange.request(name)
            except (NotFound, Damaged):
                continue
            if not self._view.is_deleted(name):
                found.append(request)
        return found

    def look(self, requests: Iterable[Request]) -> list[tuple[Request, Job]]:
        """Return jobs as they stand now; those that are deleted meanwhile are left out."""
        requests = list(requests)
        waiting = [r for r in requests if not self._view.has_begun(r.name)]
        # A name that had begun may be another job's by now.
        self._begun = self._begun.difference(r.name for r in waiting)
        placements = self._backend.placements(waiting) if waiting else {}
        found, settled = [], []
        for request in requests:
            stamp = stamp_of(f"{self._exchange.root}/{request.name}")
            try:
                job = self._view.job(request, placements.get(request.name, Placement()))
            except (NotFound, Damaged):
                continue
            if self._view.is_deleted(request.name):
                continue
            found.append((request, job))
            if job.decided and stamp is not None:
                settled.append(
                    IndexRow.of(
                        job, stamp=stamp, source=request.source, workspace=request.workspace
                    )
                )
        if settled:
            self._index.write(settled, set(self._exchange.jobs()))
        return found

    def waiting(self, asked: Request) -> list[Request]:
        """Return what was asked of all jobs that nothing was started for; `asked` is one of them.

        Whichever has begun once is not looked at again.
        """
        names = self._exchange.jobs()
        begun = self._begun - {asked.name}
        waiting = [n for n in names if n not in begun and not self._view.has_begun(n)]
        self._begun = frozenset(names).difference(waiting)
        own = [asked] if asked.name in waiting else []  # it may have begun just now
        return own + self.requests(name for name in waiting if name != asked.name)


def _itself(job: Job) -> Job:
    return job


def _age(subject: Request | IndexRow) -> str:
    return f"{subject.submitted} {subject.name}"
