"""Computes a job's state from its attempts, by one pure function.

Users rely on these rules: a queued job is never shown as stopped; a job whose process is gone is
never shown as running; a run that succeeded stays succeeded, even if it is cancelled afterwards.
"""

from __future__ import annotations

from dataclasses import dataclass

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
    """One attempt: `alive` while its runner is; `running` once its kernel took the first cell."""

    number: int
    alive: bool
    running: bool = False
    ended: Ended | None = None


@dataclass(frozen=True)
class Placement:
    """A backend's view of a job that has not started: its place in the queue, why it waits."""

    starting: bool = False
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


def delivered_attempt(attempts: tuple[AttemptStatus, ...]) -> AttemptStatus | None:
    """Return the attempt that is delivered: the highest that succeeded, else the highest ended."""
    ended = [a for a in attempts if a.ended is not None]
    succeeded = [a for a in ended if a.ended and a.ended.state is State.SUCCEEDED]
    return max(succeeded or ended, key=lambda a: a.number, default=None)


def compute_state(
    attempts: tuple[AttemptStatus, ...], placement: Placement, cancelled_at: str | None
) -> JobStatus:
    """Compute the state from the attempts, the backend's view and the time of a cancel wish."""
    winner = delivered_attempt(attempts)
    latest = max(attempts, key=lambda a: a.number, default=None)
    if winner is not None and winner.ended is not None:
        if winner.ended.state is State.SUCCEEDED:
            return JobStatus(State.SUCCEEDED, message=winner.ended.message)
        if latest is winner or latest is None:
            return _ended(winner.ended, cancelled_at)
    if latest is None:
        state = State.STARTING if placement.starting else State.QUEUED
        return JobStatus(state, placement.reason, placement.message, placement.position)
    if latest.alive:
        return JobStatus(State.RUNNING if latest.running else State.STARTING)
    # The runner died and `finish` has not run yet: its outcome is going to say this.
    return _ended(Ended(State.FAILED, "Lost", LOST_MESSAGE, cancelled_at or ""), cancelled_at)


def _ended(ended: Ended, cancelled_at: str | None) -> JobStatus:
    """Return `cancelled` for a run that was ended from outside after the cancel, else its end.

    A cancel is recorded only while the run is not known to be dead. So a cancel without an outcome
    was meant for a run that seemed alive, and it counts.
    """
    stopped = kind_of(ended.reason) is Kind.STOPPED
    if stopped and cancelled_at is not None and cancelled_at <= ended.finished:
        return JobStatus(State.CANCELLED)
    return JobStatus(ended.state, ended.reason, ended.message)
