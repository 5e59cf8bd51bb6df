"""Delivery: the result becomes a new notebook in the workspace, exactly once.

The same functions serve the dispatcher, a dev pod that pulls, and the courier. The first process
that publishes wins; the others notice.
"""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any, BinaryIO

from job_runner.protocol import layout

from ..domain import times
from ..domain.errors import Damaged, TooLarge
from ..domain.job import DeliveryState, Job, State
from ..domain.state import AttemptStatus, Ended, delivered_attempt
from ..exchange import FileExchange, Request
from ..workspace import CannotPublish, Published, Workspace, publish
from ..workspace.publishing.artifacts import find_artifacts, publish_artifacts
from ..workspace.publishing.sign import sign
from .port import Jobs
from .reading.view import has_result


def publish_result(request: Request, content: BinaryIO, workspace: Workspace) -> Published:
    """Write the result into `workspace`, and have it signed. Raises CannotPublish."""
    published = publish(workspace, request.notebook, request.output, request.name, content)
    sign(workspace.root / published.path)
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
    statuses = []
    for number in layout.attempts(exchange.directory(name)):
        outcome = exchange.outcome(name, number)
        if outcome is not None and has_result(outcome):
            ended = Ended(State(outcome.state), outcome.reason, None, outcome.finished)
            statuses.append(AttemptStatus(number, alive=False, ended=ended))
    winner = delivered_attempt(tuple(statuses))
    return winner.number if winner else None


def deliver(exchange: FileExchange, name: str) -> bool:
    """Publish the job's result from this host; True once it is published, by any process.

    Where the folder cannot be written the reason is kept (`held`), and a later call tries again.
    Artifacts follow the notebook. A later call leaves a published notebook alone: its owner may be
    editing it.
    """
    if exchange.document(name, layout.DELIVERY) is not None:
        return True
    number = find_delivered_attempt(exchange, name)
    request = exchange.request(name)
    if number is None or exchange.document(name, layout.DELETE) is not None:
        return False
    attempt = layout.attempt_dir(exchange.directory(name), number)
    workspace = Workspace(Path(request.workspace), [Path(root) for root in request.roots])
    held = exchange.document(name, layout.HELD) or {}
    # An earlier try may have published the notebook before its artifacts were held.
    published = Published(held["path"], held["sha256"]) if "path" in held else None
    try:
        if published is None:
            with _opened_result(exchange, name, attempt) as content:
                published = publish_result(request, content, workspace)
        artifacts = _publish_artifacts(request, attempt / layout.ARTIFACTS, workspace, published)
    except CannotPublish as error:
        document = {"message": str(error)}
        if published is not None:
            message = f"{published.path} is there, but not what the run created: {error}"
            document = {"message": message, **asdict(published)}
        exchange.write(name, layout.HELD, document)
        return False
    exchange.write_once(name, layout.DELIVERY, record_of(published) | artifacts)
    return True


def _opened_result(exchange: FileExchange, name: str, attempt: Path) -> BinaryIO:
    """Open an attempt's result. Raises NotFound if the job was removed, Damaged if only that is."""
    try:
        return (attempt / layout.RESULT).open("rb")
    except OSError as error:
        exchange.directory(name)
        message = f"The result of {name} cannot be read: {error.strerror}."
        raise Damaged(message, "Run it again with `jupyter-to-job rerun`.") from error


def _publish_artifacts(
    request: Request, folder: Path, workspace: Workspace, published: Published
) -> dict[str, Any]:
    """Publish the files that the run created; return their part of delivery.json."""
    try:
        artifacts = find_artifacts(folder, request.notebook)
    except TooLarge as error:  # trying again would not help
        return {"artifacts": [], "message": str(error)}
    paths = publish_artifacts(workspace, published.path, request.name, artifacts)
    return {"artifacts": list(paths)} if paths else {}
