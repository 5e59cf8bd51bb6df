"""Notices runs that go on past their time limit: a runner ends by itself, if it can.

One that was stopped, or that hangs, would keep its slot for ever.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from pathlib import Path

from job_runner.protocol import layout
from job_runner.protocol.journal.journal import read_journal

from ..exchange import Request

ALLOWANCE = 20.0
"""Seconds past its limit that a run has to end by itself: it needs about ten."""
SLOW_ALLOWANCE = 600.0
"""The same for what no limit counts: starting a kernel, and saving files and the result."""
LOOK_INTERVAL = 5.0
"""Seconds between two looks into the journal of a run, where they matter."""


@dataclass
class _Run:
    """A run: when it is overdue, when to look at it again, and up to where its journal was read.

    `latest` is the kind of the latest record of a cell, or of the end. Times are monotonic.
    """

    due_at: float
    look_at: float = 0.0
    offset: int = 0
    latest: str = ""
    is_overdue: bool = False


@dataclass
class OverdueWatch:
    """Watches the running jobs of one dispatcher, by its own monotonic clock."""

    allowance: float = ALLOWANCE
    slow_allowance: float = SLOW_ALLOWANCE
    _runs: dict[str, _Run] = field(default_factory=dict)

    def is_overdue(self, request: Request, attempt: Path) -> bool:
        """Tell whether a run that goes on should have ended. From then on it stays overdue."""
        if request.max_runtime is None:
            return False
        moment, limit = time.monotonic(), request.max_runtime
        run = self._runs.setdefault(request.name, _Run(moment + limit + self.slow_allowance))
        if run.is_overdue or moment < run.look_at:
            return run.is_overdue
        has_begun = bool(run.latest)
        _read(run, attempt / layout.JOURNAL, only_first=not has_begun)
        run.look_at = moment + LOOK_INTERVAL
        if run.latest and not has_begun:
            run.look_at = run.due_at = moment + limit + self.allowance
        extra = self.slow_allowance if run.latest in ("cell_end", "end") else 0.0
        run.is_overdue = moment > run.due_at + extra
        return run.is_overdue

    def forget(self, job: str) -> None:
        """Drop what is kept about a job."""
        self._runs.pop(job, None)


def _read(run: _Run, journal: Path, *, only_first: bool) -> None:
    """Read what is new in a journal, up to its first cell at first: the rest may be large."""
    for entry in read_journal(journal, run.offset, skip_outputs=True):
        run.offset = entry.end
        kind = entry.record.get("k")
        if kind in ("cell_start", "cell_end", "end"):
            run.latest = str(kind)
            if only_first:
                return
