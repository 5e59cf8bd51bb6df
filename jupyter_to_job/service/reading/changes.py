"""Following jobs as they change, at the cost of those that still may."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from ...domain.job import DeliveryState, Job
from ...exchange import FileExchange, Request
from ...exchange.filesystem import is_network
from ...exchange.index import stamp_of
from .listing import JobLister
from .view import JobReader

TICK = 0.08
"""Seconds between two looks: stats only, so cheap on a local disk. Output is seen within 0.1."""
NETWORK_TICK = 1.0
"""The same on a network file system, where every stat may be a question to a server."""


class JobOwner(NamedTuple):
    """Who asked for a job and from where: what decides who may hear of it."""

    owner: str
    source: str


class ChangeFeed:
    """Follows the jobs that may still change.

    New names are noticed by the modification time of the exchange's own directory. On a network
    file system that may be old, so there the names are read each time.
    """

    def __init__(self, exchange: FileExchange, roster: JobLister, view: JobReader) -> None:
        self._exchange = exchange
        self._roster = roster
        self._view = view
        self._network = is_network(exchange.root)
        self._read_at: str | None = None
        self._known: set[str] = set()
        self._whose: dict[str, JobOwner] = {}
        self._open: dict[str, Request] = {}
        self._held: dict[str, tuple[str | None, Request]] = {}
        self._gone: list[tuple[str, JobOwner]] = []

    @property
    def tick(self) -> float:
        """Seconds to wait between two looks."""
        return NETWORK_TICK if self._network else TICK

    @property
    def gone(self) -> list[tuple[str, JobOwner]]:
        """What was deleted between the last two looks, and whose it was."""
        return self._gone

    def look(self) -> list[tuple[Request, Job]]:
        """Return the jobs that are not settled, and those that have settled since the last look."""
        self._gone = []
        self._take_in()
        for name, (stamp, request) in list(self._held.items()):
            if stamp is None or stamp != stamp_of(self._exchange.root / name):
                del self._held[name]
                self._open[name] = request
        stamps = {name: stamp_of(f"{self._exchange.root}/{name}") for name in self._open}
        found = self._roster.look(self._open.values())
        self._miss(self._open.keys() - {request.name for request, _ in found})
        for request, job in found:
            if job.decided:
                del self._open[job.name]
                self._view.forget(job.name)
                if job.delivery.state is DeliveryState.HELD:
                    self._held[job.name] = (stamps[job.name], request)
        return found

    def _take_in(self) -> None:
        """Take notice of jobs that are new, and of those that are gone."""
        # A stamp that is too young to be relied on is None: then the names are read again.
        stamp = None if self._network else stamp_of(self._exchange.root)
        if stamp is not None and stamp == self._read_at:
            return
        names = set(self._exchange.jobs())
        for name in self._known - names:
            self._forget(name)
        new = names - self._known
        settled = self._roster.settled(new) if not self._known else {}
        self._whose.update((name, JobOwner(r.owner, r.source)) for name, r in settled.items())
        for name, row in settled.items():
            if row.delivery != DeliveryState.HELD.value:
                new.discard(name)
        for request in self._roster.requests(new):
            self._open[request.name] = request
            self._whose[request.name] = JobOwner(request.owner, request.source)
        self._known, self._read_at = names, stamp

    def _miss(self, names: Iterable[str]) -> None:
        """Take notice of jobs that are being deleted: nobody sees them from then on."""
        for name in names:
            if self._view.is_deleted(name):
                self._forget(name)

    def _forget(self, name: str) -> None:
        self._open.pop(name, None)
        self._held.pop(name, None)
        self._view.forget(name)
        whose = self._whose.pop(name, None)
        if whose is not None:
            self._gone.append((name, whose))
