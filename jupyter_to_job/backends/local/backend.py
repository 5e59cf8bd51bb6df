"""The local backend as the service sees it: a line in front of this machine's slots."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from pathlib import Path

from job_runner.protocol import layout, liveness

from ...domain.errors import JobsError, NeverFits, Unavailable
from ...domain.state import Placement
from ...exchange import FileExchange, Request
from ..port import Resource
from . import hosts
from .capacity import admit
from .dispatcher_process import ensure_dispatcher, last_words
from .gpus import DRIVER_TIMEOUT, GPU
from .queue import demand_of, in_line
from .slots import Allocation, Machine, SlotReport, published, sum_of

_LOOK_AGAIN = 60.0
"""Seconds after which a process that lives long counts the machine's GPUs again."""
_AT_ONCE = 5.0
"""Seconds within which a dispatcher that ends with an error cannot be started at all."""


class LocalBackend:
    """Implements `backends.port.Backend`; `capacity_setting` as in JUPYTER_TO_JOB_CAPACITY.

    `silence`: seconds without a sign of life after which another host's jobs are taken over.
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
        self._counted = time.monotonic()
        self._here = Machine(capacity_setting)
        self._started: subprocess.Popen[bytes] | None = None
        self._started_at = float("-inf")
        self._host_of: dict[str, str] = {}

    def admit(self, demand: Mapping[str, Decimal], kernel: str | None) -> None:
        """See the port. The kernel is looked up where the runner will look, too."""
        asked = {name: amount for name, amount in demand.items() if amount}
        machine = self._machine()
        machine.knows(asked, wait=DRIVER_TIMEOUT)
        try:
            admit(asked, machine.total)
        except NeverFits as error:
            if not machine.trouble:
                raise
            raise NeverFits(
                f"{error.message.rstrip('.')}: {machine.trouble}.", error.hint
            ) from error
        if kernel is not None:
            from .kernels import require_kernel  # the dispatcher, which starts often, has no use

            require_kernel(kernel)

    def notify(self, job: str) -> None:
        """See the port: starts this host's dispatcher, unless another host sees to the job."""
        status = self._started.poll() if self._started is not None else None
        at_once = (status or 0) > 0 and time.monotonic() - self._started_at < _AT_ONCE
        if self._is_elsewhere(job):
            return
        try:
            started = ensure_dispatcher(self._exchange.root, self._setting)
        except OSError as error:
            raise Unavailable(
                f"The dispatcher could not be started: {error.strerror}.",
                "The job is recorded; `jupyter-to-job wait` tries again.",
            ) from error
        if started is None:
            return  # somebody else's serves us
        self._started, self._started_at = started, time.monotonic()
        if at_once:
            raise Unavailable(
                f"The last dispatcher ended at once: {last_words(self._exchange.root)}",
                "The job is recorded, and another dispatcher was started.",
            )

    def alive(self, job: str, attempt: Path) -> bool:  # noqa: ARG002 - its lock is enough
        """See the port."""
        return liveness.is_alive(attempt)

    def queue_status(self, waiting: Sequence[Request]) -> Mapping[str, Placement]:
        """See the port: each host has a line of its own."""
        here, lines = hosts.this_host(), dict[str, list[Request]]()
        for request in in_line(waiting):
            lines.setdefault(request.environment.host or here, []).append(request)
            self._host_of[request.name] = request.environment.host  # `notify` needs it
        served = {host: self._served(host) for host in {here, *lines}}
        starting = {job for one in served.values() if one is not None for job in one.held}
        placed = {}
        for host, line in lines.items():
            known = served[host] or self._expected(host, line)
            waits_for, place = self._waits_for(host), 0
            for request in line:
                if request.name in starting:
                    placed[request.name] = Placement(starting=True)
                    continue
                never = _never_fits(request, known)
                place += never is None
                placed[request.name] = never or Placement(position=place, message=waits_for)
        return placed

    def resources(self) -> Mapping[str, Resource]:
        """See the port: what the dispatcher has, else what this machine would have for one."""
        root, here = self._exchange.root, hosts.this_host()
        known = published(root, here)
        if known is not None and hosts.has_dispatcher(root, here):
            total, held = known.total, list(known.held.values())
        else:
            machine = self._machine()
            machine.knows([GPU], wait=DRIVER_TIMEOUT)
            total, held = machine.total, list(self._left_running(known.held if known else {}))
        used = sum_of(held)
        return {
            name: Resource(amount, max(Decimal(0), amount - used.get(name, Decimal(0))))
            for name, amount in total.items()
        }

    # Inside ---------------------------------------------------------------------------------

    def _machine(self) -> Machine:
        if time.monotonic() - self._counted > _LOOK_AGAIN:
            self._counted, self._here = time.monotonic(), Machine(self._setting)
        return self._here

    def _is_elsewhere(self, job: str) -> bool:
        """Tell whether the job is another host's, whose dispatcher gave a sign of life lately."""
        if job not in self._host_of:
            try:
                self._host_of[job] = self._exchange.request(job).environment.host
            except JobsError:
                return False
        host = self._host_of[job]
        lately = 2 * liveness.HEARTBEAT_INTERVAL
        return host not in ("", hosts.this_host()) and hosts.is_recent(
            self._exchange.root, host, lately
        )

    def _served(self, host: str) -> SlotReport | None:
        """Return what a host's dispatcher says of its slots, while there is one.

        It may hold slots for a job whose run is not seen yet.
        """
        root = self._exchange.root
        return published(root, host) if hosts.has_dispatcher(root, host) else None

    def _expected(self, host: str, line: Sequence[Request]) -> SlotReport | None:
        """Return what a dispatcher would have for a host's line, as far as it is known here."""
        if host != hosts.this_host():
            return None
        machine = self._machine()
        machine.knows({name for request in line for name in demand_of(request)})
        return SlotReport(machine.total, machine.complete, {})

    def _waits_for(self, host: str) -> str | None:
        """Say which host a line waits for, if its dispatcher is neither here nor to be seen."""
        root = self._exchange.root
        if host == hosts.this_host() or hosts.is_recent(
            root, host, 2 * liveness.HEARTBEAT_INTERVAL
        ):
            return None
        return (
            f"Waits for the host {host}, where it was submitted. Another host takes it over when "
            f"{host} has been silent for {self._silence:g} s, if its Python is there, too."
        )

    def _left_running(self, held: Mapping[str, Allocation]) -> Iterator[Allocation]:
        """Yield what runs hold that a dispatcher left, which is no more."""
        for job, holding in held.items():
            directory = self._exchange.root / job
            if any(
                liveness.is_alive(layout.attempt_dir(directory, number))
                for number in layout.attempts(directory)[-1:]
            ):
                yield holding


def _never_fits(request: Request, known: SlotReport | None) -> Placement | None:
    """Return where a job stands for which the slots do not suffice; None for all others."""
    demand = demand_of(request)
    if known is None or not (known.complete or known.total.keys() >= demand.keys()):
        return None
    try:
        admit(demand, known.total)
    except NeverFits as error:
        return Placement(
            reason="Unschedulable",
            message=f"{error.message} It waits for larger slots (JUPYTER_TO_JOB_CAPACITY) and "
            "stops nobody; cancel it, or submit it again smaller.",
        )
    return None
