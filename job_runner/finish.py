"""`job_runner finish`: result and outcome of an attempt whose runner is gone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from .ending import Ending, write_ending
from .protocol import documents, journal, layout, liveness
from .protocol.outcome import read_outcome
from .reasons import End, Exit

LOST = "The process that ran it was killed or its host went away; what it had printed is kept."
_EXIT_CODES = {"OutOfMemory": Exit.KERNEL_DIED, "DeadlineExceeded": Exit.DEADLINE}


def finish_job(job_dir: Path, reason: str | None, message: str | None) -> int:
    """Write what the last attempt did not get to write; return 0, or 75 while it lives.

    Where nothing ever started, claim the next attempt and write an outcome without a result.
    `reason` and `message` are the caller's knowledge of why; by default the attempt is Lost.
    """
    request = documents.read_document(job_dir / layout.REQUEST)
    if request is None:
        raise FileNotFoundError(f"{job_dir} holds no {layout.REQUEST}")
    end = End(reason or "Lost", message or LOST, _EXIT_CODES.get(reason or "", Exit.INTERNAL))
    numbers = layout.attempts(job_dir)
    if not numbers:
        return _never_started(job_dir, end)
    directory = layout.attempt_dir(job_dir, numbers[-1])
    try:
        claim = liveness.take_over(directory)
    except liveness.AttemptAlive:
        return Exit.BUSY
    try:
        if read_outcome(directory) is None:
            started, cell = _last_seen(directory)
            end = End(end.reason, end.message, end.exit_code, cell)
            write_ending(job_dir, directory, request, Ending(end, started), None)
        return Exit.SUCCEEDED
    finally:
        claim.release()


def _never_started(job_dir: Path, end: End) -> int:
    from .ending import now
    from .protocol.outcome import Outcome, write_outcome

    try:
        claim = liveness.claim_attempt(job_dir, 1)
    except liveness.AttemptExists:
        return Exit.BUSY
    cells = {"done": 0, "total": 0}
    write_outcome(
        claim.directory,
        Outcome(end.state, end.reason, end.message, None, cells, None, now(), {}, None),
    )
    claim.release()
    return Exit.SUCCEEDED


def _last_seen(attempt_dir: Path) -> tuple[str | None, int | None]:
    """Return when the attempt began and the cell that it was in."""
    started: str | None = None
    cell: int | None = None
    for entry in journal.read_journal(attempt_dir / layout.JOURNAL):
        record: dict[str, Any] = entry.record
        if record["k"] == "prepared":
            started = record["notebook"]["metadata"]["papermill"].get("start_time")
        elif record["k"] == "cell_start":
            cell = record["i"]
        elif record["k"] == "cell_end":
            cell = None
    return started, cell
