"""The dispatcher's loop: look at every job that is not settled, and do its next step."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from decimal import Decimal
from functools import partial

from job_runner.protocol import layout, liveness
from job_runner.protocol.outcome import read_outcome

from ..backends.local.capacity import Amounts, fits
from ..backends.local.order import in_line
from ..domain.errors import JobsError
from ..exchange import FileExchange, Request
from ..service.delivery import deliver, delivered_attempt
from .processes import Processes

TICK = 0.05
RETRY = 10.0
"""Seconds before a job is looked at again whose last step failed: a full disk passes."""
_log = logging.getLogger(__name__)


@dataclass
class Dispatcher:
    """Serves one exchange with the slots in `total`."""

    exchange: FileExchange
    total: Amounts
    settled: set[str] = field(default_factory=set)
    _requests: dict[str, Request] = field(default_factory=dict)
    _too_large: set[str] = field(default_factory=set)
    _paused: dict[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._processes = Processes(self.exchange)

    def serve(self, idle: float) -> None:
        """Work until nothing was left to do for `idle` seconds."""
        last_work = time.monotonic()
        while time.monotonic() - last_work < idle:
            if self.scan():
                last_work = time.monotonic()
            time.sleep(TICK)

    def has_work(self) -> bool:
        """Tell whether there are jobs that the last scan did not leave settled or to others."""
        return any(
            name not in self.settled and name not in self._too_large
            for name in self.exchange.jobs()
        )

    def scan(self) -> bool:
        """Do the next step of every job; True while there is anything to do here.

        A job that was submitted for a larger machine stays in line and is nothing to do: a
        dispatcher with more slots takes it, once this one has left.
        """
        self._processes.reap()
        waiting, used = [], dict[str, Decimal]()
        open_jobs = [n for n in self.exchange.jobs() if n not in self.settled]
        for name in open_jobs:
            request = self._request(name)
            if request is None:
                continue
            phase = self._guarded(name, partial(self._step, request))
            if phase == "waiting":
                waiting.append(request)
            elif phase == "running":
                _occupy(used, request)
            elif phase == "settled":
                self.settled.add(name)
                self._requests.pop(name, None)
        fitting = [r for r in waiting if fits(_demand(r), {}, self.total)]
        self._start(in_line(fitting), used)
        self._too_large = {r.name for r in waiting} - {r.name for r in fitting}
        return any(n not in self.settled and n not in self._too_large for n in open_jobs)

    def _request(self, name: str) -> Request | None:
        """Return what was asked; None for a job that cannot be read, which is left alone."""
        if name not in self._requests:
            try:
                self._requests[name] = self.exchange.request(name)
            except (JobsError, OSError):
                _log.exception("%s: left alone until the next dispatcher", name)
                self.settled.add(name)
        return self._requests.get(name)

    def _guarded(self, name: str, step: Callable[[], str | None]) -> str | None:
        """Do a job's next step; whatever goes wrong with one job stops no other.

        It is tried again after `RETRY`, and keeps its slot meanwhile: it may well be running.
        """
        if time.monotonic() < self._paused.get(name, 0.0):
            return "running"
        try:
            return step()
        except Exception:
            _log.exception("%s: tried again in %g s", name, RETRY)
            self._paused[name] = time.monotonic() + RETRY
            return "running"

    def _start(self, line: list[Request], used: dict[str, Decimal]) -> None:
        """Start from the head of the line as long as the head fits: nobody is overtaken."""
        for request in line:
            if not fits(_demand(request), used, self.total):
                break
            self._guarded(request.name, partial(self._processes.start_runner, request))
            _occupy(used, request)

    def _step(self, request: Request) -> str:
        """Advance one job: `waiting` for a slot, `running` in one, `ending`, or `settled`."""
        name, directory = request.name, self.exchange.root / request.name
        cancelled = (directory / layout.CANCEL).exists()
        numbers = layout.attempts(directory)
        if not numbers:
            if cancelled:
                self._processes.finish(name, "Terminated", "Cancelled before it started.")
                return "ending"
            return self._processes.starting(name)
        attempt = layout.attempt_dir(directory, numbers[-1])
        if liveness.is_alive(attempt):
            if cancelled:
                self._processes.terminate(name, attempt)
            return "running"
        if read_outcome(attempt) is None:
            self._processes.finish(name, *self._processes.why(name))
            return "running" if self._processes.owns(name) else "ending"
        return self._settle(name)

    def _settle(self, name: str) -> str:
        """Deliver an ended job; held results wait for a later start or `deliver`."""
        if (self.exchange.root / name / layout.DELETE).exists():
            self.exchange.remove(name)
        elif delivered_attempt(self.exchange, name) is not None:
            done = deliver(self.exchange, name)
            _log.info("%s: %s", name, "delivered" if done else "held")
        return "settled"


def _demand(request: Request) -> dict[str, Decimal]:
    return {name: Decimal(amount) for name, amount in request.demand.items()}


def _occupy(used: dict[str, Decimal], request: Request) -> None:
    for name, amount in _demand(request).items():
        used[name] = used.get(name, Decimal(0)) + amount
