"""The result of a run while it runs: each record is folded when it is journaled.

So at the end nothing is read again. Where that cannot be (a full disk), the journal has it all: the
result is folded from there, as `finish` does it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ..protocol import layout
from ..protocol.result.result import NO_SPACE, ResultFold, Written, write_result
from ..protocol.result.spool import Spool


class IncrementalResult:
    """The result of one attempt. Its records come by `feed`, all that were journaled."""

    def __init__(self, job_dir: Path, attempt_dir: Path) -> None:
        self._job_dir = job_dir
        self._attempt_dir = attempt_dir
        self._fold: ResultFold | None = None
        with self._or_none():
            spool = Spool.in_folder(attempt_dir)
            self._fold = ResultFold(job_dir / layout.SNAPSHOT, spool)

    def feed(self, record: dict[str, Any]) -> None:
        """Take one more record. Raises OSError: the disk is full, and records come no further."""
        if self._fold is not None:
            try:
                self._fold.feed(record)
            except BaseException:
                self.give_up()
                raise

    def give_up(self) -> None:
        """Leave it to the journal: there may be something in it that was not fed, or in part."""
        if self._fold is not None:
            self._fold.close()
            self._fold = None

    def write(self) -> Written:
        """Write `result.ipynb`, once the journal is complete. Raises OSError."""
        fold, target = self._fold, self._attempt_dir / layout.RESULT
        if fold is not None:
            with self._or_none(), fold:
                return fold.write(target)
        return write_result(self._job_dir, self._attempt_dir)

    @contextmanager
    def _or_none(self) -> Iterator[None]:
        """Do without where there is no room for a spool."""
        try:
            yield
        except OSError as error:
            if error.errno not in NO_SPACE:
                raise
