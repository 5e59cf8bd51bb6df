"""The state of one attempt while it runs: its records, its result, its end."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..diagnosis import endings
from ..diagnosis.endings import End
from ..host.gpu_devices import DEVICE_ORDER, VISIBLE_DEVICES
from ..protocol import layout, liveness
from ..protocol.journal.journal import JournalWriter
from ..protocol.result.result import NO_SPACE, ResultFold, WrittenResult, write_result
from ..protocol.result.spool import Spool
from ..resources.usage import Usage
from . import disk_reserve
from .finalize import end_record
from .output_limit import OutputLimiter


@dataclass
class Attempt:
    """The state of one attempt.

    `end` is set once the journal has it, and `written` once the result is written. `notes` are
    sentences that the outcome's message gets behind that of the end.
    """

    job_dir: Path
    claim: liveness.Claim
    request: dict[str, Any]
    journal: JournalWriter
    limiter: OutputLimiter
    started: float = field(default_factory=time.time)
    usage: Usage = field(default_factory=Usage)
    end: End | None = None
    written: WrittenResult | None = None
    notes: list[str] = field(default_factory=list)
    _start_tick: float = field(default_factory=time.monotonic)
    _fold: ResultFold | None = None
    """The result so far: each record is folded when it is journaled. None on a full disk."""

    def __post_init__(self) -> None:
        with _ignoring_full_disk():
            spool = Spool.in_folder(self.directory)
            self._fold = ResultFold(self.job_dir / layout.SNAPSHOT, spool)

    @property
    def directory(self) -> Path:
        """Return the attempt's directory."""
        return self.claim.directory

    @property
    def elapsed(self) -> float:
        """Return the seconds since the start, also when somebody sets the system's clock."""
        return time.monotonic() - self._start_tick

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
            stamped = {"t": round(self.started + self.elapsed, 6), **limited}
            try:
                written = self.journal.append(stamped)
                if self._fold is not None:
                    self._fold.feed(written)
            except BaseException:  # the journal may have a record that was not fed, or only in part
                if self._fold is not None:
                    self._fold.close()
                    self._fold = None
                raise
            self.limiter.count_written(limited, self.journal.record_size)

    def conclude(self, end: End) -> End:
        """Record in the journal how the run ended, and return that end. Raises OSError."""
        summary = self.limiter.summary()
        end = endings.with_note(end, summary) if summary else end
        self.emit(end_record(end, self.usage.to_json()))
        self.end = end
        return end

    def write_result(self) -> WrittenResult:
        """Close the journal and write the result, once. Raises OSError.

        Where the disk had no room for the fold, the result is folded from the journal now, as
        `finish` does it.
        """
        if self.written is None:
            disk_reserve.release(self.directory)
            self.journal.close()
            fold, self._fold = self._fold, None  # it writes once: on a full disk it is closed now
            if fold is not None:
                with _ignoring_full_disk(), fold:
                    self.written = fold.write(self.directory / layout.RESULT)
        if self.written is None:
            self.written = write_result(self.job_dir, self.directory)
        return self.written


@contextmanager
def _ignoring_full_disk() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if error.errno not in NO_SPACE:
            raise
