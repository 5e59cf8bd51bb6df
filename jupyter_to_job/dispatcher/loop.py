"""The dispatcher's loop: it reads every job that is not settled, and does the job's next step."""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from job_runner.protocol import documents, layout
from job_runner.protocol.outcome import LOST_MESSAGE

from ..backends.local.hosts import NOTIFIER_LOCK, HostStatus, HostWatch, host_folder
from ..backends.local.queue import demand_of, in_queue_order, start
from ..backends.local.slots import Allocation, Machine, Slots, read_slot
from ..domain.errors import Damaged, JobsError, NotFound
from ..domain.quantities import format_resource
from ..exchange import FileExchange, Request
from ..exchange.records import DeliveryRecord, HeldRecord
from ..notifications.process import NotifierProcess
from .lease import Lease
from .observation import NEW, SLOT, Observation, Phase, names_in, observe
from .overdue import OverdueWatch
from .processes import Processes, has_python
from .settled import MAX_LOOKS, SettledJobs, request_stamp

POLL_INTERVAL = 0.05
"""Seconds between two polls for new jobs."""
NETWORK_POLL_INTERVAL = 1.0
"""The same on a network file system, where every poll reads the exchange's directory."""
JOB_INTERVAL = 0.25
"""Seconds between two reads of a job, while no event tells that it changed."""
INTERVAL_PER_JOB = 0.002
"""The same for each active job: a long queue costs no more than a short one."""
QUEUE_INTERVAL_PER_JOB = 0.0002
"""Seconds between two walks through the queue for each active job, while no run ended."""
FOREIGN_JOB_INTERVAL = 2.0
"""Seconds between two reads of a job that another host serves."""
RETRY_INTERVAL = 10.0
"""Seconds before a failed step is tried again, and before an unreadable job is read again."""
RETRY_HELD_INTERVAL = 60.0
"""Seconds before a delivery that was held is tried again."""
RETENTION_INTERVAL = 3600.0
"""Seconds between two runs of the retention."""
_log = logging.getLogger(__name__)


@dataclass
class _ActiveJob:
    """A job that is not settled, and the latest observation of it.

    `stamp` is that of its request. `is_ours`: this dispatcher serves it. `has_work`: there is a
    step to do here, now or soon. `due_at` is when to read it again. `start_at`, `deliver_at`: not
    to be tried before, because the previous try failed. All times are monotonic.
    """

    request: Request
    stamp: str | None
    observation: Observation = NEW
    is_ours: bool = True
    has_work: bool = True
    due_at: float = 0.0
    start_at: float = 0.0
    deliver_at: float = 0.0
    held_message: str | None = None

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
    overdue: OverdueWatch = field(default_factory=OverdueWatch)
    _active: dict[str, _ActiveJob] = field(default_factory=dict)
    _damaged: set[str] = field(default_factory=set)
    _names: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        self._processes = Processes(self.exchange, self.host)
        self._slots = Slots(self.machine)
        lock = host_folder(self.exchange.root, self.host) / NOTIFIER_LOCK
        self._notifier, self._has_hooks = NotifierProcess(self.exchange.root, lock), False
        self._retention_time = time.monotonic()
        self._settled, self._has_unserved = SettledJobs(self.exchange), False
        self._names_due_at = self._damaged_due_at = self._queue_due_at = 0.0

    def serve(self, lease: Lease, idle: float, pause: Callable[[float], bool]) -> None:
        """Work until there was nothing to do for `idle` seconds, or the lease or Python is lost.

        `pause` waits for some seconds, or until a child process ended, and tells which.
        """
        # Reap first: a child may have exited while the previous lease was given up.
        self.poll(self._processes.reap())
        self._processes.remove_leftovers(self._active)
        self._processes.hold_ballast()  # after the first runs have begun
        work_time, child_ended = time.monotonic(), False
        while time.monotonic() - work_time < idle and has_python() and lease.renew():
            if self.poll(self._processes.reap() if child_ended else set()):
                work_time = time.monotonic()
            lease.publish_slots(self._slots)
            self._processes.log_slow_helpers()
            if self._has_hooks:
                self._notifier.keep()
            if time.monotonic() - self._retention_time > RETENTION_INTERVAL:
                self.retain()
            child_ended = pause(POLL_INTERVAL)

    def has_work(self) -> bool:
        """Tell whether there is a step to do, by reading the exchange again; do none."""
        self._names_due_at = 0.0
        self._update_names(looks=len(self._settled))
        jobs = [job for name, job in self._active.items() if name in self._names]
        for job in jobs:
            self._isolated(job, partial(self._refresh, job))
        return any(job.has_work for job in jobs)

    def retain(self) -> None:
        """Start a process that clears what was kept long enough."""
        self._retention_time = time.monotonic()
        try:
            self._processes.retain()
        except OSError as error:
            _log.warning("nothing is cleared away: %s", error)

    def poll(self, ended: Collection[str]) -> bool:
        """Do the next step of every job that is due, or whose process `ended`.

        Return whether any active job has work here.
        """
        self._update_names()
        moment = time.monotonic()
        due = [job for name, job in self._active.items() if job.due_at <= moment or name in ended]
        for job in due:
            if job.name not in self._names or self._is_replaced(job):
                self._abandon(job)
            else:
                self._isolated(job, partial(self._step, job))
        if due and (ended or moment >= self._queue_due_at):
            self._queue_due_at = moment + QUEUE_INTERVAL_PER_JOB * len(self._active)
            self._start_queue()
        return any(job.has_work for job in self._active.values())

    # Which jobs exist -----------------------------------------------------------------------

    def _update_names(self, looks: int = MAX_LOOKS) -> None:
        """Read the names of the jobs. Begin to serve new jobs, and notice those that are gone."""
        moment = time.monotonic()
        if moment < self._names_due_at:
            return
        if not self.exchange.is_local:
            self._names_due_at = moment + NETWORK_POLL_INTERVAL
        names = self.exchange.jobs()
        self._has_unserved |= self._settled.forget_replaced(looks) or names is not self._names
        if not self._has_unserved and not (self._damaged and moment >= self._damaged_due_at):
            return
        self._names, self._has_unserved = names, False
        self._damaged_due_at = moment + RETRY_INTERVAL
        self._settled.drop_others(names)
        self._damaged &= names
        for name in names.difference(self._settled.names, self._active):
            try:
                stamp = request_stamp(self.exchange, name)
                entries = names_in(self.exchange.root / name)
                self._has_hooks |= layout.NOTIFY in entries
                if layout.DELIVERY in entries and layout.DELETE not in entries:
                    self._settled.add(name, stamp)
                else:
                    self._active[name] = _ActiveJob(self.exchange.request(name), stamp)
                self._damaged.discard(name)
            except (JobsError, OSError) as error:
                if name not in self._damaged:
                    self._damaged.add(name)
                    _log.error("%s: left alone: %s", name, error)
        for name in self._active.keys() - names:
            self._active[name].due_at = 0.0

    def _is_replaced(self, job: _ActiveJob) -> bool:
        """Tell whether another job has the name of this one now."""
        stamp = request_stamp(self.exchange, job.name)
        if stamp is None or stamp == job.stamp:
            return False
        try:
            is_same = self.exchange.request(job.name) == job.request
        except (JobsError, OSError):  # the job's next step meets the same error
            return False
        if is_same:  # only its file has changed, as a backup may do
            job.stamp = stamp
        return not is_same

    def _abandon(self, job: _ActiveJob) -> None:
        """Forget a job that was removed; end its run, which no user could see or stop."""
        if self._processes.has_runner(job.name):
            self._processes.terminate(job.name, None)
            job.due_at = time.monotonic() + JOB_INTERVAL
        else:
            self._forget(job.name)
            self._has_unserved = True

    def _forget(self, name: str) -> None:
        del self._active[name]
        self._slots.allocations.pop(name, None)
        self._processes.forget(name)
        self.overdue.forget(name)

    def _isolated(self, job: _ActiveJob, step: Callable[[], None]) -> None:
        """Do a job's next step; an error of one job stops no other.

        The step is tried again after `RETRY_INTERVAL`. The job keeps its slot: it may be running.
        """
        try:
            step()
        except Exception as error:
            missing = isinstance(error, FileNotFoundError | NotFound)
            if missing and not (self.exchange.root / job.name).exists():
                job.due_at = time.monotonic() + JOB_INTERVAL  # it was removed meanwhile
                return
            _log.exception("%s: tried again in %g s", job.name, RETRY_INTERVAL)
            job.due_at = time.monotonic() + RETRY_INTERVAL

    # One job --------------------------------------------------------------------------------

    def _refresh(self, job: _ActiveJob) -> None:
        """Observe a job; find out whether it is ours and whether there is work to do."""
        directory = self.exchange.root / job.name
        previous = job.observation.phase
        current = job.observation = observe(directory, names_in(directory))
        if current.phase is Phase.DAMAGED is not previous:
            _log.error("%s: left alone: its outcome cannot be read", job.name)
        host = current.host or job.request.environment.host or self.host
        status = HostStatus.SILENT if host == self.host else self.watch.status_of(host)
        job.is_ours = status is HostStatus.SILENT
        if job.is_ours and current.phase is Phase.WAITING and not current.cancelled:
            job.has_work = self._can_start(job)
        else:
            tried = job.deliver_at > 0 and not self._processes.has_helper(job.name)
            is_held = current.phase is Phase.HELD and tried
            is_finished = current.phase in (Phase.SETTLED, Phase.DAMAGED) or is_held
            job.has_work = not is_finished and status is not HostStatus.SERVED
        interval = JOB_INTERVAL
        if current.phase is Phase.DAMAGED:
            interval = RETRY_INTERVAL
        elif current.phase is not Phase.RUNNING:
            ours = max(JOB_INTERVAL, INTERVAL_PER_JOB * len(self._active))
            interval = ours if job.is_ours else FOREIGN_JOB_INTERVAL
        job.due_at = time.monotonic() + interval

    def _can_start(self, job: _ActiveJob) -> bool:
        """Tell whether a waiting job could be started here at some time."""
        environment, demand = job.request.environment, demand_of(job.request)
        if environment.host not in ("", self.host) and not Path(environment.interpreter).exists():
            return False
        if not self.machine.probe(demand):
            return True
        total = self.machine.total
        if all(amount <= total.get(resource, 0) for resource, amount in demand.items()):
            return True
        if job.has_work:  # logged once, not at each observation
            amounts = ", ".join(format_resource(*pair) for pair in demand.items())
            _log.warning("%s: needs %s, which is more than there is here", job.name, amounts)
        return False

    def _step(self, job: _ActiveJob) -> None:
        """Advance one job. `_start_queue` advances those that wait for a slot."""
        self._refresh(job)
        name, current = job.name, job.observation
        if current.phase is Phase.SETTLED:
            self._log_delivery(name)
            self._settled.add(name, job.stamp)
            self._forget(name)
            return
        self._update_slot(job)
        if not job.is_ours or self._processes.has_helper(name):
            return
        is_running = current.phase is Phase.RUNNING or self._processes.has_runner(name)
        if is_running:
            self._stop_if_due(job)
        if current.phase is Phase.WAITING:
            end = self._processes.failure(name)
            if current.cancelled:
                end = ("Terminated", "Cancelled before it started.")
            if end is not None:
                self._processes.finish(name, *end)
        elif current.phase is Phase.DEAD and not is_running:
            end = self._processes.failure(name) or ("Lost", LOST_MESSAGE)
            if current.cancelled:
                end = ("Terminated", "It was told to stop, and was killed.")
            self._processes.finish(name, *end)
        elif current.phase in (Phase.ENDED, Phase.HELD) and (current.attempt or not is_running):
            self._deliver(job)  # not while a runner may be about to begin its attempt

    def _stop_if_due(self, job: _ActiveJob) -> None:
        """End a run that is cancelled, or that goes on past its time limit."""
        current, request = job.observation, job.request
        if current.cancelled:
            self._processes.terminate(job.name, current.attempt)
        elif current.attempt is not None and self.overdue.is_overdue(request, current.attempt):
            self._processes.end_overdue(job.name, current.attempt, request.max_runtime or 0)

    def _deliver(self, job: _ActiveJob) -> None:
        """Deliver. A held delivery is tried at once, and then at intervals while there is work."""
        moment = time.monotonic()
        if job.observation.phase is Phase.HELD:
            message = self._record(job.name, layout.HELD, HeldRecord, "message")
            if job.deliver_at and message != job.held_message:
                job.held_message = message
                _log.warning("%s: held: %s", job.name, message)
            if moment < job.deliver_at:
                return
        if self._processes.deliver_or_remove(job.request):
            job.deliver_at = moment + RETRY_HELD_INTERVAL

    def _update_slot(self, job: _ActiveJob) -> None:
        """Occupy the slot of a run on this host, also of an earlier dispatcher; else release it."""
        name, phase = job.name, job.observation.phase
        has_runner = self._processes.has_runner(name)
        is_on_host = has_runner or job.observation.host == self.host
        # A run that cannot be finished now, on a full disk for one, has no process any more.
        is_dead = phase is Phase.DEAD and not self._processes.has_failed(name)
        if is_on_host and (phase in (Phase.WAITING, Phase.RUNNING) or is_dead):
            if name not in self._slots.allocations:
                devices = read_slot(self.exchange.root / name / SLOT)
                demand, group = demand_of(job.request), job.request.group
                self._slots.allocations[name] = Allocation(demand, devices, group)
        elif not has_runner:
            self._slots.allocations.pop(name, None)

    def _log_delivery(self, name: str) -> None:
        path = self._record(name, layout.DELIVERY, DeliveryRecord, "path")
        if path is not None:
            _log.info("%s: delivered as %s", name, path)

    def _record(self, name: str, path: str, cls: type, field: str) -> str | None:
        """Return one field of a job's document; None if there is none, or it is damaged."""
        with contextlib.suppress(Damaged):
            record = self.exchange.record(name, path, cls)
            return None if record is None else str(getattr(record, field))
        return None

    # The queue ------------------------------------------------------------------------------

    def _start_queue(self) -> None:
        """Start the jobs whose turn it is, first those that an earlier dispatcher gave a slot."""
        queue = []
        for job in list(self._active.values()):
            if not self._is_startable(job):
                continue
            if job.name in self._slots.allocations:
                self._launch(job, self._slots.allocations[job.name])
            elif self.machine.probe(demand_of(job.request)):
                queue.append(job.request)
        for request, allocation in start(in_queue_order(queue), self._slots):
            self._launch(self._active[request.name], allocation)

    def _is_startable(self, job: _ActiveJob) -> bool:
        current, processes = job.observation, self._processes
        return (
            job.is_ours
            and job.has_work
            and current is not NEW
            and current.phase is Phase.WAITING
            and not current.cancelled
            and not processes.has_runner(job.name)
            and not processes.has_helper(job.name)
            and time.monotonic() >= job.start_at
            and not processes.failure(job.name)
        )

    def _launch(self, job: _ActiveJob, allocation: Allocation) -> None:
        """Write slot.json and start a runner. The job keeps its slot if this fails.

        Otherwise another job could get devices that slot.json promises to this one.
        """

        def launch() -> None:
            if allocation.devices or job.request.environment.host != self.host:
                slot = {"host": self.host, "devices": allocation.devices}
                documents.write_document(self.exchange.root / job.name / SLOT, slot)
            self._processes.start_runner(job.request, self._slots.variables(allocation))

        job.due_at, job.start_at = 0.0, time.monotonic() + RETRY_INTERVAL
        self._isolated(job, launch)
