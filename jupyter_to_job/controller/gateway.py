"""The gateway's HTTP server: the REST API, blobs, files of the exchange, and events."""

from __future__ import annotations

import ssl
import sys
from dataclasses import replace
from functools import partial

from tornado import web

from job_runner.protocol.result.result import FoldLimits

from .. import __version__
from ..api import ApiRequest, ApiResponse, handle
from ..api.http import CHUNK
from ..api.routes import is_slow
from ..domain.errors import BadInput, JobsError, NotFound
from .callers.identity import AgentPod, DevPod, Identity
from .connection_limit import LimitedServer
from .events import EventsHandler
from .handler import GatewayContext, GatewayHandler
from .intake.blob_routes import handle_blob
from .intake.exchange_routes import claimed_attempt
from .readiness import OK
from .request_log import is_append, log_request

MAX_BUFFER = 1 << 20
"""Bytes of a request that wait in memory for a handler, at most."""
READER_LIMITS = FoldLimits(line=4 << 20, journal=16 << 20)
"""What readers in this process take into memory of the journal of a job that runs."""


def application(context: GatewayContext) -> web.Application:
    """Return the tornado application."""
    return web.Application(
        [
            (r"/api/events", EventsHandler, {"context": context}),
            (r"/api/(.*)", ApiHandler, {"context": context}),
            (r"/(healthz|readyz)", ProbeHandler, {"context": context}),
            (r".*", UnknownHandler, {"context": context}),
        ],
        log_function=partial(log_request, context.metrics),
    )


def http_server(context: GatewayContext, tls: ssl.SSLContext | None = None) -> LimitedServer:
    """Return the server: handlers decide how much of a body is read, and tornado holds little.

    With `tls` it speaks HTTPS only.
    """
    return LimitedServer(
        application(context),
        ssl_options=tls,
        max_body_size=sys.maxsize,
        max_buffer_size=MAX_BUFFER,
        chunk_size=CHUNK,
        idle_connection_timeout=context.intake.idle_timeout,
        body_timeout=context.intake.timeout + context.intake.idle_timeout,
    )


class ApiHandler(GatewayHandler):
    """All routes but the events."""

    def decode_argument(self, value: bytes, name: str | None = None) -> str:
        """Decode a path as Python does those of files: their names need not be UTF-8."""
        if name is None:
            return value.decode(errors="surrogateescape")
        return super().decode_argument(value, name)

    async def _admit(self) -> None:
        """Let everybody ask for the health, without a body."""
        if self.path_args != ["health"] or self.expects_body:
            await super()._admit()

    async def _handle(self, path: str) -> None:
        self.body_complete()
        if self.caller is None or self.body is None:
            health = {
                "status": "ok",
                "version": __version__,
                "backend": "kubernetes",
                "events": False,  # those are Jupyter Server's: the stream here is another one
            }
            await self.respond(ApiResponse.json(200, health))
            return
        upload = self.body.upload
        request = ApiRequest(
            method=self.request.method or "GET",
            path=path,
            query={name: self.get_query_argument(name) for name in self.request.query_arguments},
            headers=self.request.headers,
            body=upload.data,
            upload=upload,
        )
        try:
            await self._admit_run(request)
            response, job = await self._run(self.caller, request)
        except JobsError as error:
            self.refuse(error)
            return
        if response.status < 300:
            self.body.keep()
        self.body.close()
        if job and is_append(request):
            self.context.feed.mark(job)  # the reconciler has nothing to do
        elif job:
            self.context.on_change(job)
        await self.respond(response)

    async def _run(self, caller: Identity, request: ApiRequest) -> tuple[ApiResponse, str]:
        """Handle a request in the pool for it, a large one in its owner's turn."""
        feed = self.context.feed
        is_watched = isinstance(caller, AgentPod) and feed.is_watched(caller.job)
        if is_quick(request):
            return await self.in_pool(dispatch, self.context, caller, request, is_watched)
        async with self.context.intake.turn(caller):
            return await self.in_bulk(dispatch, self.context, caller, request, is_watched)

    async def _admit_run(self, request: ApiRequest) -> None:
        """Have the cluster asked before an agent claims an attempt. No thread waits for it."""
        attempt = claimed_attempt(request)
        if attempt and isinstance(self.caller, AgentPod) and self.context.runs is not None:
            await self.context.runs.admit(self.caller.job, attempt)

    get = head = post = put = delete = _handle


class ProbeHandler(GatewayHandler):
    """What the port for operations answers, too: for load balancers, which see this port only."""

    async def _admit(self) -> None:
        """Let everybody ask, without a body. Raises BadInput."""
        if self.expects_body:
            raise BadInput("A probe has no body.")

    async def get(self, probe: str) -> None:
        """Answer."""
        self.body_complete()
        if probe == "readyz":
            answer = await self.context.readiness.answer()
        else:
            answer = (200, {"status": OK})
        await self.respond(ApiResponse.json(*answer))


class UnknownHandler(GatewayHandler):
    """Any other path: nobody sends a body there, either."""

    async def _admit(self) -> None:
        """Refuse the request. Raises NotFound."""
        raise NotFound(f"There is no {self.request.path}.")


def is_quick(request: ApiRequest) -> bool:
    """Tell whether a request only reads a few small files: none of these waits for a large one."""
    return request.method in ("GET", "HEAD") and not is_slow(request)


def dispatch(
    context: GatewayContext, identity: Identity, request: ApiRequest, is_watched: bool
) -> tuple[ApiResponse, str]:
    """Handle a request; return the response and the job whose directory changed, "" if none.

    `is_watched`: somebody watches the job of the agent that calls.
    """
    if request.path.startswith("exchange/"):
        return context.exchange_routes.handle(identity, request, is_watched=is_watched)
    if not isinstance(identity, DevPod):
        raise NotFound(f"There is no {request.method} {request.path}.")
    if request.path.startswith("blobs/") and request.method in ("HEAD", "PUT"):
        return handle_blob(
            context.core.exchange.root, context.intake.budgets, identity, request
        ), ""
    if request.upload is not None and not request.upload.is_small:  # at most MAX_SUBMISSION
        request = replace(request, body=b"".join(request.upload.chunks()))
    response = handle(context.jobs(identity), request)
    return response, changed_job(request) if response.status < 400 else ""


def changed_job(request: ApiRequest) -> str:
    """Return the job that a request to the REST API changed, "" if none: new ones are notified."""
    collection, _, path = request.path.partition("/")
    is_change = collection == "jobs" and request.method not in ("GET", "HEAD")
    return path.partition("/")[0] if is_change else ""
