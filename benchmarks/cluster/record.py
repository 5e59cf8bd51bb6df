"""Fills an exchange: jobs that were delivered long ago, and jobs that run."""

from __future__ import annotations

import hashlib
import os
from dataclasses import astuple, dataclass
from datetime import datetime, timedelta, timezone
from pathlib import Path
from unittest import mock

from job_runner.protocol import documents, layout, times
from job_runner.protocol.journal import journal
from job_runner.protocol.outcome import CellCounts, Outcome, write_outcome
from jupyter_to_job.domain.names import job_name
from jupyter_to_job.exchange import FileExchange, Request

from ..runner.measure import notebook

SNAPSHOT = notebook(["print('epoch')"] * 20).encode()
FIRST_SEGMENT = f"{layout.JOURNAL}/00000001.jsonl"
NAMESPACE = "research"
_USAGE = {"cpu_seconds": 12.5, "memory_peak": 512e6}


@dataclass(frozen=True)
class Crowd:
    """How many event streams are open, how many jobs run, how many are kept, and whose they are."""

    streams: int
    running: int
    kept: int
    owners: int

    def quarter(self) -> Crowd:
        """Return a crowd of a quarter of the size."""
        return Crowd(*(max(1, number // 4) for number in astuple(self)))

    def owner(self, number: int) -> str:
        """Return the owner of the stream, or of the job, of this number."""
        return f"{NAMESPACE}/user-{number % self.owners:03}"


def fill(root: Path, crowd: Crowd) -> list[str]:
    """Make the exchange; return the names of the running jobs. They are dealt out in turn."""
    exchange = FileExchange(root, is_private=False)
    exchange.prepare()
    with mock.patch.object(os, "fsync"):  # what is made in vain after a power cut is made again
        for number in range(crowd.kept):
            _keep(exchange, crowd.owner(number), number)
        return [_start(exchange, crowd.owner(number)) for number in range(crowd.running)]


def claim(name: str) -> bytes:
    """Return the document by which the agent of a job claims its attempt."""
    return documents.encode({"pod": f"pod-of-{name}"})


def _add(exchange: FileExchange, owner: str, age: timedelta) -> Path:
    path = f"home/{owner.partition('/')[2]}/experiments/train.ipynb"
    request = Request(
        name=job_name(path, owner=owner),
        owner=owner,
        notebook=path,
        source=f"/{path}",
        workspace="/",
        flavor="gpu-1",
        device="t4",
        flavor_spec={"cpu": 4, "memory": "16Gi"},
        device_spec={"resource": "nvidia.com/gpu"},
        demand={"cpu": "4", "memory": str(16 << 30), "nvidia.com/gpu": "1"},
        snapshot_sha256=hashlib.sha256(SNAPSHOT).hexdigest(),
        submitted=times.rfc3339(datetime.now(timezone.utc) - age),
        backend="kubernetes",
        digest="d",
        parameters={"epochs": 100, "rate": 0.001, "data": "s3://bucket/data"},
    )
    assert exchange.create(request, SNAPSHOT, origin={"namespace": NAMESPACE, "pod": "dev"})
    return exchange.directory(request.name)


def _keep(exchange: FileExchange, owner: str, age: int) -> None:
    directory = _add(exchange, owner, timedelta(hours=1, minutes=age))
    attempt = layout.attempt_dir(directory, 1)
    (attempt / layout.JOURNAL).mkdir(parents=True)
    documents.write_bytes(attempt / layout.RUNNER, claim(directory.name))
    (attempt / FIRST_SEGMENT).write_bytes(journal.encode({"k": "start", "t": 1.0}))
    documents.write_bytes(attempt / layout.RESULT, SNAPSHOT)
    digest, moment = hashlib.sha256(SNAPSHOT).hexdigest(), times.now()
    cells = CellCounts(done=20, total=20)
    write_outcome(
        attempt, Outcome("succeeded", None, None, 0, cells, moment, moment, _USAGE, digest)
    )
    record = {"path": f"home/{directory.name}.ipynb", "sha256": digest, "time": moment}
    exchange.write_once(directory.name, layout.DELIVERY, record)


def _start(exchange: FileExchange, owner: str) -> str:
    directory = _add(exchange, owner, timedelta(0))
    attempt = layout.attempt_dir(directory, 1)
    attempt.mkdir()
    documents.write_bytes(attempt / layout.RUNNER, claim(directory.name))
    job = {"namespace": NAMESPACE, "name": directory.name, "uid": f"job-of-{directory.name}"}
    exchange.write_once(directory.name, layout.JOB, job)
    return directory.name
