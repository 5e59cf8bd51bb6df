"""Delivery: the result becomes a new notebook in the workspace, exactly once.

The same functions serve the dispatcher, a dev pod that pulls, and the courier: whoever is first
wins, the others notice.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from job_runner.protocol import documents, layout
from job_runner.protocol.outcome import read_outcome

from ..domain import times
from ..domain.job import State
from ..domain.state import AttemptSeen, Ended, decisive
from ..exchange import FileExchange, Request
from ..workspace import Published, publish
from ..workspace.publish import CannotPublish
from .view import HELD, has_result


def publish_result(request: Request, data: bytes, workspace: Path) -> Published:
    """Write the result into `workspace`. Raises CannotPublish."""
    return publish(workspace, request.notebook, request.output, request.name, data)


def record_of(published: Published) -> dict[str, Any]:
    """Return delivery.json."""
    return {"path": published.path, "sha256": published.sha256, "time": times.now()}


def delivered_attempt(exchange: FileExchange, name: str) -> int | None:
    """Return the attempt whose result is the job's, or None while there is none with a result."""
    directory = exchange.directory(name)
    seen = []
    for number in layout.attempts(directory):
        outcome = read_outcome(layout.attempt_dir(directory, number))
        if outcome is not None and has_result(outcome):
            ended = Ended(State(outcome.state), outcome.reason, None, outcome.finished)
            seen.append(AttemptSeen(number, alive=False, ended=ended))
    winner = decisive(tuple(seen))
    return winner.number if winner else None


def deliver(exchange: FileExchange, name: str) -> bool:
    """Publish the job's result from this host; True once it is published, whoever did it.

    Where the folder cannot be written the reason is kept (`held`), and a later call tries again.
    """
    if exchange.document(name, layout.DELIVERY) is not None:
        return True
    number = delivered_attempt(exchange, name)
    request = exchange.request(name)
    if number is None or exchange.document(name, layout.DELETE) is not None:
        return False
    result = layout.attempt_dir(exchange.directory(name), number) / layout.RESULT
    try:
        published = publish_result(request, result.read_bytes(), Path(request.workspace))
    except CannotPublish as error:
        documents.write_document(exchange.directory(name) / HELD, {"message": str(error)})
        return False
    exchange.write_once(name, layout.DELIVERY, record_of(published))
    return True
