"""The gateway: the same REST as the server extension, blobs, pieces of the exchange, events."""

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
from tornado.httputil import HTTPHeaders
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
CHUNK = 256 << 10
"""Bytes of a file that are handed to the network at a time."""
HEARTBEAT = 1.0
"""Seconds between two comments on a quiet stream of events: both sides notice a dead peer."""
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class GatewayContext:
    """What the handlers share. `changed` tells the reconciler that a job's directory changed."""

    core: ServiceContext
    identities: Identities
    pieces: ExchangeRoutes
    pool: ThreadPoolExecutor
    changed: Callable[[str], None]


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
        """Take what the handlers share."""
        self.context = context

    async def identity(self) -> Identity:
        """Return who is calling. Raises Refused."""
        scheme, _, token = self.request.headers.get("Authorization", "").partition(" ")
        if scheme.lower() != "bearer" or not token:
            raise Refused("This needs a bearer token.")
        return await self.context.identities.of(token)

    async def answer(self, response: ApiResponse) -> None:
        """Send a response; a file of any size by pieces, as fast as the client takes them."""
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
            await self._pour(response)

    async def _pour(self, response: ApiResponse) -> None:
        self.set_header("Content-Length", response.length)
        loop, pool = asyncio.get_running_loop(), self.context.pool
        with contextlib.closing(response.pieces(CHUNK)) as pieces:
            try:
                while piece := await loop.run_in_executor(pool, next, pieces, b""):
                    self.write(piece)
                    await self.flush()
            except StreamClosedError:  # the client went
                return
        self.finish()


@web.stream_request_body
class ApiHandler(_Handler):
    """Every route that answers at once. No body is taken from somebody unknown."""

    async def prepare(self) -> None:
        """Find out who is calling, before the body comes."""
        self._body = bytearray()
        self._caller: Identity | None = None
        if self.path_args == ["health"]:
            return
        try:
            self._caller = await self.identity()
        except JobsError as error:
            await self.answer(error_response(error))

    def data_received(self, chunk: bytes) -> None:
        """Take a piece of the body; tornado holds it to MAX_BODY."""
        self._body += chunk

    async def _handle(self, path: str) -> None:
        asked = self.request
        if self._caller is None:
            health = {"status": "ok", "version": __version__, "backend": "kubernetes"}
            await self.answer(ApiResponse.json(200, health))
            return
        request = ApiRequest(
            method=asked.method or "GET",
            path=path,
            query={name: self.get_query_argument(name) for name in asked.query_arguments},
            headers=_Headers(asked.headers),
            body=bytes(self._body),
        )
        try:
            loop = asyncio.get_running_loop()
            response, job = await loop.run_in_executor(
                self.context.pool, dispatch, self.context, self._caller, request
            )
        except JobsError as error:
            await self.answer(error_response(error))
            return
        if job:
            self.context.changed(job)
        await self.answer(response)

    get = head = post = put = delete = _handle


class _Headers(dict[str, str]):
    """Header names as the routes spell them, whatever the client's capitals."""

    def __init__(self, headers: HTTPHeaders) -> None:
        super().__init__({name.title(): value for name, value in headers.items()})


def dispatch(
    context: GatewayContext, identity: Identity, request: ApiRequest
) -> tuple[ApiResponse, str]:
    """Answer a request of a known caller, and name the job whose directory changed."""
    if request.path.startswith("exchange/"):
        return context.pieces.handle(identity, request)
    if isinstance(identity, AgentPod):
        raise NotFound(f"There is no {request.method} {request.path}.")
    if request.path.startswith("blobs/") and request.method == "PUT":
        blobs = Blobs(context.core.exchange.root, identity.owner)
        blobs.put(request.path.removeprefix("blobs/"), request.body)
        return ApiResponse.json(200, {"length": len(request.body)}), ""
    return handle(GatewayJobs(context.core, identity), request), ""


class EventsHandler(_Handler):
    """Server-sent events: a Job each, first all that are unfinished or undelivered."""

    async def get(self) -> None:
        """Stream until the client goes."""
        try:
            identity = await self.identity()
            if not isinstance(identity, DevPod):
                raise NotFound("There are no events for agents.")
        except JobsError as error:
            await self.answer(error_response(error))
            return
        self.set_header("Content-Type", "text/event-stream")
        news = _News()
        jobs = GatewayJobs(self.context.core, identity)
        watcher = threading.Thread(
            target=_watch,
            args=(jobs, news, asyncio.get_running_loop()),
            name="events",
            daemon=True,
        )
        watcher.start()
        try:
            while not news.over.is_set():
                self.write(await news.take())
                await self.flush()
        except StreamClosedError:
            pass  # the client went: that is how a stream ends
        finally:
            news.over.set()


class _News:
    """The latest of each job that a client was not sent yet: one that is slow piles up nothing."""

    def __init__(self) -> None:
        self.over = threading.Event()
        self._latest: dict[str, Job | Deleted] = {}
        self._come = asyncio.Event()

    def put(self, job: Job | Deleted) -> None:
        """Leave a job, or that it is deleted, to be sent; on the event loop."""
        self._latest[job.name] = job
        self._come.set()

    async def take(self) -> str:
        """Return what there is to send, after `HEARTBEAT` seconds a comment."""
        try:
            await asyncio.wait_for(self._come.wait(), HEARTBEAT)
        except asyncio.TimeoutError:
            return ": \n\n"
        self._come.clear()
        jobs, self._latest = self._latest, {}
        return "".join(map(_event, jobs.values()))


def _event(news: Job | Deleted) -> str:
    if isinstance(news, Deleted):
        return f"event: {DELETED}\ndata: {json.dumps({'name': news.name})}\n\n"
    return f"data: {json.dumps(news.to_json())}\n\n"


def _watch(jobs: GatewayJobs, news: _News, loop: asyncio.AbstractEventLoop) -> None:
    """Follow the feed until the client goes; where it breaks, the stream ends and is begun anew."""
    try:
        for job in jobs.changes():
            if news.over.is_set():
                return
            if job is not None:
                loop.call_soon_threadsafe(news.put, job)
    except Exception:
        _log.exception("a feed broke")
    finally:
        news.over.set()
