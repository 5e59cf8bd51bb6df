"""outcome.json: how an attempt ended. Written once, after the result, never rewritten."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from . import documents, layout

LOST_MESSAGE = "The runner was killed or its host went away; what it had printed is kept."
"""The message of an attempt whose runner ended without an outcome (reason `Lost`)."""


@dataclass(frozen=True)
class Outcome:
    """How an attempt ended. `cells` is {done, total}; times are RFC 3339 in UTC.

    `result_sha256` is None where nothing ran: then there is no result and nothing is delivered.
    """

    state: str
    reason: str | None
    message: str | None
    exit_code: int | None
    cells: dict[str, int]
    started: str | None
    finished: str
    usage: dict[str, Any]
    result_sha256: str | None

    @classmethod
    def from_document(cls, document: dict[str, Any]) -> Outcome:
        """Read it back; fields of a newer minor version are ignored."""
        return cls(**{k: document[k] for k in cls.__dataclass_fields__})


def read_outcome(attempt_dir: Path) -> Outcome | None:
    """Return the attempt's outcome, or None while there is none. Raises DocumentError."""
    document = documents.read_document(attempt_dir / layout.OUTCOME)
    try:
        return None if document is None else Outcome.from_document(document)
    except KeyError as error:
        raise documents.DocumentError(f"{layout.OUTCOME}: {error} is missing") from error


def write_outcome(attempt_dir: Path, outcome: Outcome) -> bool:
    """Write the outcome. False if there is one already, which then stands."""
    return documents.write_document_once(attempt_dir / layout.OUTCOME, asdict(outcome))
