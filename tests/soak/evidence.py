"""What a job's directory held at one moment, read as its documents say; nothing is asked of us."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from job_runner.protocol import documents, layout
from job_runner.protocol.journal.journal import read_journal

Ending = tuple[str, "str | None"]
"""State and reason."""
LOST: Ending = ("failed", "Lost")
SUCCEEDED: Ending = ("succeeded", None)


@dataclass(frozen=True)
class Evidence:
    """An attempt as it was found: how far it was, and what it had printed."""

    claimed: bool = False
    kernel: int | None = None
    answered: bool = False
    printed: str = ""
    cells_ended: int = 0
    cells_total: int | None = None
    ended: Ending | None = None
    sockets: str | None = None
    concluded: bool = False
    delivered: bool = False
    records: list[dict[str, Any]] = field(default_factory=list, repr=False)

    @property
    def when_killed(self) -> Ending:
        """How a claimed attempt ends whose runner was killed here: its own word counts."""
        return self.ended or LOST


def look(job: Path) -> Evidence:
    """Read a job's first attempt as it is now."""
    attempt = layout.attempt_dir(job, 1)
    if not attempt.is_dir():
        return Evidence()
    fields: dict[str, Any] = {"claimed": True, "concluded": (attempt / layout.OUTCOME).exists()}
    fields["delivered"] = (job / layout.DELIVERY).exists()
    texts, cells = [], 0
    records = []
    with contextlib.suppress(FileNotFoundError):  # a segment of a job being removed
        records = [entry.record for entry in read_journal(attempt / layout.JOURNAL)]
    for record in records:
        match record["k"]:
            case "start":
                fields["sockets"] = record["sockets"]
            case "kernel":
                fields["kernel"] = record["pid"]
                fields["answered"] = "language_info" in record
            case "prepared":
                fields["cells_total"] = record["cells_total"]
            case "output" if record["output"]["output_type"] == "stream":
                texts.append(record["output"]["text"])
            case "cell_end" if record["ok"]:
                cells += 1
            case "end":
                fields["ended"] = (record["state"], record["reason"])
    return Evidence(**fields, printed="".join(texts), cells_ended=cells, records=records)


def outcome(job: Path) -> dict[str, Any]:
    """Return the first attempt's outcome, which must be there."""
    found = documents.read_document(layout.attempt_dir(job, 1) / layout.OUTCOME)
    assert found is not None, f"{job.name} has no outcome"
    return found
