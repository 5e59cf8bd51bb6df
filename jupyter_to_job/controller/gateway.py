"""The gateway's HTTP server: the REST API, blobs, files of the exchange, and events."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from tornado import web
from tornado.iostream import StreamClosedError

from .. import __version__
from ..api import ApiRequest, ApiResponse, error_response, handle
from ..domain.errors import JobsError, NotFound, Refused
from ..domain.job import Deleted, Job
from ..service.jobs import ServiceContext
from ..service.remote import DELETED
from .exchange_routes import ExchangeRoutes
from .identity import AgentPod, DevPod, Identities, Identity
from .jobs import Blobs, GatewayJobs

MAX_BODY = 128 << 20
HEARTBEAT_INTERVAL = 1.0
"""Seconds between two comments on an idle event stream, by which both sides notice a dead peer."""
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class GatewayContext:
    """The objects that the handlers share. `on_change` reports a job whose directory changed."""

    core: ServiceContext
    identities: Identities
    exchange_routes: ExchangeRoutes
    pool: ThreadPoolExecutor
    on_change: Callable[[str], None]


def application(context: GatewayContext) -> web.Application:
    """Return the tornado application."""
    return web.Application(
        [
            (r"/api/events", EventsHandler, {"context": context}),
            (r"/api/(.*)", ApiHandler, {"context": context}),
        ]
    )


class _Handler(web.RequestHandler):
    """Authenticates every request by its bearer token."""

    def initialize(self, context: GatewayContext) -> None:
        """Store the shared context."""
        self.context = context

    async def identity(self) -> Identity:
        """Return the authenticated caller. Raises Refused."""
        scheme, _, token = self.request.headers.get("Authorization", "").partition(" ")
        if scheme.lower() != "bearer" or not token:
            raise Refused("This needs a bearer token.")
        return await self.context.identities.authenticate(token)

    async def respond(self, response: ApiResponse) -> None:
        """Send a response. A file is sent in chunks, as fast as the client reads them."""
        self.set_status(response.status)
        for name, value in response.headers.items():
            self.set_header(name, value)
        if response.status != 204:
            self.set_header("Content-Type", response.content_type)
        if self.request.method == "HEAD" or response.status == 204:
            self.finish()
        elif response.file is None:
            self.finish(response.body)
        else:
            self.set_header("Content-Length", response.length)
            with contextlib.suppress(StreamClosedError):  # the client disconnected
                await response.stream(self, self.context.pool)
                self.finish()


@web.stream_request_body
class ApiHandler(_Handler):
    """All routes but the events. A body is read only after the caller is authenticated."""

    async def prepare(self) -> None:
        """Authenticate the caller before the body is read."""
        self._body = bytearray()
        self._caller: Identity | None = None
        if self.path_args == ["health"]:
            return
        try:
            self._caller = await self.identity()
        except JobsError as error:
            await self.respond(error_response(error))

    def data_received(self, chunk: bytes) -> None:
        """Collect a chunk of the body; tornado limits it to MAX_BODY."""
        self._body += chunk

    async def _handle(self, path: str) -> None:
        if self._caller is None:
            health = {"status": "ok", "version": __version__, "backend": "kubernetes"}
            await self.respond(ApiResponse.json(200, health))
            return
        request = ApiRequest(
            method=self.request.method or "GET",
            path=path,
            query={name: self.get_query_argument(name) for name in self.request.query_arguments},
            headers=self.request.headers,
            body=bytes(self._body),
        )
        try:
            loop = asyncio.get_running_loop()
            response, job = await loop.run_in_executor(
                self.context.pool, dispatch, self.context, self._caller, request
            )
        except JobsError as error:
            await self.respond(error_response(error))
            return
        if job:
            self.context.on_change(job)
        await self.respond(response)

    get = head = post = put = delete = _handle


def dispatch(
    context: GatewayContext, identity: Identity, request: ApiRequest
) -> tuple[ApiResponse, str]:
    """Handle a request; return the response and the job whose directory changed, "" if none."""
    if request.path.startswith("exchange/"):
        return context.exchange_routes.handle(identity, request)
    if isinstance(identity, AgentPod):
        raise NotFound(f"There is no {request.method} {request.path}.")
    if request.path.startswith("blobs/") and request.method == "PUT":
        blobs = Blobs(context.core.exchange.root, identity.owner)
        blobs.put(request.path.removeprefix("blobs/"), request.body)
        return ApiResponse.json(200, {"length": len(request.body)}), ""
    return handle(GatewayJobs(context.core, identity), request), ""


class EventsHandler(_Handler):
    """Server-sent events, a Job each: first the unfinished and undelivered ones, then changes."""

    async def get(self) -> None:
        """Stream until the client disconnects."""
        try:
            identity = await self.identity()
            if not isinstance(identity, DevPod):
                raise NotFound("There are no events for agents.")
        except JobsError as error:
            await self.respond(error_response(error))
            return
        self.set_header("Content-Type", "text/event-stream")
        events = _EventBuffer()
        jobs = GatewayJobs(self.context.core, identity)
        watcher = threading.Thread(
            target=_follow_changes,
            args=(jobs, events, asyncio.get_running_loop()),
            name="events",
            daemon=True,
        )
        watcher.start()
        try:
            while not events.closed.is_set():
                self.write(await events.take())
                await self.flush()
        except StreamClosedError:
            pass  # the client disconnected, as every stream ends
        finally:
            events.closed.set()


class _EventBuffer:
    """The latest unsent event of each job, so that its size is bounded by the number of jobs."""

    def __init__(self) -> None:
        self.closed = threading.Event()
        self._latest: dict[str, Job | Deleted] = {}
        self._has_events = asyncio.Event()

    def put(self, job: Job | Deleted) -> None:
        """Add a changed or deleted job. Call it on the event loop."""
        self._latest[job.name] = job
        self._has_events.set()

    async def take(self) -> str:
        """Return the next events as text, or a comment after `HEARTBEAT_INTERVAL` seconds."""
        try:
            await asyncio.wait_for(self._has_events.wait(), HEARTBEAT_INTERVAL)
        except asyncio.TimeoutError:
            return ": \n\n"
        self._has_events.clear()
        jobs, self._latest = self._latest, {}
        return "".join(map(_format_event, jobs.values()))


def _format_event(job: Job | Deleted) -> str:
    if isinstance(job, Deleted):
        return f"event: {DELETED}\ndata: {json.dumps({'name': job.name})}\n\n"
    return f"data: {json.dumps(job.to_json())}\n\n"


def _follow_changes(
    jobs: GatewayJobs, events: _EventBuffer, loop: asyncio.AbstractEventLoop
) -> None:
    """Move changes to the buffer until the stream is closed. On an error, close it."""
    try:
        for job in jobs.changes():
            if events.closed.is_set():
                return
            if job is not None:
                loop.call_soon_threadsafe(events.put, job)
    except Exception:
        _log.exception("a feed broke")
    finally:
        events.closed.set()
