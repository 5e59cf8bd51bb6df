"""The end of an attempt: banner, fold, result, outcome. The same for a run that ended by itself and
for one that was killed.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from dataclasses import dataclass, field
from datetime import datetime, timezone
from pathlib import Path, PurePosixPath
from typing import Any

from .prepare import Notebook, banner, code_cells, kernel_name, prepare
from .protocol import documents, journal, layout
from .protocol.fold import fold, progress
from .protocol.journal import JournalWriter, Record
from .protocol.outcome import Outcome, write_outcome
from .reasons import End, Exit, RunFailed


@dataclass(frozen=True)
class Ending:
    """How an attempt ended, when it began (None: it never ran), and what it used."""

    end: End
    started: str | None
    usage: dict[str, Any] = field(default_factory=dict)


def now() -> str:
    """Return the present moment: UTC, RFC 3339, milliseconds."""
    moment = datetime.now(timezone.utc).isoformat(timespec="milliseconds")
    return moment.replace("+00:00", "Z")


def prepared(job_dir: Path, request: dict[str, Any], kernel: str) -> Notebook:
    """Return the notebook to execute. Raises RunFailed."""
    return prepare(
        job_dir / layout.SNAPSHOT,
        request.get("parameters") or {},
        kernel,
        source=request["notebook"],
        result=str(PurePosixPath(request["notebook"]).parent / f"{request['name']}.ipynb"),
    )


def write_ending(
    job_dir: Path,
    attempt_dir: Path,
    request: dict[str, Any],
    ending: Ending,
    writer: JournalWriter | None,
) -> int:
    """Fold and write the result, then the outcome; return the exit code.

    `writer` is the living journal of a run that ended by itself: the last record goes there, so
    that whoever has the journal can fold the same result. Raises OSError.
    """
    end = ending.end
    records = [e.record for e in journal.read_journal(attempt_dir / layout.JOURNAL)]
    if not any(r["k"] == "prepared" for r in records):
        records += _late_preparation(job_dir, request)
    last = _end_record(records, ending)
    if writer is not None:
        for record in [r for r in records if r.get("late")] + [last]:
            writer.append(record)
        writer.close()
    digest = _write_result(attempt_dir, records, last)
    seen = progress(records)
    outcome = Outcome(
        state=end.state,
        reason=end.reason,
        message=end.message,
        exit_code=end.exit_code,
        cells={"done": seen.cells_done, "total": seen.cells_total},
        started=ending.started,
        finished=now(),
        usage=ending.usage,
        result_sha256=digest,
    )
    write_outcome(attempt_dir, outcome)
    termination_summary(outcome.to_document())
    return end.exit_code


def _late_preparation(job_dir: Path, request: dict[str, Any]) -> list[Record]:
    """Prepare a notebook whose run ended before it was: so that there is something to deliver."""
    try:
        snapshot = (job_dir / layout.SNAPSHOT).read_bytes()
        notebook = prepared(job_dir, request, kernel_name(snapshot, request.get("kernel")))
    except (RunFailed, OSError):
        return []
    total = len(code_cells(notebook))
    return [{"k": "prepared", "v": 1, "cells_total": total, "notebook": notebook, "late": True}]


def _end_record(records: list[Record], ending: Ending) -> Record:
    notebook = next((r["notebook"] for r in records if r["k"] == "prepared"), {})
    started = ending.started
    finished = datetime.now(timezone.utc)
    metadata: dict[str, Any] = {
        "start_time": started,
        "end_time": finished.isoformat(),
        "exception": True if ending.end.reason else None,
    }
    if started is not None:
        began = datetime.fromisoformat(started.replace("Z", "+00:00"))
        metadata["duration"] = (finished - began).total_seconds()
    return {"k": "end", "metadata": metadata, "banner": banner(notebook, ending.end)}


def _write_result(attempt_dir: Path, records: list[Record], last: Record) -> str | None:
    """Write result.ipynb and return its digest; None where there is no notebook to write."""
    import nbformat

    if not any(r["k"] == "prepared" for r in records):
        return None
    notebook = fold({"cells": [], "metadata": {}}, [*records, last])
    data = (nbformat.writes(nbformat.from_dict(notebook)) + "\n").encode()
    documents.write_bytes(attempt_dir / layout.RESULT, data)
    return hashlib.sha256(data).hexdigest()


def termination_summary(document: dict[str, Any]) -> None:
    """Leave a short outcome where Kubernetes reads it (at most 4096 bytes)."""
    path = os.environ.get("JUPYTER_TO_JOB_TERMINATION_LOG")
    if path:
        short = {k: document[k] for k in ("state", "reason", "exit_code", "cells")}
        short["message"] = (document["message"] or "")[:1000]
        with contextlib.suppress(OSError):
            Path(path).write_text(json.dumps(short))
