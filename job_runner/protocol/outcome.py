"""outcome.json: how an attempt ended. Written once, after the result, never rewritten."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, TypedDict

from . import documents, layout, times
from .fields import FieldError, read_fields
from .figures import figures_of_run
from .metrics import Metric

STATES = ("succeeded", "failed")
LOST_MESSAGE = "The runner was killed or its host went away; what it had printed is kept."
"""The message of an attempt whose runner ended without an outcome (reason `Lost`)."""


MAX_ARTIFACTS = 10_000
MAX_ARTIFACT_BYTES = 10 << 30
"""Files that an isolated run created, and their bytes in all: more are not delivered."""


@dataclass(frozen=True)
class ArtifactRecord:
    """A file that an isolated run created; `path` is relative to the workspace."""

    path: str
    size: int
    sha256: str


class CellCounts(TypedDict):
    """The code cells of a notebook, and how many of them did not end the run."""

    done: int
    total: int


@dataclass(frozen=True)
class Outcome:
    """How an attempt ended. `cells` is {done, total}; times are RFC 3339 in UTC.

    `result_sha256` is None where nothing ran: then there is no result and nothing is delivered.
    `artifacts` is None where they are too many, or not known: an older runner wrote the outcome.
    `metrics` are by name; None where an older runner did not look for them. Of `usage` the figures
    that this version knows are read.
    """

    state: str
    reason: str | None
    message: str | None
    exit_code: int | None
    cells: CellCounts
    started: str | None
    finished: str
    usage: dict[str, Any]
    result_sha256: str | None
    artifacts: tuple[ArtifactRecord, ...] | None = None
    metrics: dict[str, Metric] | None = None

    @classmethod
    def from_document(cls, document: dict[str, Any]) -> Outcome:
        """Read it back. Raises FieldError."""
        outcome = read_fields(cls, document)
        outcome = replace(outcome, usage=figures_of_run(outcome.usage))
        if outcome.state not in STATES:
            raise FieldError(f"state is {outcome.state!r}")
        for moment in (outcome.started, outcome.finished):
            if moment is not None:
                times.parse(moment)
        return outcome


def read_outcome(attempt_dir: Path, name: str = layout.OUTCOME) -> Outcome | None:
    """Return the attempt's outcome, or None while there is none. Raises DocumentError, OSError."""
    document = documents.read_document(attempt_dir / name)
    try:
        return None if document is None else Outcome.from_document(document)
    except ValueError as error:
        raise documents.DocumentError(f"{name}: {error}") from error


def write_outcome(attempt_dir: Path, outcome: Outcome) -> bool:
    """Write the outcome. False if there is one already, which then stands."""
    return documents.write_document_once(attempt_dir / layout.OUTCOME, asdict(outcome))
