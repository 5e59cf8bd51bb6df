"""Reads a job's directory and makes the Job that readers see."""

from __future__ import annotations

import os
import shutil
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from decimal import Decimal
from pathlib import Path
from typing import Any

from job_runner.protocol import layout, liveness, times
from job_runner.protocol.documents import NewerVersion
from job_runner.protocol.journal import journal
from job_runner.protocol.outcome import Outcome
from job_runner.protocol.progress import Progress, ProgressFold
from job_runner.protocol.result.result import room_for

from ...domain.advice import gpu_idle, smallest_sufficient
from ...domain.errors import Damaged, no_job
from ...domain.job import Delivery, DeliveryState, Job, State
from ...domain.reasons import DAMAGED
from ...domain.state import (
    AttemptStatus,
    Ended,
    JobStatus,
    Placement,
    compute_state,
    deciding_attempt,
    delivered_attempt,
)
from ...exchange import FileExchange, Request
from ...exchange.pieces import reading
from ...exchange.records import DeliveryRecord, HeldRecord, Wish
from ...exchange.request import UnreadableRequest
from ..damage import UPDATE_THIS
from .attempts import status_of, with_end_of_pod
from .waiting import FIRST_ATTEMPT, SUBMITTED

_FINISH_PATIENCE = 60.0
"""Seconds after the last sign of life of a run in which its result should be put together."""
_ROOM = 1 << 20
"""Bytes beyond its journal's that a result and its documents may need."""


@dataclass
class _Attempt:
    """One attempt as read from disk."""

    status: AttemptStatus
    outcome: Outcome | None
    started: str | None
    progress: Progress
    journal: int
    usage: dict[str, Any] | None


@dataclass
class _Followed:
    """The offset up to which a running attempt's journal was read, and what was read.

    Reading a large journal takes a second at first. Its own lock keeps other jobs from waiting.
    """

    offset: int = 0
    fold: ProgressFold = field(default_factory=ProgressFold)
    lock: threading.Lock = field(default_factory=threading.Lock)


class JobReader:
    """Reads jobs, and remembers each journal's offset so that reading a job again is cheap.

    Records with a longer line than `max_line` are passed over, and are never in memory.
    """

    def __init__(
        self,
        exchange: FileExchange,
        alive: Callable[[str, Path], bool],
        max_line: int | None = None,
    ) -> None:
        self._exchange = exchange
        self._max_line = max_line
        self._alive = alive
        self._followed: dict[tuple[str, str, int], _Followed] = {}
        self._lock = threading.Lock()  # a server reads in several threads

    def has_attempt(self, name: str) -> bool:
        """Tell whether an attempt was started for a job, or claimed."""
        # There may be 10,000 jobs: `Path` would take longer than the file system does.
        return os.path.exists(f"{self._exchange.root}/{name}/{FIRST_ATTEMPT}")  # noqa: PTH110

    def is_deleted(self, name: str) -> bool:
        """Tell whether a job is being deleted: from then on no reader sees it."""
        return os.path.exists(f"{self._exchange.root}/{name}/{layout.DELETE}")  # noqa: PTH110

    def job(self, request: Request, placement: Placement) -> Job:
        """Return the job as it stands, also a damaged one. Raises NotFound."""
        if isinstance(request, UnreadableRequest):
            return _damaged_job(request, request.error)
        try:
            return self._read(request, placement)
        except Damaged as error:
            return _damaged_job(request, error)

    def _read(self, request: Request, placement: Placement) -> Job:
        names = self._names(request.name)
        if names <= SUBMITTED:  # as most of 500 waiting jobs
            return waiting_job(request, placement)
        attempts = [self._attempt(request, number) for number in layout.attempt_numbers(names)]
        cancelled_at = self._cancelled_at(request.name) if layout.CANCEL in names else None
        if layout.ORIGIN in names:
            # The clocks of two hosts: no cancel is recorded once an end has arrived here.
            cancelled_at = None if cancelled_at is None else ""
            for attempt in attempts:
                attempt.status = with_end_of_pod(
                    self._exchange, request.name, attempt.status, cancelled=cancelled_at is not None
                )
        statuses = tuple(a.status for a in attempts)
        status = compute_state(statuses, placement, cancelled_at)
        job = replace(
            _job(request, status),
            cancel_requested=cancelled_at is not None and not status.state.final,
            journal=sum(a.journal for a in attempts),
        )
        counted = [attempt for attempt in attempts if attempt.status.counts]
        if not counted:
            return replace(job, delivery=self._delivery(request.name, names))
        deciding = _find(deciding_attempt(statuses), attempts)
        chosen = _find(delivered_attempt(statuses), attempts) or deciding or counted[-1]
        outcome = deciding.outcome if deciding else None
        return replace(
            job,
            progress=chosen.progress,
            delivery=self._delivery(request.name, names, chosen, final=outcome is not None),
            usage=_usage(request, chosen),
            started=chosen.started,
            finished=outcome.finished if outcome else None,
            metrics=outcome.metrics if outcome else None,
        )

    def _cancelled_at(self, name: str) -> str | None:
        """Return when a cancel was asked for; a damaged wish counts from the beginning."""
        try:
            wish = self._exchange.record(name, layout.CANCEL, Wish)
        except Damaged:
            return ""
        return wish.time if wish else None

    def forget(self, name: str) -> None:
        """Free the memory of a job that will not change any more."""
        with self._lock:
            for key in [k for k in self._followed if k[0] == name]:
                del self._followed[key]

    def _names(self, name: str) -> set[str]:
        """Return the names in a job's directory. Raises NotFound and Damaged."""
        with reading(name):
            try:
                return set(os.listdir(f"{self._exchange.root}/{name}"))  # noqa: PTH208 - text
            except FileNotFoundError as error:
                raise no_job(name) from error

    def _attempt(self, request: Request, number: int) -> _Attempt:
        name = request.name
        directory = layout.attempt_dir(self._exchange.root / name, number)
        with reading(f"{name}/{directory.name}"):
            try:
                # Liveness comes first: a runner that ends in between has ended and is not lost.
                alive = self._alive(name, directory)
                outcome = self._exchange.outcome(name, number)
                if outcome is not None:
                    with self._lock:  # its journal is not read any more
                        self._followed.pop((name, request.submitted, number), None)
                    size = journal.journal_size(directory / layout.JOURNAL)
                    return _ended(number, outcome, size)
                offset, fold = self._follow(request, number, directory / layout.JOURNAL)
            except FileNotFoundError as error:  # removed meanwhile
                raise no_job(name) from error
        ended = None if alive else _end_from_journal(fold.end)
        status = AttemptStatus(number, alive, fold.running, ended)
        started = None if fold.began is None else times.from_unix(fold.began)
        return _Attempt(status, None, started, fold.progress, offset, fold.usage)

    def _follow(self, request: Request, number: int, path: Path) -> tuple[int, ProgressFold]:
        """Read the new records of a journal; return its end offset and the fold of all records."""
        # The key has the time: a job that is deleted and submitted again is another job.
        key = request.name, request.submitted, number
        with self._lock:
            followed = self._followed.setdefault(key, _Followed())
        with followed.lock:
            for entry in journal.read_journal(
                path, followed.offset, skip_outputs=True, max_line=self._max_line
            ):
                followed.fold.feed(entry.record)
                followed.offset = entry.end
            return followed.offset, replace(followed.fold)

    def _delivery(
        self,
        name: str,
        names: set[str],
        attempt: _Attempt | None = None,
        *,
        final: bool = False,
    ) -> Delivery:
        decided = self._decided_delivery(name, names)
        if decided is not None:
            return decided
        if final and attempt is not None and not attempt.status.has_result:
            return Delivery(
                DeliveryState.NONE, None, "Nothing ran, so there is nothing to deliver."
            )
        if attempt is not None and attempt.outcome is None and not attempt.status.alive:
            return Delivery(message=self._finishing(name, attempt))
        return Delivery()

    def _decided_delivery(self, name: str, names: set[str]) -> Delivery | None:
        """Return the delivery that one of the job's documents records, if any."""
        try:
            if layout.DELIVERY in names:
                delivered = self._exchange.record(name, layout.DELIVERY, DeliveryRecord)
                if delivered is not None:
                    return Delivery(DeliveryState.DELIVERED, delivered.path, delivered.message)
        except Damaged as error:  # it is written once the result is there
            return Delivery(DeliveryState.DELIVERED, None, str(error))
        try:
            if layout.HELD in names:
                record = self._exchange.record(name, layout.HELD, HeldRecord)
                if record is not None:
                    state = DeliveryState.FAILED if record.failed else DeliveryState.HELD
                    return Delivery(state, None, record.message)
        except Damaged as error:
            return Delivery(DeliveryState.HELD, None, str(error))
        return None

    def _finishing(self, name: str, attempt: _Attempt) -> str | None:
        """Return what keeps the result of a dead attempt from being put together, if anything."""
        if shutil.disk_usage(self._exchange.root).free < room_for(attempt.journal) + _ROOM:
            return "The exchange's disk is full: the result is put together when there is space."
        directory = layout.attempt_dir(self._exchange.root / name, attempt.status.number)
        heartbeat = liveness.last_heartbeat(directory)
        if heartbeat is None or time.time() - heartbeat < _FINISH_PATIENCE:
            return None
        return (
            "The result cannot be put together, which is tried again: see `jupyter-to-job doctor`."
        )


def _find(status: AttemptStatus | None, attempts: list[_Attempt]) -> _Attempt | None:
    return next((attempt for attempt in attempts if attempt.status is status), None)


def waiting_job(request: Request, placement: Placement) -> Job:
    """Return a job to which nothing has happened since it was submitted."""
    return _job(request, compute_state((), placement, None))


def _damaged_job(request: Request, error: Damaged) -> Job:
    """Return a job whose record cannot be read, with what to do about it."""
    remedy = error.hint or "`jupyter-to-job doctor --fix` mends what can be mended"
    remedy = f"{remedy.rstrip('.')}; deleting it removes it."
    if isinstance(error.__cause__, NewerVersion):
        remedy = UPDATE_THIS
    message = f"{error.message} {remedy}"
    status = JobStatus(State.FAILED, DAMAGED, message)
    delivery = Delivery(DeliveryState.NONE, None, "A damaged job is not delivered.")
    return replace(_job(request, status), delivery=delivery)


def _ended(number: int, outcome: Outcome, journal_bytes: int) -> _Attempt:
    """Return an attempt that has ended, from its outcome: its journal need not be read."""
    progress = Progress(outcome.cells["done"], outcome.cells["total"])
    return _Attempt(
        status_of(number, outcome), outcome, outcome.started, progress, journal_bytes, outcome.usage
    )


def _end_from_journal(end: dict[str, Any] | None) -> Ended | None:
    """Return the end that a runner recorded before it died: its outcome will be the same."""
    if end is None:
        return None
    finished = "" if end.get("t") is None else times.from_unix(end["t"])
    return Ended(State(end["state"]), end.get("reason"), end.get("message"), finished)


def _usage(request: Request, attempt: _Attempt) -> dict[str, Any] | None:
    """Return the run's usage, what it was given, and after its end the flavors that suit it."""
    usage, outcome = attempt.usage, attempt.outcome
    if not usage or all(figure is None for figure in usage.values()):  # nothing ran
        return usage or None
    demand, alternatives = request.demand, request.neighbours
    succeeded = outcome is not None and outcome.state == State.SUCCEEDED
    is_full = outcome is not None and outcome.reason == "OutOfMemory"
    return {
        **usage,
        "cpu_given": float(demand["cpu"]) if "cpu" in demand else None,
        "memory_given": int(Decimal(demand["memory"])) if "memory" in demand else None,
        "gpu_idle": gpu_idle(usage),
        "enough": smallest_sufficient(alternatives.smaller, usage) if succeeded else None,
        "larger": alternatives.larger if is_full else None,
    }


def _job(request: Request, status: JobStatus) -> Job:
    return Job(
        name=request.name,
        owner=request.owner,
        notebook=request.notebook,
        flavor=request.flavor,
        device=request.device,
        parameters=request.parameters,
        inputs=tuple(i.path for i in request.inputs),
        isolated=request.isolated,
        mounts=request.mounts,
        left_behind=request.left_behind,
        output=request.output,
        max_runtime=request.max_runtime,
        asked=request.asked,
        priority=request.priority,
        backend=request.backend,
        submitted=request.submitted,
        state=status.state,
        reason=status.reason,
        message=status.message,
        position=status.position,
        group=request.group,
        rerun_of=request.rerun_of,
    )
