"""The dispatcher's loop: look at every job that is not settled, and do its next step."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from job_runner.protocol import documents, layout

from ..backends.local.hosts import HostStatus, HostWatch
from ..backends.local.queue import demand_of, in_line, start
from ..backends.local.slots import Allocation, Machine, Slots, devices_of, write_quickly
from ..domain.errors import JobsError, NotFound
from ..domain.quantities import format_resource
from ..exchange import FileExchange, Request
from .job_names import JobNames
from .lease import Lease
from .observation import NEW, SLOT, Observation, Phase, names_in, observe
from .processes import Processes

TICK = 0.05
"""Seconds between two looks for new jobs."""
LOOK = 0.25
"""Seconds between two looks at a job, while nothing tells that it changed."""
LOOK_EACH = 0.002
"""The same for each job that is open: a long line costs no more than a short one."""
LINE_EACH = 0.0002
"""Seconds between two looks at the line for each job that is open, while nobody's run ended."""
LOOK_ELSEWHERE = 2.0
"""The same for a job that another host serves."""
RETRY = 10.0
"""Seconds before a job is looked at again whose last step failed."""
RETRY_HELD = 60.0
"""Seconds before a delivery that was held is tried again."""
RETAIN = 3600.0
"""Seconds between two times of clearing away what was kept long enough."""
_log = logging.getLogger(__name__)


@dataclass
class _ActiveJob:
    """A job that is not settled, and what the last look said.

    `mine`: this dispatcher serves it. `work`: there is something to do for it here, now or soon.
    `start_at`, `deliver_at`: not before this moment (monotonic), because the last try failed.
    """

    request: Request
    seen: Observation = NEW
    mine: bool = True
    work: bool = True
    due: float = 0.0
    start_at: float = 0.0
    deliver_at: float = 0.0
    held: str | None = None

    @property
    def name(self) -> str:
        return self.request.name


@dataclass
class Dispatcher:
    """Serves the jobs of `host` in an exchange, and those of hosts that are silent."""

    exchange: FileExchange
    machine: Machine
    host: str
    watch: HostWatch
    settled: set[str] = field(default_factory=set)
    _open: dict[str, _ActiveJob] = field(default_factory=dict)
    _damaged: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self._processes = Processes(self.exchange, self.host)
        self._slots = Slots(self.machine)
        self._listing = JobNames(self.exchange)
        self._retained = time.monotonic()
        self._line_due = 0.0

    def serve(self, presence: Lease, idle: float, pause: Callable[[float], bool]) -> None:
        """Work until nothing was left to do for `idle` seconds, or the lock is lost.

        `pause` waits for some seconds, or until a process of ours ended, and tells which.
        """
        # At once: a process may have ended just when the last term of office did.
        self.look(self._processes.reap())
        self._processes.sweep(self._open)
        last_work, ended = time.monotonic(), False
        while time.monotonic() - last_work < idle and presence.keep():
            if self.look(self._processes.reap() if ended else set()):
                last_work = time.monotonic()
            presence.show(self._slots)
            if time.monotonic() - self._retained > RETAIN:
                self.retain()
            ended = pause(TICK)

    def has_work(self) -> bool:
        """Tell whether there is something to do, of what was written up to now; does nothing."""
        self._listing.refresh(force=True)
        self._note_names()
        left = [job for name, job in self._open.items() if name in self._listing.names]
        for job in left:
            self._guarded(job, partial(self._see, job))
        return any(job.work for job in left)

    def retain(self) -> None:
        """Have cleared away what was kept long enough."""
        self._retained = time.monotonic()
        try:
            self._processes.retain()
        except OSError as error:
            _log.warning("nothing is cleared away: %s", error)

    def look(self, ended: Collection[str]) -> bool:
        """Do the next step of every job that is due, or whose process `ended`.

        True while there is anything to do here.
        """
        if self._listing.refresh():
            self._note_names()
        now = time.monotonic()
        due = [job for name, job in self._open.items() if job.due <= now or name in ended]
        for job in due:
            if job.name in self._listing.names:
                self._guarded(job, partial(self._step, job))
            else:
                self._vanished(job)
        if due and (ended or now >= self._line_due):
            self._line_due = now + LINE_EACH * len(self._open)
            self._start_line()
        return any(job.work for job in self._open.values())

    # Which jobs there are -------------------------------------------------------------------

    def _note_names(self) -> None:
        """Take up jobs that are new, and let go of those that were removed."""
        names = self._listing.names
        self.settled &= names
        for name in names.difference(self.settled, self._open):
            try:
                found = names_in(self.exchange.root / name)
                if layout.DELIVERY in found and layout.DELETE not in found:
                    self.settled.add(name)
                else:
                    self._open[name] = _ActiveJob(self.exchange.request(name))
            except (JobsError, OSError) as error:
                self._listing.forget(name)  # looked at again by and by
                if name not in self._damaged:
                    self._damaged.add(name)
                    _log.error("%s: left alone: %s", name, error)
        for name in self._open.keys() - names:
            self._open[name].due = 0.0

    def _vanished(self, job: _ActiveJob) -> None:
        """Let go of a job that was removed; end its run, which nobody could see or stop."""
        if self._processes.has_runner(job.name):
            self._processes.terminate(job.name, None)
            job.due = time.monotonic() + LOOK
        else:
            self._let_go(job.name)

    def _let_go(self, name: str) -> None:
        del self._open[name]
        self._slots.release(name)
        self._processes.forget(name)

    def _guarded(self, job: _ActiveJob, step: Callable[[], None]) -> None:
        """Do a job's next step; whatever goes wrong with one job stops no other.

        It is tried again after `RETRY`, and keeps its slot meanwhile: it may well be running.
        """
        try:
            step()
        except (FileNotFoundError, NotFound):  # removed under our eyes
            self._listing.expect_change()
            job.due = time.monotonic() + LOOK
        except Exception:
            _log.exception("%s: tried again in %g s", job.name, RETRY)
            job.due = time.monotonic() + RETRY

    # One job --------------------------------------------------------------------------------

    def _see(self, job: _ActiveJob) -> None:
        """Look at a job, and find out whether it is ours and whether there is work to do."""
        directory = self.exchange.root / job.name
        seen = job.seen = observe(directory, names_in(directory), job.seen)
        host = seen.host or job.request.environment.host or self.host
        sight = HostStatus.SILENT if host == self.host else self.watch.sight(host)
        job.mine = sight is HostStatus.SILENT
        if job.mine and seen.phase is Phase.WAITING and not seen.cancelled:
            job.work = self._can_start(job)
        else:
            tried = job.deliver_at > 0 and not self._processes.is_helped(job.name)
            done = seen.phase is Phase.SETTLED or (seen.phase is Phase.HELD and tried)
            job.work = not done and sight is not HostStatus.SERVED
        pace = max(LOOK, LOOK_EACH * len(self._open)) if job.mine else LOOK_ELSEWHERE
        job.due = time.monotonic() + (LOOK if seen.phase is Phase.RUNNING else pace)

    def _can_start(self, job: _ActiveJob) -> bool:
        """Tell whether a waiting job could be started here at some time."""
        environment, demand = job.request.environment, demand_of(job.request)
        if environment.host not in ("", self.host) and not Path(environment.interpreter).exists():
            return False
        if not self.machine.knows(demand):
            return True
        total = self.machine.total
        if all(amount <= total.get(resource, 0) for resource, amount in demand.items()):
            return True
        if job.work:  # said once, not at each look
            asked = ", ".join(format_resource(*pair) for pair in demand.items())
            _log.warning("%s: needs %s, which is more than there is here", job.name, asked)
        return False

    def _step(self, job: _ActiveJob) -> None:
        """Advance one job. Those that wait for a slot are `_start_line`'s."""
        self._see(job)
        name, seen = job.name, job.seen
        if seen.phase is Phase.SETTLED:
            self._log_delivery(name)
            self.settled.add(name)
            self._let_go(name)
            return
        self._account(job)
        if not job.mine or self._processes.is_helped(name):
            return
        running = seen.phase is Phase.RUNNING or self._processes.has_runner(name)
        if running and seen.cancelled:
            self._processes.terminate(name, seen.attempt)
        if seen.phase is Phase.WAITING:
            why = self._processes.cannot_start(name)
            if seen.cancelled:
                why = ("Terminated", "Cancelled before it started.")
            if why is not None:
                self._processes.finish(name, *why)
        elif seen.phase is Phase.DEAD and not running:
            why = ("Terminated", "It was told to stop, and was killed.") if seen.cancelled else None
            self._processes.finish(name, *(why or self._processes.why(name)))
        elif seen.phase in (Phase.ENDED, Phase.HELD):
            self._deliver(job)

    def _deliver(self, job: _ActiveJob) -> None:
        """Deliver; what is held, once at first, and then now and then while there is other work."""
        now = time.monotonic()
        if job.seen.phase is Phase.HELD:
            why = documents.read_document(self.exchange.root / job.name / layout.HELD) or {}
            if job.deliver_at and why.get("message") != job.held:
                job.held = why.get("message")
                _log.warning("%s: held: %s", job.name, job.held)
            if now < job.deliver_at:
                return
        if self._processes.settle(job.name):
            job.deliver_at = now + RETRY_HELD

    def _account(self, job: _ActiveJob) -> None:
        """Keep what a run here holds, adopting that of a dispatcher before; else give it back."""
        name, phase, here = job.name, job.seen.phase, job.seen.host == self.host
        started = here or self._processes.has_runner(name)
        if started and phase in (Phase.WAITING, Phase.RUNNING, Phase.DEAD):
            if name not in self._slots.held:
                slot = documents.read_document(self.exchange.root / name / SLOT) or {}
                self._slots.adopt(name, Allocation(demand_of(job.request), devices_of(slot)))
        elif not self._processes.has_runner(name):
            self._slots.release(name)

    def _log_delivery(self, name: str) -> None:
        delivery = documents.read_document(self.exchange.root / name / layout.DELIVERY)
        if delivery is not None:
            _log.info("%s: delivered as %s", name, delivery.get("path"))

    # The line -------------------------------------------------------------------------------

    def _start_line(self) -> None:
        """Start those whose turn it is, after those that had their turn with another dispatcher."""
        line = []
        for job in list(self._open.values()):
            if not self._is_startable(job):
                continue
            if job.name in self._slots.held:
                self._launch(job, self._slots.held[job.name])
            elif self.machine.knows(demand_of(job.request)):
                line.append(job.request)
        for request, holding in start(in_line(line), self._slots):
            self._launch(self._open[request.name], holding)

    def _is_startable(self, job: _ActiveJob) -> bool:
        busy = self._processes.has_runner(job.name) or self._processes.is_helped(job.name)
        waits = job.seen.phase is Phase.WAITING and not job.seen.cancelled
        ours = job.mine and job.work and job.seen is not NEW
        may = ours and waits and not busy and time.monotonic() >= job.start_at
        return may and not self._processes.cannot_start(job.name)

    def _launch(self, job: _ActiveJob, holding: Allocation) -> None:
        """Start a runner in its slot, which is written down before; it keeps that if this fails.

        Else another job could get devices that slot.json promises to this one.
        """

        def launch() -> None:
            if holding.devices or job.request.environment.host != self.host:
                slot = {"v": 1, "host": self.host, "devices": holding.devices}
                write_quickly(self.exchange.root / job.name / SLOT, slot)
            self._processes.start_runner(job.request, self._slots.variables(holding))

        job.due, job.start_at = 0.0, time.monotonic() + RETRY
        self._guarded(job, launch)
