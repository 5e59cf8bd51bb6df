"""One pure function from what was observed to what the job is called.

The rules that people rely on: a queued job is never called stopped; one whose process is gone is
never called running; a run that had succeeded stays succeeded, whatever was wished afterwards.
"""

from __future__ import annotations

from dataclasses import dataclass

from .job import State


@dataclass(frozen=True)
class Ended:
    """An attempt's outcome, as far as the state depends on it."""

    state: State
    reason: str | None
    message: str | None
    finished: str


@dataclass(frozen=True)
class AttemptSeen:
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
class Verdict:
    """The state, with the reason and the sentence that go with it."""

    state: State
    reason: str | None = None
    message: str | None = None
    position: int | None = None


LOST = "The process that ran it was killed or its host went away; what it had printed is kept."


def decisive(attempts: tuple[AttemptSeen, ...]) -> AttemptSeen | None:
    """Return the attempt that is delivered: the highest that succeeded, else the highest ended."""
    ended = [a for a in attempts if a.ended is not None]
    succeeded = [a for a in ended if a.ended and a.ended.state is State.SUCCEEDED]
    return max(succeeded or ended, key=lambda a: a.number, default=None)


def judge(
    attempts: tuple[AttemptSeen, ...], placement: Placement, cancelled_at: str | None
) -> Verdict:
    """Compute the state from the attempts, the backend's view and the time of a cancel wish."""
    winner = decisive(attempts)
    latest = max(attempts, key=lambda a: a.number, default=None)
    if winner is not None and winner.ended is not None:
        if winner.ended.state is State.SUCCEEDED:
            return Verdict(State.SUCCEEDED)
        if latest is winner or latest is None:
            return _ended(winner.ended, cancelled_at)
    if latest is None:
        state = State.STARTING if placement.starting else State.QUEUED
        return Verdict(state, placement.reason, placement.message, placement.position)
    if latest.alive:
        return Verdict(State.RUNNING if latest.running else State.STARTING)
    if cancelled_at is not None:
        return Verdict(State.CANCELLED)
    return Verdict(State.FAILED, "Lost", LOST)


def _ended(ended: Ended, cancelled_at: str | None) -> Verdict:
    """Tell a cancel from a failure: only a run that was told to stop after the wish was."""
    told_to_stop = ended.reason in ("Terminated", "Lost")
    if told_to_stop and cancelled_at is not None and cancelled_at <= ended.finished:
        return Verdict(State.CANCELLED)
    return Verdict(ended.state, ended.reason, ended.message)
