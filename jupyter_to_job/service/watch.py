"""Following jobs as they change, at the cost of those that still may."""

from __future__ import annotations

from collections.abc import Set

from ..domain.job import DeliveryState, Job
from ..exchange import FileExchange, Request
from ..exchange.filesystem import is_network
from ..exchange.index import stamp_of
from .roster import Roster
from .view import View

TICK = 0.1
"""Seconds between two looks: stats only, so cheap on a local disk."""
NETWORK_TICK = 1.0
"""The same on a network file system, where every stat may be a question to a server."""


class Watch:
    """Follows the jobs that may still change.

    New names are noticed by the modification time of the exchange's own directory. On a network
    file system that may be old, so there the names are read each time.
    """

    def __init__(self, exchange: FileExchange, roster: Roster, view: View) -> None:
        self._exchange = exchange
        self._roster = roster
        self._view = view
        self._network = is_network(exchange.root)
        self._read_at: str | None = None
        self._known: set[str] = set()
        self._open: dict[str, Request] = {}
        self._held: dict[str, tuple[str | None, Request]] = {}

    @property
    def tick(self) -> float:
        """Seconds to wait between two looks."""
        return NETWORK_TICK if self._network else TICK

    @property
    def names(self) -> Set[str]:
        """All jobs that there were at the last look."""
        return self._known

    def look(self) -> list[tuple[Request, Job]]:
        """Return the jobs that are not settled, and those that have settled since the last look."""
        self._take_in()
        for name, (stamp, request) in list(self._held.items()):
            if stamp is None or stamp != stamp_of(self._exchange.root / name):
                del self._held[name]
                self._open[name] = request
        stamps = {name: stamp_of(self._exchange.root / name) for name in self._open}
        found = self._roster.look(self._open.values())
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
            self._open.pop(name, None)
            self._held.pop(name, None)
            self._view.forget(name)
        new = names - self._known
        settled = self._roster.settled(new) if not self._known else {}
        for name, row in settled.items():
            if row.delivery != DeliveryState.HELD.value:
                new.discard(name)
        self._open.update((request.name, request) for request in self._roster.requests(new))
        self._known, self._read_at = names, stamp
