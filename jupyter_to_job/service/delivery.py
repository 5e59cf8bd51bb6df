"""Delivery: the result becomes a new notebook in the workspace, exactly once.

`publication` publishes, for every process that delivers. The first one wins; the others notice.
Here is what a process does that has the exchange: the dispatcher, and a gateway for its clients.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any, BinaryIO

from job_runner.protocol import layout
from job_runner.protocol.result.result import write_result

from ..domain.errors import Conflict, Damaged
from ..domain.job import DeliveryState, Job
from ..domain.state import delivered_attempt
from ..exchange import FileExchange
from ..exchange.pieces import writing
from ..exchange.records import DeliveryRecord, HeldRecord, PublishedRecord
from ..workspace import Published, Workspace, open_regular
from ..workspace.publishing.artifacts import scan_artifacts
from .port import Jobs
from .publication import Deliverable, Result, publish_job, sign
from .reading.attempts import read_attempts


def deliver_if_pulling(jobs: Jobs, job: Job) -> Job:
    """Deliver an ended job where only this process reaches the workspace; return the job.

    One that is held because its notebook is another workspace's stays as it is.
    """
    if not is_to_be_pulled(jobs, job):
        return job
    try:
        return jobs.deliver(job.name)
    except Conflict:
        if job.delivery.state is not DeliveryState.HELD:
            raise
        return job


def is_to_be_pulled(jobs: Jobs, job: Job) -> bool:
    """Tell whether a job has ended that this process may deliver. One that is held is tried anew:
    its folder may be writable by now."""
    is_open = job.delivery.state in (DeliveryState.PENDING, DeliveryState.HELD)
    return jobs.pulls and job.state.final and is_open


def find_delivered_attempt(exchange: FileExchange, name: str) -> int | None:
    """Return the number of the attempt whose result is the job's, or None while none has one."""
    attempt = delivered_attempt(read_attempts(exchange, name))
    return attempt.number if attempt else None


def find_deliverable(exchange: FileExchange, name: str) -> Deliverable | None:
    """Return what is to be published of a job; None if there is nothing, or nothing any more.

    Raises NotFound and Damaged.
    """
    if exchange.has(name, layout.DELIVERY) or exchange.has(name, layout.DELETE):
        return None
    number = find_delivered_attempt(exchange, name)
    outcome = None if number is None else exchange.outcome(name, number)
    if number is None or outcome is None or outcome.result_sha256 is None:
        return None
    request, manifest = exchange.request(name), outcome.artifacts
    if manifest is None:
        attempt = layout.attempt_dir(exchange.directory(name), number)
        manifest = scan_artifacts(attempt / layout.ARTIFACTS)
    return Deliverable(
        name=name,
        notebook=request.notebook,
        output=request.output,
        attempt=number,
        sha256=outcome.result_sha256,
        artifacts=manifest,
        published=_published_before(exchange, name),
    )


def deliver(exchange: FileExchange, name: str) -> bool:
    """Publish the job's result from this host; True once it is published, by any process.

    Where the folder cannot be written the reason is kept (`held`), and a later call tries again.
    """
    if exchange.has(name, layout.DELIVERY):
        return True
    deliverable = find_deliverable(exchange, name)
    if deliverable is None:
        return False
    request = exchange.request(name)
    workspace = Workspace(Path(request.workspace), [Path(root) for root in request.roots])
    files = _AttemptFiles(exchange, deliverable)
    record = publish_job(deliverable, workspace, files, sign=sign)
    if isinstance(record, HeldRecord):
        hold(exchange, name, record)
        return False
    exchange.write_once(name, layout.DELIVERY, document_of(record))
    return True


def hold(exchange: FileExchange, name: str, record: HeldRecord) -> bool:
    """Record why the last try to deliver a job failed, in place of the one before.

    False, and nothing is written, if it is delivered after all. Raises NotFound.
    """
    if exchange.has(name, layout.DELIVERY):
        return False
    exchange.write(name, layout.HELD, document_of(record))
    return True


def document_of(record: PublishedRecord | DeliveryRecord | HeldRecord) -> dict[str, Any]:
    """Return a document of a delivery: without fields that say nothing."""
    return {name: value for name, value in asdict(record).items() if value}


class _AttemptFiles:
    """Implements `ResultFiles` on an exchange in files.

    A damaged or missing result is put together again from the journal.
    """

    def __init__(self, exchange: FileExchange, deliverable: Deliverable) -> None:
        self._exchange = exchange
        self._name = deliverable.name
        self._sha256 = deliverable.sha256
        self._attempt = layout.attempt_dir(exchange.directory(self._name), deliverable.attempt)
        self._artifacts = self._attempt / layout.ARTIFACTS
        self.artifacts_at = f"in {self._artifacts}"

    def results(self) -> Iterator[Result]:
        """See `ResultFiles`."""
        path = f"{self._attempt.name}/{layout.RESULT}"
        content = None
        with contextlib.suppress(Damaged):
            content = self._exchange.open(self._name, path)
        if content is not None:
            yield Result(content, self._sha256)
        with writing(self._name):
            folded = write_result(self._attempt.parent, self._attempt)
        content = self._exchange.open(self._name, path)
        if folded.sha256 is None or content is None:
            message = f"The result of {self._name} is damaged, and so is its journal."
            raise Damaged(message, "Run it again.")
        message = ""
        if folded.sha256 != self._sha256:
            message = (
                "The result was damaged. It was put together from the journal: parts may be lost."
            )
        yield Result(content, None, message)

    def artifact(self, path: str) -> BinaryIO:
        """See `ResultFiles`."""
        return open_regular(str(self._artifacts / path), path)

    def note_published(self, published: Published) -> None:
        """See `ResultFiles`."""
        record = PublishedRecord(published.path, published.sha256)
        self._exchange.write_once(self._name, layout.PUBLISHED, document_of(record))


def _published_before(exchange: FileExchange, name: str) -> Published | None:
    """Return the notebook that an earlier try published."""
    with contextlib.suppress(Damaged):
        record = exchange.record(name, layout.PUBLISHED, PublishedRecord)
        if record is not None:
            return Published(record.path, record.sha256)
    return None
