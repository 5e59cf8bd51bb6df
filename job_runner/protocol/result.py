"""result.ipynb from what lies in a job's directory: the same bytes in the runner and a gateway."""

from __future__ import annotations

import contextlib
import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from . import documents, layout
from .fold import NotebookFold, Progress, ProgressFold
from .journal import read_journal
from .notebook import to_bytes


@dataclass(frozen=True)
class Result:
    """The file's bytes, None where the snapshot is no notebook; and how far the run came."""

    data: bytes | None
    progress: Progress

    @property
    def sha256(self) -> str | None:
        """Return the digest of the file."""
        return None if self.data is None else hashlib.sha256(self.data).hexdigest()


def fold_result(job_dir: Path, attempt_dir: Path) -> Result:
    """Fold snapshot and journal as they are now. Raises OSError."""
    progress = ProgressFold()
    snapshot: Any = None
    with contextlib.suppress(ValueError, RecursionError, FileNotFoundError):
        snapshot = json.loads((job_dir / layout.SNAPSHOT).read_bytes())
    is_notebook = isinstance(snapshot, dict) and isinstance(snapshot.get("nbformat"), int)
    run = NotebookFold(snapshot if is_notebook else {})
    for entry in read_journal(attempt_dir / layout.JOURNAL):
        is_notebook = is_notebook or entry.record.get("k") == "prepared"
        progress.feed(entry.record)
        run.feed(entry.record)
    return Result(to_bytes(run.result()) if is_notebook else None, progress.progress)


def write_result(job_dir: Path, attempt_dir: Path) -> Result:
    """Fold and write the result, if there is one. Raises OSError."""
    result = fold_result(job_dir, attempt_dir)
    if result.data is not None:
        documents.write_bytes(attempt_dir / layout.RESULT, result.data)
    return result
