"""One pure function from what was observed to what the job is called.

The rules that people rely on: a queued job is never called stopped; one whose process is gone is
never called running; a run that had succeeded stays succeeded, whatever was wished afterwards.
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
    """What a backend knows of a job that has not started: its place in line and why it waits."""

    starting: bool = False
    position: int | None = None
    reason: str | None = None
    message: str | None = None


@dataclass(frozen=True)
class JobStatus:
    """The state, with the reason and the sentence that go with it."""

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
    # Dead, and nobody has finished it yet: it is called already what its outcome is going to say.
    return _ended(Ended(State.FAILED, "Lost", LOST_MESSAGE, cancelled_at or ""), cancelled_at)


def _ended(ended: Ended, cancelled_at: str | None) -> JobStatus:
    """Tell a cancel from a failure: only a run that was ended from outside after the wish was.

    A wish is recorded only while the run is not known to be dead. So one that is there before
    anybody has finished what died was meant for a run that seemed alive, and it was granted.
    """
    stopped = kind_of(ended.reason) is Kind.STOPPED
    if stopped and cancelled_at is not None and cancelled_at <= ended.finished:
        return JobStatus(State.CANCELLED)
    return JobStatus(ended.state, ended.reason, ended.message)
