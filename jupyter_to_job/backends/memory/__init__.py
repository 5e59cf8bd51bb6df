"""The smallest backend, for tests of the service: it runs no code at all.

Every code cell "prints" its own source. Attempts, journals and outcomes are real, so the service
cannot tell the difference.
"""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal
from operator import attrgetter
from pathlib import Path

from job_runner.protocol import layout, liveness, times
from job_runner.protocol.journal.journal import JournalWriter, Record
from job_runner.protocol.outcome import Outcome, write_outcome
from job_runner.protocol.result import notebook
from job_runner.protocol.result.result import write_result

from ...domain.state import Placement
from ...exchange import FileExchange, Request


class MemoryBackend:
    """Implements `backends.port.Backend`. A job has run when `notify` returns."""

    name = "memory"
    has_queue = True

    def __init__(self, exchange: FileExchange) -> None:
        self._exchange = exchange

    def admit(self, demand: Mapping[str, Decimal]) -> None:
        """See the port: everything fits."""

    def notify(self, *jobs: str) -> None:
        """See the port."""
        for directory in map(self._exchange.directory, jobs):
            with contextlib.suppress(liveness.AttemptExists):
                claim = liveness.claim_attempt(directory, 1)
                write_journal(claim.directory, records_of(directory))
                _end(directory, claim.directory)
                claim.release()

    def alive(self, job: str, attempt: Path) -> bool:  # noqa: ARG002 - its lock is enough
        """See the port."""
        return liveness.is_alive(attempt)

    def queue_status(self, waiting: Mapping[str, Request]) -> Mapping[str, Placement]:
        """See the port: jobs wait by priority, then in order of submission."""
        queue = sorted(waiting.values(), key=attrgetter("queue_key"))
        return {r.name: Placement(position=place) for place, r in enumerate(queue, start=1)}

    def resources(self) -> None:
        """See the port: no resource is limited."""


def records_of(job_dir: Path) -> Iterator[Record]:
    """Yield the records of a run in which each code cell prints its source."""
    snapshot = json.loads((job_dir / layout.SNAPSHOT).read_bytes())
    prepared = notebook.blank_notebook(snapshot)
    code = [i for i, cell in enumerate(prepared["cells"]) if cell["cell_type"] == "code"]
    yield {"k": "prepared", "notebook": prepared, "cells_total": len(code)}
    for count, i in enumerate(code, start=1):
        text = "".join(prepared["cells"][i]["source"])
        output = {"output_type": "stream", "name": "stdout", "text": text}
        yield {"k": "cell_start", "i": i}
        yield {"k": "output", "i": i, "output": output}
        yield {"k": "cell_end", "i": i, "ok": True, "execution_count": count}


def write_journal(attempt: Path, records: Iterable[Record]) -> None:
    """Append records to an attempt's journal, with the present time."""
    writer = JournalWriter(attempt / layout.JOURNAL)
    for record in records:
        writer.append({"t": time.time(), **record})
    writer.close()


def _end(job_dir: Path, attempt: Path) -> None:
    """Write result and outcome."""
    written = write_result(job_dir, attempt)
    outcome = Outcome(
        state="succeeded",
        reason=None,
        message=None,
        exit_code=0,
        cells={"done": written.progress.cells_done, "total": written.progress.cells_total},
        started=times.now(),
        finished=times.now(),
        usage={},
        result_sha256=written.sha256,
        metrics=written.metrics,
    )
    write_outcome(attempt, outcome)
