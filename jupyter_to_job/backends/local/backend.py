"""The local backend as the service sees it: a queue in front of this machine's slots."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from functools import partial
from pathlib import Path

from job_runner.protocol import liveness

from ...domain.errors import JobsError, NeverFits, Unavailable
from ...domain.state import Placement
from ...domain.wait import Need
from ...exchange import FileExchange, Request
from ...exchange.request import Demand
from ...exchange.stamps import StampCache, stamp_of
from ..port import Resource
from . import hosts
from .capacity import admit
from .dispatcher_process import ensure_dispatcher
from .forecast import forecast_starts
from .gpus import DRIVER_TIMEOUT, GPU
from .placed_queue import HostQueue, PlacedQueue
from .queue import demand_of
from .slots import Machine, SlotReport, read_slots, sum_of

_MACHINE_TTL = 60.0
"""Seconds after which a long-lived process counts the machine's GPUs again."""
_MAX_REPORTS = 100
"""Hosts whose slots are kept in memory."""
_START_TIME = 5.0
"""Seconds: a dispatcher that fails within this time after its start could not be started."""


class LocalBackend:
    """Implements `backends.port.Backend` and `QueueForecaster`.

    `capacity_setting` is as in JUPYTER_TO_JOB_CAPACITY. `silence`: seconds without a heartbeat
    after which another host's jobs are taken over.
    """

    name = "local"
    has_queue = True

    def __init__(
        self,
        exchange: FileExchange,
        capacity_setting: str = "",
        silence: float = liveness.HEARTBEAT_TIMEOUT,
    ) -> None:
        self._exchange = exchange
        self._setting = capacity_setting
        self._silence = silence
        self._machine_time = time.monotonic()
        self._machine = Machine(capacity_setting)
        self._started: subprocess.Popen[bytes] | None = None
        self._started_at = float("-inf")
        self._demands: StampCache[str, frozenset[Demand]] = StampCache()
        self._reports: StampCache[str, SlotReport | None] = StampCache(_MAX_REPORTS)
        self._queue = PlacedQueue.of({}, {}, hosts.this_host())

    def admit(self, demand: Mapping[str, Decimal]) -> None:
        """See the port."""
        amounts = {name: amount for name, amount in demand.items() if amount}
        machine = self._current_machine()
        machine.probe(amounts, timeout=DRIVER_TIMEOUT)
        try:
            admit(amounts, machine.total)
        except NeverFits as error:
            if not machine.problem:
                raise
            raise NeverFits(
                f"{error.message.rstrip('.')}: {machine.problem}.", error.hint
            ) from error

    def notify(self, *jobs: str) -> None:
        """See the port: starts this host's dispatcher, unless other hosts serve all the jobs."""
        status = self._started.poll() if self._started is not None else None
        has_failed = (status or 0) > 0 and time.monotonic() - self._started_at < _START_TIME
        if all(map(self._is_served_elsewhere, jobs)):
            return
        try:
            started = ensure_dispatcher(self._exchange.root, self._setting)
        except OSError as error:
            raise Unavailable(
                f"The dispatcher could not be started: {error.strerror}.",
                f"{jobs[0]} is recorded, and looking at it tries again.",
            ) from error
        if started is None:
            return  # one runs
        self._started, self._started_at = started, time.monotonic()
        if has_failed:
            log = hosts.host_folder(self._exchange.root, hosts.this_host()) / hosts.LOG
            raise Unavailable(
                f"The last dispatcher ended at once: {hosts.last_line(log)}",
                f"{jobs[0]} is recorded, and another dispatcher was started.",
            )

    def alive(self, job: str, attempt: Path) -> bool:  # noqa: ARG002 - its lock is enough
        """See the port."""
        return liveness.is_alive(attempt)

    def queue_status(self, waiting: Mapping[str, Request]) -> Mapping[str, Placement]:
        """See the port: each host has a queue of its own."""
        this_host = hosts.this_host()
        # Thousands of jobs may wait, on few hosts and with few different demands.
        demands = self._demands.get("", waiting, lambda: _demands_of(waiting))
        served_by = {demand.host or this_host for demand in demands} | {this_host}
        queues = {host: self._host_queue(host, demands) for host in served_by}
        self._queue = queue = self._queue.updated(waiting, queues)
        return queue.placements

    def resources(self) -> Mapping[str, Resource]:
        """See the port: the dispatcher's slots, or those that one would have on this machine."""
        report = self._slots_here([GPU], timeout=DRIVER_TIMEOUT)
        used = sum_of(report.allocations.values())
        return {
            name: Resource(amount, max(Decimal(0), amount - used.get(name, Decimal(0))))
            for name, amount in report.total.items()
        }

    def needs(self, request: Request) -> tuple[Need, ...]:
        """See the port."""
        slots, demand = self._slots_for(request), demand_of(request)
        if slots is None:
            return ()
        used, zero = sum_of(slots.allocations.values()), Decimal(0)
        free = {n: max(zero, total - used.get(n, zero)) for n, total in slots.total.items()}
        return tuple(
            Need(name, f"{amount.normalize():f}", f"{free[name].normalize():f}")
            for name, amount in demand.items()
            if name in free and free[name] < amount
        )

    def forecast(
        self,
        queue: Sequence[Request],
        run_time: Callable[[Request], float | None],
        remaining: Callable[[str], float | None],
    ) -> Sequence[float | None]:
        """See the port."""
        slots = self._slots_for(queue[0]) if queue else None
        if slots is None:
            return [None] * len(queue)
        return forecast_starts(slots, queue, run_time, remaining)

    # Inside ---------------------------------------------------------------------------------

    def _slots_for(self, request: Request) -> SlotReport | None:
        """Return the slots of the host where a job waits; None while nobody knows them."""
        host = request.environment.host or hosts.this_host()
        if host == hosts.this_host():
            return self._slots_here(demand_of(request).keys())
        return self._slots_of(host)

    def _current_machine(self) -> Machine:
        if time.monotonic() - self._machine_time > _MACHINE_TTL:
            self._machine_time, self._machine = time.monotonic(), Machine(self._setting)
        return self._machine

    def _host_queue(self, host: str, demands: Collection[Demand]) -> HostQueue:
        slots = self._slots_of(host)
        if slots is None and host == hosts.this_host():
            ours = [demand.amounts for demand in demands if demand.host in ("", host)]
            demanded = {name for amounts in ours for name, amount in amounts if Decimal(amount)}
            slots = self._expected_slots(demanded)
        return HostQueue(slots, self._waits_for(host))

    def _is_served_elsewhere(self, job: str) -> bool:
        """Tell whether the job is another host's, whose dispatcher had a heartbeat lately."""
        try:
            host = self._exchange.request(job).environment.host
        except JobsError:
            return False
        return host not in ("", hosts.this_host()) and self._is_recent(host)

    def _is_recent(self, host: str) -> bool:
        return hosts.is_recent(self._exchange.root, host, 2 * liveness.HEARTBEAT_INTERVAL)

    def _slots_of(self, host: str) -> SlotReport | None:
        """Return the slots that a host's dispatcher published, while it runs.

        A job may have a slot before its attempt exists.
        """
        root = self._exchange.root
        if not hosts.has_dispatcher(root, host):
            return None
        stamp = stamp_of(hosts.host_folder(root, host) / hosts.SLOTS)
        return self._reports.get(host, stamp, partial(read_slots, root, host))

    def _slots_here(self, names: Collection[str], timeout: float = 0.0) -> SlotReport:
        """Return this host's slots of these resources.

        A dispatcher whose jobs need no GPU has not asked the driver.
        """
        slots = self._slots_of(hosts.this_host())
        if slots is not None and slots.is_complete:
            return slots
        expected = self._expected_slots(names, timeout)
        if slots is None:
            return expected
        return replace(slots, total={**expected.total, **slots.total})

    def _expected_slots(self, names: Collection[str], timeout: float = 0.0) -> SlotReport:
        """Return the slots that a dispatcher of this host would have of these resources."""
        machine = self._current_machine()
        machine.probe(names, timeout)
        return SlotReport(dict(machine.total), machine.is_complete, {})

    def _waits_for(self, host: str) -> str | None:
        """Return a message if a queue waits for another host that has no heartbeat."""
        if host == hosts.this_host() or self._is_recent(host):
            return None
        return (
            f"Waits for the host {host}, where it was submitted. Another host takes it over when "
            f"{host} has been silent for {self._silence:g} s, if its Python is there, too."
        )


def _demands_of(waiting: Mapping[str, Request]) -> frozenset[Demand]:
    return frozenset(request.demand_on_host for request in waiting.values())
