"""All jobs of an exchange at a glance: settled ones by the index, the others from directories."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial

from ..backends.port import Backend
from ..domain.errors import Damaged, NotFound
from ..domain.job import Job
from ..domain.state import Placement
from ..exchange import FileExchange, Request
from ..exchange.index import Index, Settled, stamp_of
from .view import View


@dataclass(frozen=True)
class Entry:
    """A job in the list: who asked for it and from where, and its state's value."""

    subject: Request | Settled
    state: str
    _job: Callable[[], Job]

    @property
    def age(self) -> str:
        """By what jobs are in order, and what a cursor holds."""
        return f"{self.subject.submitted} {self.subject.name}"

    def job(self) -> Job:
        """Return the whole of it, with paths relative to the submitter's workspace."""
        return self._job()


class Roster:
    """Looks at many jobs at once, and keeps the index right by the way."""

    def __init__(self, exchange: FileExchange, backend: Backend, view: View) -> None:
        self._exchange = exchange
        self._backend = backend
        self._view = view
        self._index = Index(exchange.root)

    def entries(self) -> list[Entry]:
        """Return all jobs that can be read, in no order."""
        names = self._exchange.jobs()
        settled = self._index.read(names)
        found = [Entry(row, row.state, row.job) for row in settled.values()]
        rest = self.requests(name for name in names if name not in settled)
        for request, job in self.look(rest):
            found.append(Entry(request, job.state.value, partial(_itself, job)))
        return found

    def settled(self, names: Iterable[str]) -> dict[str, Settled]:
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
        placements = self._backend.placements(waiting) if waiting else {}
        found, settled = [], []
        for request in requests:
            stamp = stamp_of(self._exchange.root / request.name)
            try:
                job = self._view.job(request, placements.get(request.name, Placement()))
            except (NotFound, Damaged):
                continue
            if self._view.is_deleted(request.name):
                continue
            found.append((request, job))
            if job.decided and stamp is not None:
                settled.append(
                    Settled.of(job, stamp=stamp, source=request.source, workspace=request.workspace)
                )
        if settled:
            self._index.write(settled, set(self._exchange.jobs()))
        return found

    def waiting(self) -> list[Request]:
        """Return what was asked of all jobs that nothing was started for."""
        names = self._exchange.jobs()
        return self.requests(name for name in names if not self._view.has_begun(name))


def _itself(job: Job) -> Job:
    return job
