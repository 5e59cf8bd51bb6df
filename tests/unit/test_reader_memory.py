"""What a reader of jobs keeps in memory: the journals that still grow."""

from __future__ import annotations

from pathlib import Path

from job_runner.protocol import layout, liveness
from job_runner.protocol.journal.journal import JournalWriter
from job_runner.protocol.outcome import CellCounts, Outcome, write_outcome
from jupyter_to_job.domain.job import State
from jupyter_to_job.domain.state import Placement
from jupyter_to_job.exchange import FileExchange
from jupyter_to_job.service.reading.view import JobReader

from . import exchanges


def test_a_journal_is_forgotten_once_its_attempt_has_ended(tmp_path: Path) -> None:
    exchange = FileExchange(tmp_path)
    directory = exchanges.add(exchange, "train-abcdefgh")
    reader = JobReader(exchange, lambda *_: True)
    request = exchange.request(directory.name)
    claim = liveness.claim_attempt(directory, 1)
    writer = JournalWriter(claim.directory / layout.JOURNAL)
    writer.append({"k": "start", "t": 1.0, "v": 1, "kernel": "python3", "sockets": ""})
    writer.close()
    assert reader.job(request, Placement()).state is State.STARTING
    assert len(reader._followed) == 1
    cells = CellCounts(done=0, total=0)
    outcome = Outcome("succeeded", None, None, 0, cells, None, exchanges.ENDED, {}, None)
    write_outcome(claim.directory, outcome)
    claim.release()
    assert reader.job(request, Placement()).state is State.SUCCEEDED
    assert reader._followed == {}
