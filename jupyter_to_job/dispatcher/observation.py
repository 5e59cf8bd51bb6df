"""What a job's directory says about the job's next step. Only looks; the loop acts."""

from __future__ import annotations

import enum
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from job_runner.protocol import documents, layout, liveness
from job_runner.protocol.outcome import read_outcome

SLOT = "slot.json"
"""Which host starts the run, and the devices that it got; written before the runner starts."""


class Phase(enum.Enum):
    """Where a job is, as far as a dispatcher has something to do about it."""

    WAITING = "waiting"
    RUNNING = "running"
    DEAD = "dead"
    """The last attempt's lock is free, and it has no outcome."""
    ENDED = "ended"
    """There is a result to deliver, or a wish to delete."""
    HELD = "held"
    """As ended, and the last try to deliver failed."""
    SETTLED = "settled"


@dataclass(frozen=True)
class Observation:
    """One look at a job. `attempt` is its last one; `host` where that runs, or is to be started.

    `host` is None where only the request says whose the job is.
    """

    phase: Phase
    cancelled: bool = False
    attempt: Path | None = None
    host: str | None = None


NEW = Observation(Phase.WAITING)
"""What a job is that nobody looked at yet."""


def names_in(directory: Path) -> frozenset[str]:
    """Return the names in a directory. Raises OSError."""
    with os.scandir(directory) as entries:
        return frozenset(entry.name for entry in entries)


def observe(directory: Path, names: frozenset[str], before: Observation = NEW) -> Observation:
    """Look at a job whose directory holds `names`; `before` is what the last look said.

    Raises DocumentError and OSError.
    """
    deleted = layout.DELETE in names
    if layout.DELIVERY in names and not deleted:
        return Observation(Phase.SETTLED)
    cancelled = deleted or layout.CANCEL in names
    numbers = layout.attempt_numbers(names)
    if not numbers:
        slot = documents.read_document(directory / SLOT) if SLOT in names else None
        return Observation(Phase.WAITING, cancelled, None, _host(slot))
    attempt = layout.attempt_dir(directory, numbers[-1])
    host = before.host  # runner.json is never rewritten
    if before.attempt != attempt:
        host = _host(documents.read_document(attempt / layout.RUNNER))
    # Alive before the outcome: a run that ends in between has ended, and is not dead.
    if liveness.is_alive(attempt):
        return Observation(Phase.RUNNING, cancelled, attempt, host)
    if read_outcome(attempt) is None:
        return Observation(Phase.DEAD, cancelled, attempt, host)
    if deleted:
        return Observation(Phase.ENDED, cancelled, attempt, host)
    outcomes = (read_outcome(layout.attempt_dir(directory, number)) for number in numbers)
    if not any(outcome is not None and outcome.result_sha256 for outcome in outcomes):
        return Observation(Phase.SETTLED)  # nothing ran: nothing to deliver
    return Observation(
        Phase.HELD if layout.HELD in names else Phase.ENDED, cancelled, attempt, host
    )


def _host(document: Mapping[str, Any] | None) -> str | None:
    return str(document["host"]) if document and document.get("host") else None
