"""What the reconciler shows of a job: by its documents, and by the pod that runs it."""

from __future__ import annotations

from pathlib import Path

import pytest

from job_runner.protocol import documents, layout
from jupyter_to_job.backends.kubernetes import PodRecord
from jupyter_to_job.controller.job_tracker import TrackedJob
from jupyter_to_job.controller.reconciling.job_files import read_job_files
from jupyter_to_job.controller.reconciling.next_step import JobObservation
from jupyter_to_job.controller.reconciling.tracked_jobs import tracked_job
from jupyter_to_job.domain.job import DeliveryState, State
from jupyter_to_job.domain.state import Placement
from jupyter_to_job.exchange import FileExchange
from jupyter_to_job.exchange.records import ClusterJob

from . import exchanges
from .test_next_step import PENDING, RUNNING

NAME = "train-abcdefgh"


@pytest.fixture
def exchange(tmp_path: Path) -> FileExchange:
    return FileExchange(tmp_path / "exchange")


def show(
    exchange: FileExchange, *pods: PodRecord, placement: Placement | None = None
) -> TrackedJob:
    files = read_job_files(exchange, NAME)
    assert files is not None
    job = ClusterJob("team", NAME, "job-1")
    observation = JobObservation(
        job=job, pods=pods, attempts=files.attempts, cancelled=files.cancelled
    )
    return tracked_job(files, observation, placement)


def claim(directory: Path, pod: str) -> None:
    (directory / "attempt-1").mkdir()
    documents.write_document_once(directory / "attempt-1" / layout.RUNNER, {"pod": pod})


def test_it_waits_with_a_reason(exchange: FileExchange) -> None:
    exchanges.add(exchange, NAME)
    seen = show(exchange, placement=Placement(reason="Unschedulable"))
    assert (seen.state, seen.reason) == (State.QUEUED, "Unschedulable")
    assert show(exchange, placement=Placement(starting=True)).state is State.STARTING


def test_it_runs_from_the_start_of_its_container(exchange: FileExchange) -> None:
    claim(exchanges.add(exchange, NAME), RUNNING.uid)
    assert show(exchange, PENDING).state is State.STARTING
    assert show(exchange, RUNNING).state is State.RUNNING


def test_from_its_end_to_its_delivery(exchange: FileExchange) -> None:
    directory = exchanges.add(exchange, NAME)
    exchanges.end(directory)
    ended = show(exchange)
    assert (ended.state, ended.delivery) == (State.SUCCEEDED, DeliveryState.PENDING)
    assert len(ended.outcomes) == 1
    assert ended.ended_at is not None
    documents.write_document(directory / layout.HELD, {"message": "The folder is full."})
    assert show(exchange).delivery is DeliveryState.HELD
    document = {"message": "Its pod is gone.", "failed": True}
    documents.write_document(directory / layout.HELD, document)
    assert show(exchange).delivery is DeliveryState.FAILED
    exchanges.deliver(directory)
    assert show(exchange).delivery is DeliveryState.DELIVERED


def test_a_damaged_word_on_the_delivery_holds_it(exchange: FileExchange) -> None:
    directory = exchanges.add(exchange, NAME)
    exchanges.end(directory)
    (directory / layout.HELD).write_text("{")
    assert show(exchange).delivery is DeliveryState.HELD


def test_where_nothing_ran_there_is_nothing_to_deliver(exchange: FileExchange) -> None:
    exchanges.end(exchanges.add(exchange, NAME), "failed", result=False)
    seen = show(exchange)
    assert (seen.state, seen.reason) == (State.FAILED, "RunnerMissing")
    assert seen.delivery is DeliveryState.NONE
