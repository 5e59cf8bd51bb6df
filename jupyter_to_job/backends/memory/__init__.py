"""The smallest backend, for tests of the service: it runs no code at all.

Every code cell "prints" its own source. Attempts, journals and outcomes are real, so the service
cannot tell the difference.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any, Literal

from job_runner.protocol import layout, liveness
from job_runner.protocol.journal import journal
from job_runner.protocol.journal.journal import JournalWriter, Record
from job_runner.protocol.outcome import Outcome, write_outcome
from job_runner.protocol.progress import Progress
from job_runner.protocol.result import notebook
from job_runner.protocol.result.result import WrittenResult, write_result

from ...domain import times
from ...domain.state import Placement
from ...exchange import FileExchange, Request

Hold = Literal["queued", "running"]


class MemoryBackend:
    """Implements `backends.port.Backend`; `ended` is called with the name of a job that has ended.

    A job has run when `notify` returns, unless `hold` is set: then it stays `queued`, or
    `running` in its first cell, until a cancel.
    """

    name = "memory"
    has_queue = True

    def __init__(
        self,
        exchange: FileExchange,
        ended: Callable[[str], object] = str,
        hold: Hold | None = None,
    ) -> None:
        self._exchange = exchange
        self._ended = ended
        self._hold = hold
        self._running: dict[str, liveness.Claim] = {}

    def admit(self, demand: Mapping[str, Decimal]) -> None:
        """See the port: everything fits."""

    def notify(self, job: str) -> None:
        """See the port."""
        directory = self._exchange.directory(job)
        cancelled = (directory / layout.CANCEL).exists()
        if not cancelled and (self._hold == "queued" or job in self._running):
            return
        claim = self._running.pop(job, None)
        if claim is None:
            try:
                claim = liveness.claim_attempt(directory, 1)
            except liveness.AttemptExists:
                return
            if not cancelled:
                _journal(directory, claim.directory, stop_in_first=self._hold == "running")
            if not cancelled and self._hold == "running":
                self._running[job] = claim
                return
        _end(directory, claim.directory, cancelled=cancelled)
        claim.release()
        self._ended(job)

    def alive(self, job: str, attempt: Path) -> bool:  # noqa: ARG002 - its lock is enough
        """See the port."""
        return liveness.is_alive(attempt)

    def queue_status(self, waiting: Sequence[Request]) -> Mapping[str, Placement]:
        """See the port: held jobs wait by priority, then in order of submission."""
        queue = sorted(waiting, key=lambda r: (-r.priority, r.submitted, r.name))
        return {r.name: Placement(position=place) for place, r in enumerate(queue, start=1)}

    def resources(self) -> None:
        """See the port: no resource is limited."""


def _journal(job_dir: Path, attempt: Path, *, stop_in_first: bool) -> None:
    """Journal a run in which each code cell prints its source."""
    snapshot = json.loads((job_dir / layout.SNAPSHOT).read_bytes())
    writer = JournalWriter(attempt / layout.JOURNAL)
    for record in _records(notebook.blank_notebook(snapshot)):
        writer.append({"t": time.time(), **record})
        if stop_in_first and record["k"] == "output":
            break
    writer.close()


def _records(prepared: dict[str, Any]) -> Iterator[Record]:
    code = [i for i, cell in enumerate(prepared["cells"]) if cell["cell_type"] == "code"]
    yield {"k": "prepared", "notebook": prepared, "cells_total": len(code)}
    for count, i in enumerate(code, start=1):
        text = "".join(prepared["cells"][i]["source"])
        output = {"output_type": "stream", "name": "stdout", "text": text}
        yield {"k": "cell_start", "i": i}
        yield {"k": "output", "i": i, "output": output}
        yield {"k": "cell_end", "i": i, "ok": True, "execution_count": count}


def _end(job_dir: Path, attempt: Path, *, cancelled: bool) -> None:
    """Write result and outcome; no result where nothing ran."""
    ran = journal.journal_size(attempt / layout.JOURNAL) > 0
    written = write_result(job_dir, attempt) if ran else WrittenResult(None, Progress())
    outcome = Outcome(
        state="failed" if cancelled else "succeeded",
        reason="Terminated" if cancelled else None,
        message="The run was told to stop." if cancelled else None,
        exit_code=None if cancelled else 0,
        cells={"done": written.progress.cells_done, "total": written.progress.cells_total},
        started=times.now() if ran else None,
        finished=times.now(),
        usage={},
        result_sha256=written.sha256,
    )
    write_outcome(attempt, outcome)
