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
LOOK_INTERVAL = 5.0
"""Seconds between two looks into the journal of an overdue run."""


@dataclass
class OverdueWatch:
    """Watches the running jobs of one dispatcher, by its own monotonic clock."""

    allowance: float = ALLOWANCE
    _limits: dict[str, float] = field(default_factory=dict)
    """When each job is overdue; only for those whose first cell was seen."""
    _look_at: dict[str, float] = field(default_factory=dict)

    def is_overdue(self, request: Request, attempt: Path) -> bool:
        """Tell whether a run that goes on should have ended, and is not about to."""
        name, moment = request.name, time.monotonic()
        if request.max_runtime is None or moment < self._look_at.get(name, 0.0):
            return False
        journal = attempt / layout.JOURNAL
        if name not in self._limits:
            if any(
                e.record.get("k") == "cell_start" for e in read_journal(journal, skip_outputs=True)
            ):
                self._limits[name] = moment + request.max_runtime + self.allowance
                self._look_at[name] = self._limits[name]
            return False
        self._look_at[name] = moment + LOOK_INTERVAL
        # After its last record a run writes its result, which may take long.
        return all(e.record.get("k") != "end" for e in read_journal(journal, skip_outputs=True))

    def forget(self, job: str) -> None:
        """Drop what is kept about a job."""
        self._limits.pop(job, None)
        self._look_at.pop(job, None)
