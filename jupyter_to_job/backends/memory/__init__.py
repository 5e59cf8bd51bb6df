"""The smallest backend, for tests of everything above the port: it runs no code at all.

Every cell that is code "prints" its own source. Attempts, journals and outcomes are the real ones,
so that the service cannot tell the difference.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

from job_runner.protocol import documents, layout, liveness
from job_runner.protocol.fold import fold
from job_runner.protocol.journal import JournalWriter
from job_runner.protocol.outcome import Outcome, write_outcome

from ...domain import times
from ...domain.state import Placement
from ...exchange import FileExchange, Request


class MemoryBackend:
    """Implements `backends.port.Backend`; `ended` is told the name of a job that has ended."""

    name = "memory"

    def __init__(self, exchange: FileExchange, ended: Callable[[str], object] = str) -> None:
        self._exchange = exchange
        self._ended = ended

    def admit(self, demand: Mapping[str, Decimal], kernel: str | None) -> None:
        """See the port: everything fits."""

    def changed(self, job: str) -> None:
        """See the port: the job has run when this returns."""
        directory = self._exchange.directory(job)
        with contextlib.suppress(liveness.AttemptExists):
            claim = liveness.claim_attempt(directory, 1)
            _run(directory, claim.directory)
            claim.release()
            self._ended(job)

    def alive(self, job: str, attempt: Path) -> bool:  # noqa: ARG002
        """See the port."""
        return liveness.is_alive(attempt)

    def placements(self, waiting: Sequence[Request]) -> Mapping[str, Placement]:  # noqa: ARG002
        """See the port: nothing ever waits."""
        return {}


def _run(job_dir: Path, attempt: Path) -> None:
    """Journal a run in which each code cell prints its source, and fold it."""
    notebook = json.loads((job_dir / layout.SNAPSHOT).read_bytes())
    cancelled = (job_dir / layout.CANCEL).exists()
    records = [] if cancelled else list(_records(notebook))
    writer = JournalWriter(attempt / layout.JOURNAL)
    for record in records:
        writer.append(record)
    writer.close()
    result = json.dumps(fold(notebook, records)).encode()
    documents.write_bytes(attempt / layout.RESULT, result)
    moment, done = times.now(), sum(r["k"] == "cell_end" for r in records)
    outcome = Outcome(
        state="failed" if cancelled else "succeeded",
        reason="Terminated" if cancelled else None,
        message=None,
        exit_code=143 if cancelled else 0,
        cells={"done": done, "total": done},
        started=moment,
        finished=moment,
        usage={},
        result_sha256=hashlib.sha256(result).hexdigest(),
    )
    write_outcome(attempt, outcome)


def _records(notebook: dict[str, Any]) -> Any:
    code = [i for i, cell in enumerate(notebook["cells"]) if cell["cell_type"] == "code"]
    for cell in notebook["cells"]:
        cell["metadata"]["papermill"] = {}
    notebook["metadata"]["papermill"] = {}
    yield {"k": "prepared", "notebook": notebook, "cells_total": len(code)}
    for count, i in enumerate(code, start=1):
        yield {"k": "cell_start", "i": i, "time": times.now()}
        text = "".join(notebook["cells"][i]["source"])
        output = {"output_type": "stream", "name": "stdout", "text": text}
        yield {"k": "output", "i": i, "output": output}
        end = {"seconds": 0.0, "ok": True, "execution_count": count}
        yield {"k": "cell_end", "i": i, "time": times.now(), **end}
