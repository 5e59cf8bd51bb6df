"""The result of a run while it runs: each record is folded when it is journaled.

So nothing is read again at the end. If the disk has no room for that, the result is folded from the
journal at the end, as `finish` does it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ..protocol import layout
from ..protocol.result.result import NO_SPACE, ResultFold, WrittenResult, write_result
from ..protocol.result.spool import Spool


class IncrementalResult:
    """The result of one attempt. `feed` takes every record that was journaled."""

    def __init__(self, job_dir: Path, attempt_dir: Path) -> None:
        self._job_dir = job_dir
        self._attempt_dir = attempt_dir
        self._fold: ResultFold | None = None
        with self._ignoring_full_disk():
            spool = Spool.in_folder(attempt_dir)
            self._fold = ResultFold(job_dir / layout.SNAPSHOT, spool)

    def feed(self, record: dict[str, Any]) -> None:
        """Fold one more record. Raises OSError, for example for a full disk; then folding stops."""
        if self._fold is not None:
            try:
                self._fold.feed(record)
            except BaseException:
                self.abandon()
                raise

    def abandon(self) -> None:
        """Stop folding: the journal may have a record that was not fed, or only in part."""
        if self._fold is not None:
            self._fold.close()
            self._fold = None

    def write(self) -> WrittenResult:
        """Write `result.ipynb`, once the journal is complete. Raises OSError."""
        fold, target = self._fold, self._attempt_dir / layout.RESULT
        if fold is not None:
            with self._ignoring_full_disk(), fold:
                return fold.write(target)
        return write_result(self._job_dir, self._attempt_dir)

    @contextmanager
    def _ignoring_full_disk(self) -> Iterator[None]:
        """Go on without the spool where the disk has no room for it."""
        try:
            yield
        except OSError as error:
            if error.errno not in NO_SPACE:
                raise
