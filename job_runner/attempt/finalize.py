"""The end of an attempt: last record, result, outcome, in this order.

A run that ended by itself and one that was killed end the same way: the journal gets an `end`
record, and the result is folded from snapshot and journal.
"""

from __future__ import annotations

import contextlib
import json
import os
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ..diagnosis.endings import End
from ..kernel.cleanup import TERMINATION_LOG
from ..notebook.banner import error_banner
from ..protocol import documents, layout, times
from ..protocol.figures import figures_of_run
from ..protocol.journal import journal
from ..protocol.journal.validation import validated
from ..protocol.outcome import Outcome, write_outcome
from ..protocol.result.result import WrittenResult
from .artifacts import seal_artifacts

PLAIN_OUTPUT = "plain_output"
"""In request.json: the name of the file beside the job directory that the result becomes."""
_MAX_MESSAGE_BYTES = 4096
_CHUNK = 1 << 20

Record = dict[str, Any]


@dataclass(frozen=True)
class JournalSummary:
    """The state of a dead attempt by its journal: its start, its cell, and its end if it has one.

    `usage` is the last one recorded, `last_record` the time of the last record, and `cut` the
    record that says that a gateway took no more.
    """

    started: float | None = None
    kernel_pid: int | None = None
    sockets: str | None = None
    cell: int | None = None
    end: Record | None = None
    usage: Record | None = None
    last_record: float | None = None
    cut: Record | None = None


def end_record(end: End, usage: dict[str, Any]) -> Record:
    """Return the last record of a journal: how the run ended, and the banner that says so."""
    return {
        "k": "end",
        "state": end.state,
        "reason": end.reason,
        "message": end.message,
        "exit_code": end.exit_code,
        "cell": end.cell,
        "banner": [[position, cell] for position, cell in error_banner(end)],
        "usage": usage,
    }


def end_from_record(record: Record) -> End:
    """Return what `end_record` wrote."""
    return End(
        record.get("reason"), record.get("message"), record.get("exit_code"), record.get("cell")
    )


def summarize_journal(attempt_dir: Path, max_line: int | None = None) -> JournalSummary:
    """Read from the journal where an attempt stood; longer lines than `max_line` do not count."""
    fields: dict[str, Any] = {}
    for entry in journal.read_journal(
        attempt_dir / layout.JOURNAL, skip_outputs=True, max_line=max_line
    ):
        record = validated(entry.record)
        if record.get("t") is not None:
            fields["last_record"] = record["t"]
        match record.get("k"):
            case "start":
                fields |= {"started": record.get("t"), "sockets": record.get("sockets")}
            case "kernel":
                fields["kernel_pid"] = record.get("pid")
            case "cell_start":
                fields["cell"] = record["i"]
            case "cell_end" if record["ok"]:
                fields["cell"] = None
            case "usage":
                fields["usage"] = figures_of_run(record)
            case "cut":
                fields["cut"] = record
            case "end" if "end" not in fields:
                fields["end"] = record
                usage = figures_of_run(record.get("usage") or {})
                fields["usage"] = usage or fields.get("usage")
    return JournalSummary(**fields)


def write_ending(
    job_dir: Path,
    attempt_dir: Path,
    end: End,
    result: WrittenResult,
    started: float | None,
    usage: dict[str, Any],
    finished: float | None = None,
) -> None:
    """Write the outcome of an attempt whose journal and `result` are complete. Raises OSError.

    Times are unix seconds; `finished` None: now. Nothing ends before it started: the system's clock
    may have been set back in between.
    """
    copy_standalone_output(job_dir, attempt_dir)
    finished = max(time.time() if finished is None else finished, started or 0.0)
    outcome = Outcome(
        state=end.state,
        reason=end.reason,
        message=end.message,
        exit_code=None if end.exit_code is None else int(end.exit_code),
        cells={"done": result.progress.cells_done, "total": result.progress.cells_total},
        started=None if started is None else times.from_unix(started),
        finished=times.from_unix(finished),
        usage=usage,
        result_sha256=result.sha256,
        artifacts=seal_artifacts(attempt_dir),
        metrics=result.metrics,
    )
    write_outcome(attempt_dir, outcome)
    write_termination_message(outcome)


def copy_standalone_output(job_dir: Path, attempt_dir: Path) -> None:
    """Put the result where a run of plain files wants it; nothing to do for any other job."""
    result = attempt_dir / layout.RESULT
    if not result.exists():
        return
    try:
        name = (documents.read_document(job_dir / layout.REQUEST) or {}).get(PLAIN_OUTPUT)
    except documents.DocumentError:
        return  # a damaged request must not keep the outcome from being written
    if name:
        with result.open("rb") as file:
            chunks = iter(lambda: file.read(_CHUNK), b"")
            # The result is no file of the exchange: it gets the usual rights of a user's file.
            documents.write_chunks(job_dir.parent / Path(name).name, chunks, mode=0o666)


def write_termination_message(outcome: Outcome) -> None:
    """Write a short outcome to the file that Kubernetes reads, if a variable names it."""
    path = os.environ.get(TERMINATION_LOG)
    if not path:
        return
    document = {"v": documents.VERSION, **asdict(outcome)}
    for name in ("artifacts", "metrics"):  # they may be many
        document.pop(name)
    text = json.dumps(document)
    if len(text) > _MAX_MESSAGE_BYTES:
        text = json.dumps({**document, "message": (outcome.message or "")[:200]})
    # The message is optional: the outcome that counts is already written.
    with contextlib.suppress(OSError):
        Path(path).write_text(text[:_MAX_MESSAGE_BYTES])
