"""Reads from a job's directory what the dispatcher has to do next. The loop acts on it."""

from __future__ import annotations

import enum
import os
from dataclasses import dataclass
from pathlib import Path

from job_runner.protocol import documents, layout, liveness
from job_runner.protocol.outcome import read_outcome

SLOT = "slot.json"
"""The host that starts the run, and the devices that it got; written before the runner starts."""


class Phase(enum.Enum):
    """The state of a job, as far as a dispatcher has something to do about it."""

    WAITING = "waiting"
    RUNNING = "running"
    DEAD = "dead"
    """The lock of the latest attempt is free, and it has no outcome."""
    ENDED = "ended"
    """There is a result to deliver, or a request to delete the job."""
    HELD = "held"
    """As ended, and the previous try to deliver failed."""
    SETTLED = "settled"
    DAMAGED = "damaged"
    """A document cannot be read, and no runner lives: nobody can tell what is to be done."""


@dataclass(frozen=True)
class Observation:
    """One reading of a job's directory.

    `attempt` is the directory of the latest attempt. `host` is where that runs or is to be started;
    None where only the request names a host.
    """

    phase: Phase
    cancelled: bool = False
    attempt: Path | None = None
    host: str | None = None


NEW = Observation(Phase.WAITING)
"""The observation of a job before it was read."""


def names_in(directory: Path) -> frozenset[str]:
    """Return the names in a directory. Raises OSError."""
    with os.scandir(directory) as entries:
        return frozenset(entry.name for entry in entries)


def observe(directory: Path, names: frozenset[str]) -> Observation:
    """Observe a job whose directory holds `names`. Raises OSError."""
    deleted = layout.DELETE in names
    if layout.DELIVERY in names and not deleted:
        return Observation(Phase.SETTLED)
    cancelled = deleted or layout.CANCEL in names
    numbers = layout.attempt_numbers(names)
    if not numbers:
        host = _host(directory / SLOT) if SLOT in names else None
        # A full disk has no room to write down how a deleted job ended, and nobody reads it.
        return Observation(Phase.ENDED if deleted else Phase.WAITING, cancelled, None, host)
    attempt = layout.attempt_dir(directory, numbers[-1])
    host = _host(attempt / layout.RUNNER)
    # The lock is read before the outcome: a run that ends in between is not taken for dead.
    if liveness.is_alive(attempt):
        return Observation(Phase.RUNNING, cancelled, attempt, host)
    try:
        outcomes = [read_outcome(layout.attempt_dir(directory, number)) for number in numbers]
    except (documents.DocumentError, OSError):
        phase = Phase.ENDED if deleted else Phase.DAMAGED
        return Observation(phase, cancelled, attempt, host)
    if outcomes[-1] is None:
        return Observation(Phase.DEAD, cancelled, attempt, host)
    if not deleted:
        if not any(outcome is not None and outcome.result_sha256 for outcome in outcomes):
            return Observation(Phase.SETTLED)  # nothing ran: there is nothing to deliver
        if layout.HELD in names:
            if _has_failed(directory / layout.HELD):
                return Observation(Phase.SETTLED)
            return Observation(Phase.HELD, cancelled, attempt, host)
    return Observation(Phase.ENDED, cancelled, attempt, host)


def _has_failed(file: Path) -> bool:
    """Tell whether a held.json says that its job can never be delivered."""
    try:
        return (documents.read_document(file) or {}).get("failed") is True
    except documents.DocumentError:
        return False


def _host(path: Path) -> str | None:
    """Return the host that a document names; None if it names none, or cannot be read."""
    try:
        host = (documents.read_document(path) or {}).get("host")
    except documents.DocumentError:
        return None
    return host if isinstance(host, str) and host else None
