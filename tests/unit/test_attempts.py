"""What readers see of a job with several attempts, or with one that cannot be read."""

from __future__ import annotations

from pathlib import Path

import pytest

from job_runner.protocol import layout, liveness
from job_runner.protocol.journal import journal
from job_runner.protocol.progress import Progress
from jupyter_to_job.backends.memory import MemoryBackend
from jupyter_to_job.domain.errors import Damaged, NotFound
from jupyter_to_job.domain.job import DeliveryState, State
from jupyter_to_job.exchange import FileExchange
from jupyter_to_job.flavors import load_catalog
from jupyter_to_job.service.jobs import JobService, ServiceContext
from jupyter_to_job.service.submitting.submission import Caller

from . import exchanges

JOB = "train-abcd2345"
CELL: dict[str, object] = {
    "cell_type": "code",
    "metadata": {},
    "source": "1",
    "outputs": [],
    "execution_count": None,
}
PREPARED = {
    "k": "prepared", "t": 2.0, "cells_total": 3,
    "notebook": {"nbformat": 4, "nbformat_minor": 4, "metadata": {}, "cells": [CELL] * 3},
}  # fmt: skip


@pytest.fixture
def exchange(tmp_path: Path) -> FileExchange:
    return FileExchange(tmp_path / "exchange")


@pytest.fixture
def service(exchange: FileExchange) -> JobService:
    return JobService(
        ServiceContext(exchange, MemoryBackend(exchange), load_catalog), Caller("me", "/w")
    )


def test_while_the_second_attempt_runs_it_is_the_one_that_is_shown(
    exchange: FileExchange, service: JobService
) -> None:
    """The first one's end, with its result, is not the job's until the second has ended, too."""
    directory = exchanges.add(exchange, JOB)
    exchanges.end(directory, "failed")
    claim = liveness.claim_attempt(directory, 2)
    writer = journal.JournalWriter(claim.directory / layout.JOURNAL)
    writer.append(PREPARED)
    writer.append({"k": "cell_start", "t": 3.0, "i": 0})
    writer.close()

    job = service.get(JOB)
    assert (job.state, job.progress) == (State.RUNNING, Progress(0, 3, 0, 3))
    assert (job.started, job.finished) == ("1970-01-01T00:00:02.000Z", None)
    claim.release()
    job = service.get(JOB)
    assert (job.state, job.reason, job.finished) == (State.FAILED, "Lost", None)
    assert job.delivery.state is DeliveryState.PENDING


def test_a_damaged_outcome(exchange: FileExchange, service: JobService) -> None:
    directory = exchanges.add(exchange, JOB)
    exchanges.end(directory)
    (directory / "attempt-1" / layout.OUTCOME).write_text("{")
    (job,) = service.find().jobs
    assert (job.state, job.reason) == (State.FAILED, "Damaged")
    assert "outcome.json" in (job.message or "") and service.get(JOB) == job
    assert service.logs(JOB).text == "" and service.journal(JOB).records
    for act in (service.notebook, service.deliver):
        with pytest.raises(Damaged, match=r"outcome\.json"):
            act(JOB)


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("delivery.json", '{"v": 1}'),
        ("held.json", '{"v": 1}'),
        ("cancel.json", '{"v": 1, "who": "me"}'),
        ("cancel.json", "[" * 5000),
        ("attempt-1/outcome.json", '{"v": 1, "state": "succeeded"}'),
    ],
)
def test_a_document_that_makes_no_sense_hides_no_job(
    exchange: FileExchange, service: JobService, path: str, text: str
) -> None:
    for name in (JOB, "other-abcd2345"):
        exchanges.end(exchanges.add(exchange, name))
    (exchange.directory(JOB) / path).write_text(text)
    jobs = {job.name: job for job in service.find().jobs}
    assert jobs.keys() == {JOB, "other-abcd2345"} and service.get(JOB) == jobs[JOB]
    told = jobs[JOB].message if "outcome" in path else jobs[JOB].delivery.message
    assert "cancel" in path or Path(path).name in (told or "")


def test_a_state_of_another_version(exchange: FileExchange, service: JobService) -> None:
    directory = exchanges.add(exchange, JOB)
    exchanges.end(directory, "paused")
    job = service.get(JOB)
    assert job.reason == "Damaged" and "paused" in (job.message or "")


def test_a_result_that_is_gone(exchange: FileExchange, service: JobService) -> None:
    directory = exchanges.add(exchange, JOB, workspace=str(exchange.root.parent))
    exchanges.end(directory)
    (directory / "attempt-1" / layout.RESULT).unlink()
    assert service.deliver(JOB).delivery.state is DeliveryState.DELIVERED  # folded anew


def test_removed_twice(exchange: FileExchange) -> None:
    exchanges.add(exchange, JOB)
    exchange.remove(JOB)
    with pytest.raises(NotFound):
        exchange.remove(JOB)
