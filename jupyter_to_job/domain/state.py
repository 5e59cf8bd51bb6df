"""Computes a job's state from its attempts, by one pure function.

Users rely on these rules: a queued job is never shown as stopped; a job whose process is gone is
never shown as running; a run that succeeded stays succeeded, even if it is cancelled afterwards.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from job_runner.protocol.outcome import LOST_MESSAGE

from .job import State
from .reasons import Kind, kind_of


@dataclass(frozen=True)
class Ended:
    """An attempt's outcome, as far as the state depends on it."""

    state: State
    reason: str | None
    message: str | None
    finished: str


@dataclass(frozen=True)
class AttemptStatus:
    """One attempt: `alive` while its runner is; `running` once its kernel took the first cell.

    `has_result`: it left a notebook. `retried`: the cluster ended it, and starts another one.
    """

    number: int
    alive: bool
    running: bool = False
    ended: Ended | None = None
    has_result: bool = False
    retried: bool = False

    @property
    def counts(self) -> bool:
        """Whether the job's state depends on it: for a retried one only if it succeeded."""
        return not self.retried or (self.ended is not None and self.ended.state is State.SUCCEEDED)


@dataclass(frozen=True)
class Placement:
    """A backend's view of a job that does not run: its place in the queue, why it waits.

    `interrupted`: a run of it was stopped, and the next one cannot begin.
    """

    starting: bool = False
    interrupted: bool = False
    position: int | None = None
    reason: str | None = None
    message: str | None = None


@dataclass(frozen=True)
class JobStatus:
    """The state of a job, with its reason, its message and its place in the queue."""

    state: State
    reason: str | None = None
    message: str | None = None
    position: int | None = None


def deciding_attempt(attempts: tuple[AttemptStatus, ...]) -> AttemptStatus | None:
    """Return the attempt by which a job has ended: one that succeeded, else the latest.

    Return None while the latest one that counts has not ended.
    """
    counted = [a for a in attempts if a.counts]
    succeeded = [a for a in counted if a.ended is not None and a.ended.state is State.SUCCEEDED]
    latest = max(succeeded or counted, key=lambda a: a.number, default=None)
    return latest if latest is not None and latest.ended is not None else None


def delivered_attempt(attempts: tuple[AttemptStatus, ...]) -> AttemptStatus | None:
    """Return the attempt whose result is delivered; None while the job has not ended, or has none.

    Where the deciding attempt never ran, it is the latest that did: what it printed is not lost.
    """
    deciding = deciding_attempt(attempts)
    if deciding is None or deciding.has_result:
        return deciding
    ran = [a for a in attempts if a.ended is not None and a.has_result]
    return max(ran, key=lambda a: a.number, default=None)


def compute_state(
    attempts: tuple[AttemptStatus, ...], placement: Placement, cancelled_at: str | None
) -> JobStatus:
    """Compute the state from the attempts, the backend's view and the time of a cancel wish."""
    deciding = deciding_attempt(attempts)
    if deciding is not None and deciding.ended is not None:
        return _ended(deciding.ended, cancelled_at)
    counted = (attempt for attempt in attempts if attempt.counts)
    latest = max(counted, key=lambda a: a.number, default=None)
    if latest is None or (latest.alive and placement.interrupted):
        state = State.STARTING if placement.starting else State.QUEUED
        return JobStatus(state, placement.reason, placement.message, placement.position)
    if latest.alive:
        if latest.running:
            return JobStatus(State.RUNNING)
        return JobStatus(State.STARTING, placement.reason, placement.message)
    # The runner died and `finish` has not run yet: its outcome is going to say this.
    return _ended(Ended(State.FAILED, "Lost", LOST_MESSAGE, cancelled_at or ""), cancelled_at)


def needs_reason_of_host(ended: Ended) -> bool:
    """Tell whether an attempt's own end says only that it was told to stop, or was killed."""
    return kind_of(ended.reason) is Kind.STOPPED


def with_reason_of_host(ended: Ended, reason: str | None, message: str | None) -> Ended:
    """Return how an attempt ended, with the reason of the cluster that ended it, if it has one.

    The runner knows only that it was told to stop, and nobody knows why a dead one is dead.
    """
    if reason is not None and needs_reason_of_host(ended):
        return replace(ended, reason=reason, message=message)
    return ended


def _ended(ended: Ended, cancelled_at: str | None) -> JobStatus:
    """Return `cancelled` for a run that was ended from outside after the cancel, else its end.

    A cancel is recorded only while the run is not known to be dead. So a cancel without an outcome
    was meant for a run that seemed alive, and it counts.
    """
    if needs_reason_of_host(ended) and cancelled_at is not None and cancelled_at <= ended.finished:
        return JobStatus(State.CANCELLED)
    return JobStatus(ended.state, ended.reason, ended.message)
