"""How an attempt ended, by its documents: what its runner said, and how a cluster ended its pod."""

from __future__ import annotations

from dataclasses import replace

from job_runner.protocol import layout
from job_runner.protocol.outcome import Outcome

from ...domain.errors import Damaged
from ...domain.job import State
from ...domain.state import AttemptStatus, Ended, needs_reason_of_host, with_reason_of_host
from ...exchange import FileExchange
from ...exchange.records import PodEnd


def read_attempts(exchange: FileExchange, name: str) -> tuple[AttemptStatus, ...]:
    """Return a job's attempts by their documents alone: one without an outcome counts as alive.

    Raises NotFound and Damaged.
    """
    on_cluster = exchange.has(name, layout.ORIGIN)
    cancelled = on_cluster and exchange.has(name, layout.CANCEL)
    statuses = []
    for number in layout.attempts(exchange.directory(name)):
        status = status_of(number, exchange.outcome(name, number))
        if on_cluster:
            status = with_end_of_pod(exchange, name, status, cancelled=cancelled)
        statuses.append(status)
    return tuple(statuses)


def status_of(number: int, outcome: Outcome | None) -> AttemptStatus:
    """Return an attempt's status by its outcome."""
    if outcome is None:
        return AttemptStatus(number, alive=True)
    ended = Ended(State(outcome.state), outcome.reason, outcome.message, outcome.finished)
    return AttemptStatus(
        number,
        alive=False,
        running=outcome.started is not None,
        ended=ended,
        has_result=outcome.result_sha256 is not None,
    )


def with_end_of_pod(
    exchange: FileExchange, name: str, status: AttemptStatus, *, cancelled: bool
) -> AttemptStatus:
    """Return an attempt on a cluster with what the cluster says of the end of its pod.

    Before it says so, a run that was told to stop has not ended: another pod may follow.
    """
    try:
        pod = exchange.record(name, f"attempt-{status.number}/{layout.POD}", PodEnd)
    except Damaged:  # what the runner said is all that is known
        return status
    if pod is None:
        is_open = status.ended is not None and needs_reason_of_host(status.ended) and not cancelled
        return replace(status, alive=True, ended=None) if is_open else status
    ended = status.ended and with_reason_of_host(status.ended, pod.reason, pod.message)
    return replace(status, ended=ended, retried=pod.retried)
