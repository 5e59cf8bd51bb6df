"""Every route: which use case it is, and what it answers."""

from __future__ import annotations

import re
from collections.abc import Callable

from .. import __version__
from ..domain.errors import BadInput, JobsError, NotFound
from ..domain.job import State
from ..service.port import Jobs
from .bodies import changes, submission
from .errors import error_response
from .http import Request, Response

Handler = Callable[..., Response]
MAX_PAGE = 500


def handle(jobs: Jobs, request: Request) -> Response:
    """Answer one request; errors of our tree become responses, others are the edge's."""
    try:
        for method, pattern, handler in _ROUTES:
            match = re.fullmatch(pattern, request.path)
            if match and method == request.method:
                return handler(jobs, request, *match.groups())
        raise NotFound(f"There is no {request.method} {request.path}.")
    except JobsError as error:
        return error_response(error)


def action(request: Request) -> str:
    """Return what the authorizer is asked for: `read`, `write`, or `execute` to run code."""
    if request.method in ("GET", "HEAD"):
        return "read"
    runs = request.path == "jobs" or request.path.endswith("/rerun")
    return "execute" if request.method == "POST" and runs else "write"


def _flavors(jobs: Jobs, _request: Request) -> Response:
    return Response.json(200, jobs.flavors())


def _list(jobs: Jobs, request: Request) -> Response:
    limit = request.integer("limit", 50)
    if not 1 <= limit <= MAX_PAGE:
        raise BadInput(f"limit is from 1 to {MAX_PAGE}.")
    try:
        states = [State(s) for s in request.query.get("state", "").split(",") if s]
    except ValueError as error:
        raise BadInput(f"state: {error}.") from error
    page = jobs.find(states, limit, request.query.get("cursor"))
    return Response.json(200, {"jobs": [j.to_json() for j in page.jobs], "next": page.next})


def _submit(jobs: Jobs, request: Request) -> Response:
    asked = submission(request.json(), request.headers.get("Idempotency-Key"))
    job, created = jobs.submit(asked)
    return Response.json(201 if created else 200, job.to_json())


def _get(jobs: Jobs, _request: Request, name: str) -> Response:
    return Response.json(200, jobs.get(name).to_json())


def _delete(jobs: Jobs, _request: Request, name: str) -> Response:
    jobs.delete(name)
    return Response(204)


def _cancel(jobs: Jobs, _request: Request, name: str) -> Response:
    return Response.json(202, jobs.cancel(name).to_json())


def _deliver(jobs: Jobs, _request: Request, name: str) -> Response:
    return Response.json(200, jobs.deliver(name).to_json())


def _rerun(jobs: Jobs, request: Request, name: str) -> Response:
    asked = changes(request.json(), request.headers.get("Idempotency-Key"))
    return Response.json(201, jobs.rerun(name, asked).to_json())


def _preflight(jobs: Jobs, request: Request) -> Response:
    return Response.json(200, jobs.preflight(submission(request.json(), None)).to_json())


def _journal(jobs: Jobs, request: Request, name: str) -> Response:
    piece = jobs.journal(name, request.integer("offset", 0))
    return Response.json(200, {"records": piece.records, "next": piece.next, "end": piece.end})


def _logs(jobs: Jobs, request: Request, name: str) -> Response:
    piece = jobs.logs(name, request.integer("offset", 0))
    return Response.json(200, {"text": piece.text, "next": piece.next, "end": piece.end})


def _notebook(jobs: Jobs, _request: Request, name: str) -> Response:
    return Response(200, jobs.notebook(name), "application/x-ipynb+json")


def _health(jobs: Jobs, _request: Request) -> Response:
    health = {"status": "ok", "version": __version__, "backend": jobs.backend}
    return Response.json(200, health)


_JOB = r"jobs/([^/]+)"
_ROUTES: tuple[tuple[str, str, Handler], ...] = (
    ("GET", r"flavors", _flavors),
    ("GET", r"jobs", _list),
    ("POST", r"jobs", _submit),
    ("GET", _JOB, _get),
    ("DELETE", _JOB, _delete),
    ("POST", _JOB + r"/cancel", _cancel),
    ("POST", _JOB + r"/rerun", _rerun),
    ("POST", _JOB + r"/deliver", _deliver),
    ("GET", _JOB + r"/journal", _journal),
    ("GET", _JOB + r"/logs", _logs),
    ("GET", _JOB + r"/notebook", _notebook),
    ("POST", r"preflight", _preflight),
    ("GET", r"health", _health),
)
