"""Counts and logs the requests to the gateway."""

from __future__ import annotations

import logging

from tornado import web
from tornado.httputil import HTTPServerRequest

from .. import logs
from ..api import ApiRequest
from ..api.routes import ROUTES
from ..domain.names import is_job_name
from .metrics import Metrics

SLOW = 1.0
"""Seconds from which a request is logged, whatever it was."""
EVENTS = "events"
PROBES = ("health", "healthz", "readyz")
METHODS = ("GET", "HEAD", "POST", "PUT", "DELETE")
_PATTERNS = [pattern for _, pattern, _ in ROUTES]
_ROUTES = frozenset([*(pattern for pattern in _PATTERNS if "/" not in pattern), EVENTS, *PROBES])
_ACTIONS = frozenset(pattern.partition(")/")[2] for pattern in _PATTERNS) - {""}
_log = logging.getLogger(__name__)


def log_request(metrics: Metrics, handler: web.RequestHandler) -> None:
    """Count a request. Log it if it failed or was slow, and every other one but the regular ones.

    Agents append once a second, and probes ask for the health: they would fill the log. A query is
    not logged, for a client may put a token there.
    """
    status, request = handler.get_status(), handler.request
    seconds = request.request_time()
    method = request.method if request.method in METHODS else "other"
    route, job = route_and_job(request.path)
    if route != EVENTS:  # a stream is as long as somebody reads it
        metrics.http.labels(method, route, str(status)).observe(seconds)
    is_regular = (is_append(request) and status < 400) or (route in PROBES and status in (200, 503))
    if is_regular and seconds < SLOW:
        return
    level = logging.ERROR if status >= 500 else logging.WARNING if status >= 400 else logging.INFO
    fields = {"method": request.method, "path": request.path, "status": status}
    fields["duration_ms"] = round(seconds * 1000)
    line = f"{status} {request.method} {request.path} {seconds * 1000:.0f} ms"
    with logs.context(request_id=getattr(handler, "request_id", None), job=job):
        _log.log(level, "%s", line, extra={"fields": fields})


def route_and_job(path: str) -> tuple[str, str | None]:
    """Return the route of a path, of which there are few, and the job that it names, if any."""
    parts = path.removeprefix("/api").strip("/").split("/")
    match parts:
        case ["jobs", job] if is_job_name(job):
            return "jobs/{name}", job
        case ["jobs", job, action] if is_job_name(job) and action in _ACTIONS:
            return f"jobs/{{name}}/{action}", job
        case ["exchange", job, *_] if is_job_name(job):
            return "exchange/{job}", job
        case ["blobs", _]:
            return "blobs/{sha256}", None
        case ["submissions", _]:
            return "submissions/{key}", None
        case [route] if route in _ROUTES:
            return route, None
    return "other", None


def is_append(request: ApiRequest | HTTPServerRequest) -> bool:
    """Tell whether a request appends to a file: agents send one a second."""
    path = request.path.removeprefix("/api/")
    return request.method == "POST" and path.startswith("exchange/")
