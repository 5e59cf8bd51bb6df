"""The state of one attempt while it runs: its records, its result, its end."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..diagnosis import endings
from ..diagnosis.endings import End
from ..host.gpu_devices import DEVICE_ORDER, VISIBLE_DEVICES
from ..protocol import liveness
from ..protocol.journal.journal import JournalWriter
from ..protocol.result.result import WrittenResult
from ..resources.usage import Usage
from . import disk_reserve
from .finalize import end_record
from .incremental_result import IncrementalResult
from .output_limit import OutputLimiter


@dataclass
class Attempt:
    """The state of one attempt; `written` is set once its result is written."""

    job_dir: Path
    claim: liveness.Claim
    request: dict[str, Any]
    journal: JournalWriter
    result: IncrementalResult
    limiter: OutputLimiter
    started: float = field(default_factory=time.time)
    usage: Usage = field(default_factory=Usage)
    end: End | None = None
    recorded: bool = False
    written: WrittenResult | None = None

    @property
    def directory(self) -> Path:
        """Return the attempt's directory."""
        return self.claim.directory

    @property
    def variables(self) -> dict[str, str]:
        """Return the job's own variables, without those that would select other GPUs.

        Where whoever started this runner set them, they select the job's GPUs.
        """
        env: dict[str, str] = self.request.get("env") or {}
        chosen = os.environ.keys() & {VISIBLE_DEVICES, DEVICE_ORDER}
        return {name: value for name, value in env.items() if name not in chosen}

    def emit(self, record: dict[str, Any]) -> None:
        """Journal one record, with the receipt of a cell that ended."""
        if record["k"] == "cell_start":
            self.usage.begin_cell()
        elif record["k"] == "cell_end":
            record = {**record, "usage": self.usage.end_cell()}
        for limited in self.limiter.filter(record):
            stamped = {"t": round(time.time(), 6), **limited}
            try:
                written = self.journal.append(stamped)
            except OSError:
                self.result.abandon()
                raise
            self.result.feed(written)

    def conclude(self, end: End) -> End:
        """Record in the journal how the run ended, and return that end. Raises OSError."""
        summary = self.limiter.summary()
        self.end = endings.with_note(end, summary) if summary else end
        self.emit(end_record(self.end, self.usage.to_json()))
        self.recorded = True
        return self.end

    def write_result(self) -> WrittenResult:
        """Close the journal and write the result, once. Raises OSError."""
        if self.written is None:
            disk_reserve.release(self.directory)
            self.journal.close()
            self.written = self.result.write()
        return self.written
