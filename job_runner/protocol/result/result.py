"""result.ipynb from records: the same bytes in the runner, which has them live, and elsewhere.

In memory is what is not output: the notebook's cells, and where their outputs lie in a spool. So a
result is there as soon as the last record is, at the cost of copying it, and its size is that of
the disk.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

from .. import documents, layout
from ..journal.journal import journal_size, read_journal
from ..journal.nesting import is_too_deep
from ..progress import Progress, ProgressFold
from .fold import NotebookFold
from .notebook import parts
from .spool import CHUNK, Extent, Spool
from .spooled_outputs import SpoolOutputStore

Record = dict[str, Any]

NO_SPACE = (errno.ENOSPC, errno.EDQUOT)
_IN_MEMORY = 256 << 20
"""Bytes of a journal whose outputs may be in memory where the disk has no room for a spool."""


@dataclass(frozen=True)
class Written:
    """What was written: the file's digest, None if there is no file; and how far the run came."""

    sha256: str | None
    progress: Progress


class ResultFold:
    """The result of one attempt, record by record. A context: leaving it gives the disk back.

    The file `snapshot` is read only where the records do not come to `prepared`.
    """

    def __init__(self, snapshot: Path, spool: Spool) -> None:
        self._snapshot = snapshot
        self._spool = spool
        self._progress = ProgressFold()
        self._prepared = False
        self._run = NotebookFold(lambda: _notebook_in(snapshot) or {}, SpoolOutputStore(spool))

    def __enter__(self) -> ResultFold:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    @property
    def progress(self) -> Progress:
        """How far the run came."""
        return self._progress.progress

    def feed(self, record: Record) -> None:
        """Take one more record. Raises OSError; then the disk is full, and this fold of no use."""
        self._prepared = self._prepared or record.get("k") == "prepared"
        self._progress.feed(record)
        self._run.feed(record)

    def chunks(self) -> Iterator[bytes]:
        """Yield the file as it stands; nothing if there is no notebook at all."""
        if self._exists():
            yield from _chunks(parts(self._run.result()), self._spool)

    def write(self, target: Path) -> Written:
        """Write or replace a file, if there is a notebook. Raises OSError."""
        if not self._exists():
            return Written(None, self.progress)
        digest = hashlib.sha256()

        def hashed() -> Iterator[bytes]:
            for chunk in self.chunks():
                digest.update(chunk)
                yield chunk

        documents.write_chunks(target, hashed())
        return Written(digest.hexdigest(), self.progress)

    def _exists(self) -> bool:
        return self._prepared or _notebook_in(self._snapshot) is not None

    def close(self) -> None:
        """Give the disk back that the outputs lie on."""
        self._spool.close()


def fold_result(job_dir: Path, attempt_dir: Path, spool: Spool) -> ResultFold:
    """Fold snapshot and journal as they are now. Raises OSError."""
    result = ResultFold(job_dir / layout.SNAPSHOT, spool)
    try:
        for entry in read_journal(attempt_dir / layout.JOURNAL):
            result.feed(entry.record)
    except BaseException:
        result.close()
        raise
    return result


def write_result(job_dir: Path, attempt_dir: Path) -> Written:
    """Fold and write the result, if there is one. Raises OSError."""
    try:
        return _write(job_dir, attempt_dir, Spool.in_folder(attempt_dir))
    except OSError as error:
        size = journal_size(attempt_dir / layout.JOURNAL)
        if error.errno not in NO_SPACE or size > _IN_MEMORY:
            raise
    # There is no room for the outputs twice; once, perhaps.
    return _write(job_dir, attempt_dir, Spool.in_memory())


def room_for(journal_bytes: int) -> int:
    """Return about how many bytes of disk it takes to make a result of such a journal."""
    return journal_bytes if journal_bytes <= _IN_MEMORY else 2 * journal_bytes


def _write(job_dir: Path, attempt_dir: Path, spool: Spool) -> Written:
    with fold_result(job_dir, attempt_dir, spool) as result:
        return result.write(attempt_dir / layout.RESULT)


def _notebook_in(file: Path) -> dict[str, Any] | None:
    """Return the notebook that a file holds, of whatever version; None if it holds none."""
    with contextlib.suppress(FileNotFoundError, ValueError, RecursionError):
        value = json.loads(file.read_bytes())
        if isinstance(value, dict) and isinstance(value.get("nbformat"), int):
            return None if is_too_deep(value) else value
    return None


def _chunks(pieces: Iterable[str | bytes | Extent], spool: Spool) -> Iterator[bytes]:
    """Yield what a file is made of as bytes, small ones together."""
    small: list[bytes] = []
    size = 0
    for piece in pieces:
        if isinstance(piece, str):
            piece = piece.encode(errors="replace")
        for data in spool.read(piece) if isinstance(piece, Extent) else (piece,):
            small.append(data)
            size += len(data)
            if size >= CHUNK:
                yield b"".join(small)
                small, size = [], 0
    yield b"".join(small)
