"""The jobs that wait: nothing has happened to their directories since they were submitted.

There may be thousands of them, and whoever asks for one job must not pay for all. So a call looks
at a share of the directories only, in turn. Every directory is looked at within `LOOK_INTERVAL`,
and all directories of an ordinary queue at every call.
"""

from __future__ import annotations

import math
import os
import threading
import time
from collections.abc import Iterable, Mapping
from itertools import islice
from pathlib import Path

from job_runner.protocol import layout

from ...domain.errors import NotFound
from ...exchange import FileExchange, Request
from ...exchange.request import UnreadableRequest
from ...exchange.stamps import stamp_of

LOOK_INTERVAL = 2.0
"""Seconds after which a long queue shows a change that neither it nor the dispatcher told of."""
MAX_LOOKS = 100
"""Jobs of a queue that every call looks at as a whole."""
SUBMITTED = frozenset(
    [
        *(layout.REQUEST, layout.ORIGIN, layout.SNAPSHOT, layout.INPUTS),
        *(layout.NOTIFY, layout.NOTIFICATIONS),
    ]
)
"""What a submission writes, and what hooks were told. Any other name means that something happened
to the job."""
FIRST_ATTEMPT = layout.attempt_dir(Path(), 1)


class WaitingJobs:
    """Knows the requests of the waiting jobs of one exchange. Several threads may use it."""

    def __init__(self, exchange: FileExchange) -> None:
        self._exchange = exchange
        self._lock = threading.Lock()
        self._names: frozenset[str] = frozenset()
        self._other_names: set[str] = set()
        self._stamps: dict[str, str | None] = {}
        """The stamps of the waiting jobs' directories; the one to look at next comes first."""
        self._requests: Mapping[str, Request] = {}
        self._reconsidered: set[str] = set()
        self._looked_at = -math.inf

    def requests(self, recorded: Request | None = None) -> Mapping[str, Request]:
        """Return the requests of the waiting jobs: the same object while nothing changed.

        `recorded` was written just now by this process, and need not be read.
        """
        with self._lock:
            names = self._exchange.jobs()
            to_look_at = [*islice(self._stamps, self._looks_due()), *self._reconsidered]
            self._reconsidered.clear()
            if names is not self._names:
                self._names = names
                self._other_names &= names
                to_look_at += names.difference(self._stamps, self._other_names)
                to_look_at += self._stamps.keys() - names
            self._update({name: self._look(name, recorded) for name in to_look_at})
            return self._requests

    def ignore(self, names: Iterable[str]) -> None:
        """Do not look at jobs that are known to have ended."""
        with self._lock:
            self._other_names.update(names)

    def reconsider(self, name: str) -> None:
        """Look at a job again that seemed to have started: another job may have its name now."""
        with self._lock:
            self._reconsidered.add(name)

    def _looks_due(self) -> int:
        """Return how many directories to look at now."""
        moment, last_look = time.monotonic(), self._looked_at
        self._looked_at = moment
        waiting = len(self._stamps)
        share = min((moment - last_look) / LOOK_INTERVAL, 1.0)
        return waiting if waiting <= MAX_LOOKS else math.ceil(share * waiting)

    def _look(self, name: str, recorded: Request | None) -> Request | None:
        """Return a job's request if it waits. All others are looked at before it is again."""
        last_stamp = self._stamps.pop(name, None)
        stamp = stamp_of(f"{self._exchange.root}/{name}")
        request = self._requests.get(name)
        if request is None or stamp is None or stamp != last_stamp:
            request = self._read(name, recorded)
        if request is not None:
            self._stamps[name] = stamp
        return request

    def _read(self, name: str, recorded: Request | None) -> Request | None:
        # There may be thousands: `Path` would take longer than the file system does.
        if os.path.exists(f"{self._exchange.root}/{name}/{FIRST_ATTEMPT}"):  # noqa: PTH110
            return None
        try:
            is_recorded = recorded is not None and recorded.name == name
            request = recorded if is_recorded else self._exchange.find_request(name)
            pieces = os.listdir(f"{self._exchange.root}/{name}")  # noqa: PTH208
        except (NotFound, OSError):
            return None
        is_untouched = SUBMITTED.issuperset(pieces)
        return request if is_untouched and not isinstance(request, UnreadableRequest) else None

    def _update(self, looked_at: Mapping[str, Request | None]) -> None:
        """Take what was found of some jobs: a request, or None if the job does not wait."""
        changed = {
            name: request
            for name, request in looked_at.items()
            if request is not (previous := self._requests.get(name)) and request != previous
        }
        for name, request in looked_at.items():
            if request is not None:
                self._other_names.discard(name)
            elif name in self._names:
                self._other_names.add(name)
        if changed:
            requests = {**self._requests, **changed}
            self._requests = {name: r for name, r in requests.items() if r is not None}
