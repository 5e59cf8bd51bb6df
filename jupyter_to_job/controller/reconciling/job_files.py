"""What a job's directory says to the reconciler, and what the reconciler writes there."""

from __future__ import annotations

import contextlib
from dataclasses import asdict, dataclass
from typing import Any

from job_runner.protocol import layout, times
from job_runner.protocol.outcome import Outcome

from ...domain.errors import Damaged, NotFound
from ...domain.job import DeliveryState
from ...domain.state import AttemptStatus, deciding_attempt, delivered_attempt
from ...exchange import FileExchange, Request
from ...exchange.records import ClusterJob, HeldRecord, PodEnd, StopRecord
from ...service.reading.attempts import read_attempts
from .next_step import AttemptObservation, JobObservation, RecordPodEnd, RecordStop


@dataclass(frozen=True)
class JobFiles:
    """One job's documents. `ended_at` is when its last attempt ended, in unix seconds.

    `outcomes` are those of its attempts; `delivery` is how far its result has come, if it ended.
    """

    request: Request
    origin: dict[str, Any]
    cancelled: bool
    deleted: bool
    stop: StopRecord | None
    job: ClusterJob | None
    attempts: tuple[AttemptObservation, ...]
    ended_at: float | None
    outcomes: tuple[Outcome, ...]
    delivery: DeliveryState


def read_job_files(exchange: FileExchange, name: str) -> JobFiles | None:
    """Read a job's documents; None if there is no such job. Raises Damaged."""
    try:
        directory = exchange.directory(name)
        request = exchange.request(name)
        attempts = read_attempts(exchange, name)
    except NotFound:
        return None
    documents = [exchange.outcome(name, number) for number in layout.attempts(directory)]
    outcomes = tuple(outcome for outcome in documents if outcome is not None)
    ends = [times.parse(outcome.finished).timestamp() for outcome in outcomes]
    return JobFiles(
        request=request,
        origin=exchange.document(name, layout.ORIGIN) or {},
        cancelled=exchange.has(name, layout.CANCEL),
        deleted=exchange.has(name, layout.DELETE),
        stop=exchange.record(name, layout.STOP, StopRecord),
        job=read_cluster_job(exchange, name),
        attempts=tuple(_observe_attempt(exchange, name, attempt) for attempt in attempts),
        ended_at=max(ends, default=None),
        outcomes=outcomes,
        delivery=_delivery_of(exchange, name, attempts),
    )


def _delivery_of(
    exchange: FileExchange, name: str, attempts: tuple[AttemptStatus, ...]
) -> DeliveryState:
    """Return how far the delivery of a job has come that has ended."""
    if exchange.has(name, layout.DELIVERY):
        return DeliveryState.DELIVERED
    if exchange.has(name, layout.HELD):
        with contextlib.suppress(Damaged, NotFound):
            record = exchange.record(name, layout.HELD, HeldRecord)
            return DeliveryState.FAILED if record and record.failed else DeliveryState.HELD
        return DeliveryState.HELD
    has_ended = deciding_attempt(attempts) is not None
    is_nothing = has_ended and delivered_attempt(attempts) is None
    return DeliveryState.NONE if is_nothing else DeliveryState.PENDING


def read_cluster_job(exchange: FileExchange, name: str) -> ClusterJob | None:
    """Read job.json; None if there is none, or it is damaged: its Job is found by its nonce."""
    try:
        return exchange.record(name, layout.JOB, ClusterJob)
    except (NotFound, Damaged):
        return None


def read_place(exchange: FileExchange, name: str) -> tuple[str, ClusterJob | None]:
    """Read the namespace of a job's dev pod, "" if there is no such job, and its Job on record."""
    try:
        origin = exchange.document(name, layout.ORIGIN) or {}
    except NotFound:
        return "", None
    return origin.get("namespace", ""), read_cluster_job(exchange, name)


def is_ending(exchange: FileExchange, name: str) -> bool:
    """Tell whether a job has ended, or is told to: no more pod of it may start a run."""
    files = read_job_files(exchange, name)
    if files is None or files.cancelled or files.stop is not None:
        return True
    return JobObservation(attempts=files.attempts).has_ended


def _observe_attempt(
    exchange: FileExchange, name: str, status: AttemptStatus
) -> AttemptObservation:
    folder = f"attempt-{status.number}"
    try:
        claim = exchange.document(name, f"{folder}/{layout.RUNNER}") or {}
    except Damaged:
        claim = {}
    return AttemptObservation(
        status=status,
        pod=claim.get("pod"),
        was_sent=exchange.has(name, f"{folder}/{layout.SENT_OUTCOME}"),
        has_outcome=exchange.has(name, f"{folder}/{layout.OUTCOME}"),
        has_pod_end=exchange.has(name, f"{folder}/{layout.POD}"),
    )


def write_job(exchange: FileExchange, name: str, job: ClusterJob) -> None:
    """Record the Job that runs a job; instead of a record that is damaged."""
    exchange.write(name, layout.JOB, asdict(job))


def write_stop(exchange: FileExchange, name: str, step: RecordStop) -> None:
    """Record why a job is being ended, once."""
    record = StopRecord(step.reason, step.message, times.now())
    exchange.write_once(name, layout.STOP, asdict(record))


def write_pod_end(exchange: FileExchange, name: str, step: RecordPodEnd) -> None:
    """Record the cluster's word on an attempt, once."""
    pod = step.pod
    end = PodEnd(
        uid=step.attempt.pod or "",
        node=pod.node if pod else None,
        reason=step.reason,
        message=step.message,
        time=times.now(),
        retried=step.retried,
    )
    exchange.write_once(name, f"attempt-{step.attempt.number}/{layout.POD}", asdict(end))
