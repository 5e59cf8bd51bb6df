"""`job_runner finish`: result and outcome of an attempt whose runner is gone."""

from __future__ import annotations

import time
from pathlib import Path

from ..diagnosis.endings import End
from ..diagnosis.exit_codes import Exit
from ..kernel import cleanup
from ..protocol import documents, layout, liveness
from ..protocol.journal.journal import JournalWriter
from ..protocol.outcome import LOST_MESSAGE, read_outcome
from ..protocol.progress import Progress
from ..protocol.result.result import WrittenResult, write_result
from ..resources.usage import Usage
from . import disk_reserve
from .artifacts import collect_artifacts
from .finalize import (
    JournalSummary,
    end_from_record,
    end_record,
    summarize_journal,
    write_ending,
)

_TERMINATED = "Terminated"
"""The reason that a caller gives who ended the run just now."""


def finish_job(job_dir: Path, reason: str | None, message: str | None) -> int:
    """Write what the last attempt did not get to write; return 0, or 75 while it lives.

    Where nothing ever started, claim the next attempt and write an outcome without a result.
    `reason` and `message` are the caller's knowledge of why; by default the attempt is Lost.
    A reason that the runner itself came to write down counts more.
    """
    if not (job_dir / layout.REQUEST).is_file():
        raise FileNotFoundError(f"{job_dir} holds no {layout.REQUEST}")
    numbers = layout.attempts(job_dir)
    if not numbers:
        return _never_started(job_dir, End(reason or "Lost", message or LOST_MESSAGE, None))
    directory = layout.attempt_dir(job_dir, numbers[-1])
    try:
        claim = liveness.take_over(directory)
    except liveness.AttemptAlive:
        return Exit.BUSY
    try:
        liveness.sweep_claims(job_dir)
        if read_outcome(directory) is None:
            _finish(job_dir, claim, reason or "Lost", message or LOST_MESSAGE)
        return Exit.SUCCEEDED
    finally:
        claim.release()


def _finish(job_dir: Path, claim: liveness.Claim, reason: str, message: str) -> None:
    directory = claim.directory
    summary = summarize_journal(directory)
    if _ran_on_this_host(directory):
        if summary.kernel_pid is not None:
            cleanup.end_session(summary.kernel_pid, str(directory))
        cleanup.remove_sockets(summary.sockets)
    disk_reserve.release(directory)
    documents.remove_drafts(directory)
    usage = summary.usage or Usage().to_json()
    if summary.end is not None:
        end = end_from_record(summary.end)
    else:
        end = End(reason, message, None, summary.cell)
        journal = JournalWriter(directory / layout.JOURNAL)
        moment = max(time.time(), summary.last_record or 0.0)  # as its clock may have been set back
        journal.append({"t": round(moment, 6), **end_record(end, usage)})
        journal.close()
    collect_artifacts(job_dir, directory)
    finished = None if reason == _TERMINATED else _last_sign_of_life(summary, claim.last_heartbeat)
    result = write_result(job_dir, directory)
    write_ending(job_dir, directory, end, result, summary.started, usage, finished)


def _last_sign_of_life(summary: JournalSummary, last_heartbeat: float | None) -> float | None:
    """Return when the attempt was last known to live; None where nothing tells.

    A cancel that came after this did not end it.
    """
    if summary.end is not None:
        return summary.last_record
    return max((t for t in (summary.last_record, last_heartbeat) if t is not None), default=None)


def _never_started(job_dir: Path, end: End) -> int:
    try:
        claim = liveness.claim_attempt(job_dir, 1)
    except liveness.AttemptExists:
        return Exit.BUSY
    try:
        liveness.sweep_claims(job_dir)
        result, usage = WrittenResult(None, Progress()), Usage().to_json()
        write_ending(job_dir, claim.directory, end, result, None, usage)
    finally:
        claim.release()
    return Exit.SUCCEEDED


def _ran_on_this_host(directory: Path) -> bool:
    """Tell whether the runner was a process of this host, up since then: process ids are ours."""
    try:
        runner = documents.read_document(directory / layout.RUNNER) or {}
    except documents.DocumentError:
        return True  # nothing of another process is ended: a kernel has the attempt's folder
    return liveness.ran_on_this_host(runner)
