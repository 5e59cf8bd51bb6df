"""`job_runner finish`: result and outcome of an attempt whose runner is gone."""

from __future__ import annotations

import contextlib
import time
from dataclasses import replace
from pathlib import Path

from ..diagnosis.endings import End
from ..diagnosis.exit_codes import Exit
from ..kernel import cleanup
from ..protocol import documents, layout, liveness
from ..protocol.created import CreatedFiles, read_created
from ..protocol.journal.journal import JournalWriter, journal_size
from ..protocol.journal.truncation import cut_reason
from ..protocol.outcome import (
    LOST_MESSAGE,
    MAX_ARTIFACT_BYTES,
    MAX_ARTIFACTS,
    Outcome,
    read_outcome,
    write_outcome,
)
from ..protocol.progress import Progress
from ..protocol.result.result import NO_LIMITS, FoldLimits, WrittenResult, write_result
from ..protocol.units import format_bytes
from ..resources.usage import Usage
from . import disk_reserve
from .artifacts import collect_artifacts, drop_cut_files, list_names
from .finalize import (
    JournalSummary,
    end_from_record,
    end_record,
    summarize_journal,
    write_ending,
)

_TERMINATED = "Terminated"
"""The reason that a caller gives who ended the run just now."""


def finish_job(
    job_dir: Path,
    reason: str | None,
    message: str | None,
    number: int | None = None,
    limits: FoldLimits = NO_LIMITS,
) -> int:
    """Write what an attempt did not get to write, the last one; return 0, or 75 while it lives.

    Where it never started, claim it and write an outcome without a result.
    `reason` and `message` are the caller's knowledge of why; by default the attempt is Lost. What
    the runner itself came to write down counts more, and an outcome that an agent has sent most.
    `limits` is how much of the journal is folded. Of nothing there is no result, and only the
    caller's reason counts.
    """
    if not (job_dir / layout.REQUEST).is_file():
        raise FileNotFoundError(f"{job_dir} holds no {layout.REQUEST}")
    numbers = layout.attempts(job_dir)
    number = number or max(numbers, default=1)
    if number not in numbers:
        end = End(reason or "Lost", message or LOST_MESSAGE, None)
        return _never_started(job_dir, number, end)
    directory = layout.attempt_dir(job_dir, number)
    try:
        claim = liveness.take_over(directory)
    except liveness.AttemptAlive:
        return Exit.BUSY
    try:
        if number == numbers[-1]:
            liveness.remove_claim_drafts(job_dir)
        if read_outcome(directory) is not None:
            return Exit.SUCCEEDED
        documents.remove_drafts(directory)
        sent = _sent_outcome(directory)
        if limits.journal == 0:
            end = End(reason or "Lost", message or LOST_MESSAGE, None)
            _end_without_result(job_dir, directory, end)
        elif sent is not None:
            _complete(job_dir, directory, sent, limits)
        else:
            _finish(job_dir, claim, reason or "Lost", message or LOST_MESSAGE, limits)
        return Exit.SUCCEEDED
    finally:
        claim.release()


def _sent_outcome(directory: Path) -> Outcome | None:
    """Return the outcome that an agent has sent, None for one that cannot be read."""
    with contextlib.suppress(documents.DocumentError):
        return read_outcome(directory, layout.SENT_OUTCOME)
    return None


def _finish(
    job_dir: Path, claim: liveness.Claim, reason: str, message: str, limits: FoldLimits
) -> None:
    directory = claim.directory
    has_begun = journal_size(directory / layout.JOURNAL) > 0 or not _is_of_a_pod(directory)
    summary = summarize_journal(directory, limits.line)
    if _ran_on_this_host(directory):
        if summary.kernel_pid is not None:
            cleanup.end_session(summary.kernel_pid, str(directory))
        cleanup.remove_sockets(summary.sockets)
    disk_reserve.release(directory)
    usage = summary.usage or Usage().to_json()
    if summary.end is not None:
        end = end_from_record(summary.end)
    else:
        end = End(reason, message, None, summary.cell)
        journal = JournalWriter(directory / layout.JOURNAL)
        moment = max(time.time(), summary.last_record or 0.0)  # as its clock may have been set back
        journal.append({"t": round(moment, 6), **end_record(end, usage)})
        journal.close()
    uncollected_notes = collect_artifacts(job_dir, directory)
    finished = None if reason == _TERMINATED else _last_sign_of_life(summary, claim.last_heartbeat)
    # The agent of a pod claims the attempt before its runner starts: without a journal nothing ran.
    result = WrittenResult(None, Progress())
    if has_begun:
        result = write_result(job_dir, directory, limits)
    notes = [*_missing_parts(directory, limits), *uncollected_notes]
    if has_begun and _is_of_a_pod(directory):
        notes += _missing_files(job_dir, directory)
    if notes:
        end = replace(end, message=" ".join(filter(None, (end.message, *notes))))
    write_ending(job_dir, directory, end, result, summary.started, usage, finished)


def _complete(job_dir: Path, directory: Path, sent: Outcome, limits: FoldLimits) -> None:
    """Write the outcome that an agent has sent, with the result and what is missing of it."""
    result = write_result(job_dir, directory, limits)
    notes = _missing_parts(directory, limits)
    created = read_created(directory)
    if created is not None:
        notes += _lost_files(directory, created)
    message = " ".join(filter(None, (sent.message, *notes))) or None
    counted = replace(sent, result_sha256=result.sha256, message=message, metrics=result.metrics)
    write_outcome(directory, counted)


def _missing_parts(directory: Path, limits: FoldLimits) -> list[str]:
    """Return sentences on what a gateway did not take of an attempt, or could not fold."""
    notes = []
    cut = summarize_journal(directory, limits.line).cut
    if cut is not None:
        notes.append(f"Its journal was cut: {cut_reason(cut)}.")
    elif limits.journal is not None and journal_size(directory / layout.JOURNAL) > limits.journal:
        notes.append(f"Only {format_bytes(limits.journal)} of its journal could be put together.")
    try:
        left_out = documents.read_document(directory / layout.LEFT_OUT) or {}
    except documents.DocumentError:
        left_out = {}
    if isinstance(left_out.get("message"), str):
        notes.append(left_out["message"])
    return notes


def _missing_files(job_dir: Path, directory: Path) -> list[str]:
    """Return sentences on files of a killed run that are lost with its pod, if there are any."""
    created = read_created(directory)
    if created is None:
        with contextlib.suppress(documents.DocumentError):
            if (documents.read_document(job_dir / layout.REQUEST) or {}).get("isolated"):
                return ["Files that it had created, if any, are lost with its pod."]
        return []
    return _lost_files(directory, created)


def _lost_files(directory: Path, created: CreatedFiles) -> list[str]:
    """Return sentences on those of the created files that did not come, or not whole, if any.

    What came of them in part only is removed: it would be taken for the whole.
    """
    missing = drop_cut_files(directory, created)
    count = len(missing) + created.omitted
    if not count:
        return []
    names = list_names(missing, count)
    total, size = len(created.files) + created.omitted, sum(file.size for file in created.files)
    notes = [
        f"Of {total} files that it had created {count} could not be fetched from its pod, and are "
        f"lost{': ' if names else ''}{names}."
    ]
    if total > MAX_ARTIFACTS or size > MAX_ARTIFACT_BYTES:
        most = f"{MAX_ARTIFACTS:,} files and {format_bytes(MAX_ARTIFACT_BYTES)}"
        notes.append(f"At most {most} of a run are delivered.")
    return notes


def _last_sign_of_life(summary: JournalSummary, last_heartbeat: float | None) -> float | None:
    """Return when the attempt was last known to live; None where nothing tells.

    A cancel that came after this did not end it.
    """
    if summary.end is not None:
        return summary.last_record
    return max((t for t in (summary.last_record, last_heartbeat) if t is not None), default=None)


def _never_started(job_dir: Path, number: int, end: End) -> int:
    try:
        claim = liveness.claim_attempt(job_dir, number)
    except liveness.AttemptExists:
        return Exit.BUSY
    try:
        liveness.remove_claim_drafts(job_dir)
        _end_without_result(job_dir, claim.directory, end)
    finally:
        claim.release()
    return Exit.SUCCEEDED


def _end_without_result(job_dir: Path, directory: Path, end: End) -> None:
    result, usage = WrittenResult(None, Progress()), Usage().to_json()
    write_ending(job_dir, directory, end, result, None, usage)


def _is_of_a_pod(directory: Path) -> bool:
    """Tell whether the agent of a pod has claimed the attempt."""
    with contextlib.suppress(documents.DocumentError):
        return "pod" in (documents.read_document(directory / layout.RUNNER) or {})
    return False


def _ran_on_this_host(directory: Path) -> bool:
    """Tell whether the runner was a process of this host, up since then: process ids are ours."""
    try:
        runner = documents.read_document(directory / layout.RUNNER) or {}
    except documents.DocumentError:
        return True  # nothing of another process is ended: a kernel has the attempt's folder
    return liveness.ran_on_this_host(runner)
