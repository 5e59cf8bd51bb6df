"""Delivery: the result becomes a new notebook in the workspace, exactly once.

The same functions serve the dispatcher, a dev pod that pulls, and the courier. The first process
that publishes wins; the others notice.
"""

from __future__ import annotations

import contextlib
from dataclasses import asdict
from pathlib import Path
from typing import Any, BinaryIO

from job_runner.protocol import layout, times
from job_runner.protocol.outcome import Outcome
from job_runner.protocol.result.result import write_result

from ..domain.errors import Damaged, TooLarge
from ..domain.job import DeliveryState, Job
from ..domain.state import delivered_attempt
from ..exchange import FileExchange, Request
from ..exchange.pieces import writing
from ..exchange.records import HeldRecord
from ..workspace import CannotPublish, Published, Workspace, publish
from ..workspace.publishing.artifacts import find_artifacts, publish_artifacts
from ..workspace.publishing.sign import sign
from .port import Jobs
from .reading.attempts import read_attempts

MAX_LISTED = 5
"""Names of lost files in a message; the others are counted."""


def publish_result(
    request: Request, content: BinaryIO, workspace: Workspace, sha256: str | None = None
) -> Published:
    """Write the result into `workspace`, and have it signed. Raises what `publish` does."""
    published = publish(workspace, request.notebook, request.output, request.name, content, sha256)
    sign(workspace.root / published.path, published.sha256)
    return published


def deliver_if_pulling(jobs: Jobs, job: Job) -> Job:
    """Deliver an ended job where only this process reaches the workspace; return the job."""
    is_due = jobs.pulls and job.state.final and job.delivery.state is DeliveryState.PENDING
    return jobs.deliver(job.name) if is_due else job


def record_of(published: Published) -> dict[str, Any]:
    """Return delivery.json."""
    return {"path": published.path, "sha256": published.sha256, "time": times.now()}


def find_delivered_attempt(exchange: FileExchange, name: str) -> int | None:
    """Return the number of the attempt whose result is the job's, or None while none has one."""
    attempt = delivered_attempt(read_attempts(exchange, name))
    return attempt.number if attempt else None


def deliver(exchange: FileExchange, name: str) -> bool:
    """Publish the job's result from this host; True once it is published, by any process.

    Where the folder cannot be written the reason is kept (`held`), and a later call tries again.
    Artifacts follow the notebook. A later call leaves a published notebook alone: its owner may be
    editing it.
    """
    if exchange.has(name, layout.DELIVERY):
        return True
    number = find_delivered_attempt(exchange, name)
    request = exchange.request(name)
    outcome = None if number is None else exchange.outcome(name, number)
    if number is None or outcome is None or exchange.has(name, layout.DELETE):
        return False
    attempt = layout.attempt_dir(exchange.directory(name), number)
    workspace = Workspace(Path(request.workspace), [Path(root) for root in request.roots])
    published, messages = _published_before(exchange, name), []
    try:
        if published is None:
            published, message = _publish(exchange, request, attempt, outcome, workspace)
            messages.append(message)
        artifacts, message = _publish_artifacts(request, attempt, outcome, workspace, published)
        messages.append(message)
    except (CannotPublish, Damaged) as error:
        document = {"message": str(error)}
        if published is not None:
            message = f"{published.path} is there, but not what the run created: {error}"
            document = {"message": message, **asdict(published)}
        exchange.write(name, layout.HELD, document)
        return False
    delivery = record_of(published)
    if artifacts:
        delivery["artifacts"] = artifacts
    if text := " ".join(filter(None, messages)):
        delivery["message"] = text
    exchange.write_once(name, layout.DELIVERY, delivery)
    return True


def _publish(
    exchange: FileExchange, request: Request, attempt: Path, outcome: Outcome, workspace: Workspace
) -> tuple[Published, str]:
    """Publish an attempt's result, and tell what is wrong with it, if anything.

    A damaged or missing one is put together again from the journal. Raises CannotPublish, Damaged.
    """
    path = f"{attempt.name}/{layout.RESULT}"
    with contextlib.suppress(Damaged):
        content = exchange.open(request.name, path)
        if content is not None:
            with content:
                return publish_result(request, content, workspace, outcome.result_sha256), ""
    with writing(request.name):
        folded = write_result(exchange.directory(request.name), attempt)
    content = exchange.open(request.name, path)
    if folded.sha256 is None or content is None:
        message = f"The result of {request.name} is damaged, and so is its journal."
        raise Damaged(message, "Run it again with `jupyter-to-job rerun`.")
    message = ""
    if folded.sha256 != outcome.result_sha256:
        message = "The result was damaged. It was put together from the journal: parts may be lost."
    with content:
        return publish_result(request, content, workspace), message


def _published_before(exchange: FileExchange, name: str) -> Published | None:
    """Return the notebook that an earlier try published before its artifacts were held."""
    with contextlib.suppress(Damaged):
        held = exchange.record(name, layout.HELD, HeldRecord)
        if held is not None and held.path is not None and held.sha256 is not None:
            return Published(held.path, held.sha256)
    return None


def _publish_artifacts(
    request: Request, attempt: Path, outcome: Outcome, workspace: Workspace, published: Published
) -> tuple[list[str], str]:
    """Publish the files that the run created; return their paths, and tell what is missing."""
    folder = attempt / layout.ARTIFACTS
    try:
        artifacts = find_artifacts(folder, request.notebook, outcome.artifacts)
    except TooLarge as error:  # trying again would not help
        return [], str(error)
    checked = [(artifact, artifact.is_intact()) for artifact in artifacts]
    intact = [artifact for artifact, is_intact in checked if is_intact]
    lost = [artifact.target for artifact, is_intact in checked if not is_intact]
    message = ""
    if lost:
        more = f" and {len(lost) - MAX_LISTED} more" if len(lost) > MAX_LISTED else ""
        message = (
            f"Of {len(artifacts)} files that the run created {len(lost)} are damaged or missing in "
            f"the exchange, and were not copied: {', '.join(lost[:MAX_LISTED])}{more}."
        )
    return list(publish_artifacts(workspace, published.path, request.name, intact)), message
