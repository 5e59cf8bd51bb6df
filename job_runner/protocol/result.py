"""result.ipynb from what lies in a job's directory: the same bytes in the runner and a gateway."""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from . import documents, layout
from .fold import NotebookFold, Progress, ProgressFold
from .journal import read_journal
from .nesting import is_too_deep
from .notebook import Notebook, to_bytes, to_chunks


@dataclass(frozen=True)
class Result:
    """The executed notebook, None where the snapshot is none; and how far the run came."""

    notebook: Notebook | None
    progress: Progress

    @property
    def data(self) -> bytes | None:
        """Return the file's bytes."""
        return None if self.notebook is None else to_bytes(self.notebook)

    @property
    def sha256(self) -> str | None:
        """Return the digest of the file."""
        digest = hashlib.sha256()
        for chunk in self.chunks():
            digest.update(chunk)
        return None if self.notebook is None else digest.hexdigest()

    def chunks(self) -> Iterator[bytes]:
        """Yield the file in pieces; nothing if there is none."""
        if self.notebook is not None:
            yield from to_chunks(self.notebook)


@dataclass(frozen=True)
class Written:
    """What was written: the file's digest, None if there is no file; and how far the run came."""

    sha256: str | None
    progress: Progress


def fold_result(job_dir: Path, attempt_dir: Path) -> Result:
    """Fold snapshot and journal as they are now. Raises OSError."""
    progress = ProgressFold()
    snapshot: Any = None
    with contextlib.suppress(ValueError, RecursionError, FileNotFoundError):
        snapshot = json.loads((job_dir / layout.SNAPSHOT).read_bytes())
    is_notebook = isinstance(snapshot, dict) and isinstance(snapshot.get("nbformat"), int)
    is_notebook = is_notebook and not is_too_deep(snapshot)
    run = NotebookFold(snapshot if is_notebook else {})
    for entry in read_journal(attempt_dir / layout.JOURNAL):
        is_notebook = is_notebook or entry.record.get("k") == "prepared"
        progress.feed(entry.record)
        run.feed(entry.record)
    return Result(run.result() if is_notebook else None, progress.progress)


def write_result(job_dir: Path, attempt_dir: Path) -> Written:
    """Fold and write the result, if there is one. Raises OSError."""
    result = fold_result(job_dir, attempt_dir)
    if result.notebook is None:
        return Written(None, result.progress)
    digest = hashlib.sha256()

    def hashed() -> Iterator[bytes]:
        for chunk in result.chunks():
            digest.update(chunk)
            yield chunk

    documents.write_chunks(attempt_dir / layout.RESULT, hashed())
    return Written(digest.hexdigest(), result.progress)
