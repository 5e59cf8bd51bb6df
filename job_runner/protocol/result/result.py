"""Folds records to result.ipynb: the same bytes in the runner, during the run, and elsewhere.

Only the notebook's cells are in memory, with the extents of their outputs in a spool. So the result
is ready with the last record, at the cost of a copy, and its size is limited by the disk only.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .. import documents, layout
from ..journal.journal import journal_size, read_journal
from ..journal.nesting import is_too_deep
from ..journal.validation import validated
from ..metrics import Metric, MetricsFold
from ..progress import Progress, ProgressFold
from .fold import NotebookFold
from .notebook import file_parts
from .spool import CHUNK, Extent, Spool, encode
from .spooled_outputs import SpoolOutputStore

Record = dict[str, Any]

NO_SPACE = (errno.ENOSPC, errno.EDQUOT)
_IN_MEMORY = 256 << 20
"""Journals of at most this many bytes are folded in memory if the disk has no room for a spool."""


@dataclass(frozen=True)
class WrittenResult:
    """The digest of the written file, None if there is none, the run's progress and metrics."""

    sha256: str | None
    progress: Progress
    metrics: dict[str, Metric] = field(default_factory=dict)


class ResultFold:
    """The result of one attempt, record by record. Leaving the context releases the disk space.

    The file `snapshot` is read only where the record `prepared` is missing.
    """

    def __init__(self, snapshot: Path, spool: Spool) -> None:
        self._snapshot = snapshot
        self._spool = spool
        self._progress = ProgressFold()
        self._metrics = MetricsFold()
        self._prepared = False
        self._fold = NotebookFold(lambda: _read_notebook(snapshot) or {}, SpoolOutputStore(spool))

    def __enter__(self) -> ResultFold:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def progress(self) -> Progress:
        """The progress of the run."""
        return self._progress.progress

    def feed(self, record: Record) -> None:
        """Take one more record. After an OSError (the disk is full) this fold is useless."""
        record = validated(record)
        self._prepared = self._prepared or record["k"] == "prepared"
        self._progress.feed(record)
        self._metrics.feed(record)
        self._fold.feed(record)

    def chunks(self) -> Iterator[bytes]:
        """Yield the file as it is now; nothing if there is no notebook."""
        if self._has_notebook():
            yield from _chunks(file_parts(self._fold.result()), self._spool)

    def write(self, target: Path) -> WrittenResult:
        """Write or replace a file, if there is a notebook. Raises OSError."""
        if not self._has_notebook():
            return WrittenResult(None, self.progress, self._metrics.metrics)
        digest = hashlib.sha256()

        def hashed() -> Iterator[bytes]:
            for chunk in self.chunks():
                digest.update(chunk)
                yield chunk

        documents.write_chunks(target, hashed())
        return WrittenResult(digest.hexdigest(), self.progress, self._metrics.metrics)

    def _has_notebook(self) -> bool:
        return self._prepared or _read_notebook(self._snapshot) is not None

    def close(self) -> None:
        """Release the disk space of the outputs."""
        self._spool.close()


@dataclass(frozen=True)
class FoldLimits:
    """How much of a journal is folded by a process that must not trust whoever wrote it.

    `line`: bytes of a line; a longer one is skipped and becomes a notice. `journal`: bytes of the
    journal; a notice says that the rest is missing.
    """

    line: int | None = None
    journal: int | None = None


NO_LIMITS = FoldLimits()
"""The limits of a runner, which folds what it has written itself."""


def fold_result(
    job_dir: Path, attempt_dir: Path, spool: Spool, limits: FoldLimits = NO_LIMITS
) -> ResultFold:
    """Fold the records of a journal so far. Raises OSError."""
    result = ResultFold(job_dir / layout.SNAPSHOT, spool)
    try:
        for entry in read_journal(attempt_dir / layout.JOURNAL, max_line=limits.line):
            if limits.journal is not None and entry.end > limits.journal:
                result.feed({"k": "cut", "limit": limits.journal})
                break
            result.feed(entry.record)
    except BaseException:
        result.close()
        raise
    return result


def write_result(job_dir: Path, attempt_dir: Path, limits: FoldLimits = NO_LIMITS) -> WrittenResult:
    """Fold and write the result, if there is one. Raises OSError."""
    try:
        return _write(job_dir, attempt_dir, Spool.in_folder(attempt_dir), limits)
    except OSError as error:
        size = journal_size(attempt_dir / layout.JOURNAL)
        if error.errno not in NO_SPACE or size > _IN_MEMORY:
            raise
    # The disk has no room for spool and result; it may have room for the result.
    return _write(job_dir, attempt_dir, Spool.in_memory(), limits)


def room_for(journal_bytes: int) -> int:
    """Return about how many bytes of disk the result of a journal of this size needs."""
    return journal_bytes if journal_bytes <= _IN_MEMORY else 2 * journal_bytes


def _write(job_dir: Path, attempt_dir: Path, spool: Spool, limits: FoldLimits) -> WrittenResult:
    with fold_result(job_dir, attempt_dir, spool, limits) as result:
        return result.write(attempt_dir / layout.RESULT)


def _read_notebook(file: Path) -> dict[str, Any] | None:
    """Return the notebook in a file, of any version; None if it holds none."""
    with contextlib.suppress(FileNotFoundError, ValueError, RecursionError):
        value = json.loads(file.read_bytes())
        if isinstance(value, dict) and isinstance(value.get("nbformat"), int):
            return None if is_too_deep(value) else value
    return None


def _chunks(pieces: Iterable[str | bytes | Extent], spool: Spool) -> Iterator[bytes]:
    """Yield the bytes of a file's parts, small ones joined."""
    small: list[bytes] = []
    size = 0
    for piece in pieces:
        if isinstance(piece, str):
            piece = encode(piece)
        for data in spool.read(piece) if isinstance(piece, Extent) else (piece,):
            small.append(data)
            size += len(data)
            if size >= CHUNK:
                yield b"".join(small)
                small, size = [], 0
    yield b"".join(small)
