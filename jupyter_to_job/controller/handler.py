"""The base of the gateway's handlers: whoever calls is known before a byte of a body is read."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import logging
import socket
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeVar

from tornado import web
from tornado.http1connection import HTTP1Connection
from tornado.iostream import StreamClosedError

from .. import __version__, logs
from ..api import ApiResponse, error_response
from ..api.http import CHUNK
from ..domain.errors import JobsError, NotFound, Refused, TimedOut
from ..exchange.gateway import PRODUCT
from ..service.jobs import ServiceContext
from .callers.identity import DevPod, Identities, Identity
from .callers.volumes import JobOrigins
from .feed.gateway_feed import GatewayFeed
from .intake.exchange_routes import ExchangeRoutes
from .intake.intake import IncomingBody, Intake
from .jobs import GatewayJobs
from .metrics import Metrics
from .pod_planner import PodPlanner
from .preflight.cluster_checks import ClusterChecks
from .readiness import Readiness
from .recent_events import RecentEvents
from .reconciling.run_admission import RunAdmission

DROPPED = 64 << 10
"""Bytes of a refused body that are read and dropped, at most.

The kernel resets a connection that is closed while its client still sends, and the reset may
overtake the answer. So whoever sends little hears why; a larger body is cut off at once.
"""
SEND_TIMEOUT = 30.0
"""Seconds in which a client must take a few chunks, before its connection is closed."""
SEND_BUFFER = 128 << 10
"""Bytes that the kernel keeps for a client that does not read."""
_log = logging.getLogger(__name__)
_Answer = TypeVar("_Answer")


@dataclass(frozen=True)
class GatewayContext:
    """The objects that the handlers share.

    `pool` is for small answers, `intake.bulk` for what is large. `on_change` reports a job whose
    directory changed. Without a cluster there are no `checks` of a submission, no `runs` to admit,
    and no `events` that tell what happened to a job.
    """

    core: ServiceContext
    identities: Identities
    exchange_routes: ExchangeRoutes
    pool: ThreadPoolExecutor
    feed: GatewayFeed
    on_change: Callable[[str], None]
    intake: Intake
    planner: PodPlanner = field(default_factory=PodPlanner)
    checks: ClusterChecks | None = None
    metrics: Metrics = field(default_factory=Metrics)
    readiness: Readiness = field(default_factory=lambda: Readiness(Metrics()))
    events: RecentEvents | None = None
    runs: RunAdmission | None = None

    @cached_property
    def origins(self) -> JobOrigins:
        """The dev pods that jobs come from."""
        return JobOrigins(self.core.exchange)

    def jobs(self, caller: DevPod) -> GatewayJobs:
        """Return the use cases for a caller."""
        return GatewayJobs(self.core, caller, self.origins, self.planner, self.checks, self.events)


@web.stream_request_body
class GatewayHandler(web.RequestHandler):
    """Authenticates every request by its bearer token, and receives its body."""

    request_id = ""
    """The id by which log lines about this request are found."""
    body: IncomingBody | None = None
    """The body, of a caller who is known."""
    caller: Identity | None = None
    _timer: asyncio.TimerHandle | None = None
    _deadline = 0.0
    _is_complete = False
    """Whether the whole body has arrived."""
    _refusal: JobsError | None = None
    """The answer once the rest of a small body has been dropped."""
    _unread = 0
    """Bytes of that rest."""

    def initialize(self, context: GatewayContext) -> None:
        """Store the shared context."""
        self.context = context

    async def prepare(self) -> None:
        """Authenticate the caller, and decide how much of a body is taken."""
        self.request_id = logs.accepted_request_id(self.request.headers.get(logs.HEADER))
        logs.add_context(request_id=self.request_id)
        self.set_header(logs.HEADER, self.request_id)
        try:
            await self._admit()
        except JobsError as error:
            self._unread = self.declared_length or 0
            if 0 < self._unread <= DROPPED:
                self._refusal = error
            else:
                self.refuse(error)
        if self.expects_body and not self._finished:
            self._deadline = asyncio.get_running_loop().time() + self.context.intake.timeout
            self._set_timer()

    @property
    def expects_body(self) -> bool:
        """Whether the request declares a body."""
        headers = self.request.headers
        return headers.get("Content-Length", "0") != "0" or "Transfer-Encoding" in headers

    @property
    def declared_length(self) -> int | None:
        """The length of the body in bytes, None where the request does not say it."""
        declared = self.request.headers.get("Content-Length")
        return int(declared) if declared is not None and declared.isdecimal() else None

    async def authenticate(self) -> Identity:
        """Return whose the bearer token is. Raises Refused."""
        scheme, _, token = self.request.headers.get("Authorization", "").partition(" ")
        if scheme.lower() != "bearer" or not token:
            raise Refused("This needs a bearer token.")
        return await self.context.identities.authenticate(token)

    async def _admit(self) -> None:
        """Set caller and body. Raises errors of our tree."""
        self.caller = await self.authenticate()
        method, path = self.request.method or "GET", self.path_args[0] if self.path_args else ""
        self.body = await self.in_pool(
            self.context.intake.open, self.caller, method, path, self.declared_length
        )

    async def data_received(self, chunk: bytes) -> None:
        """Write a piece of the body; the next one is read only after that."""
        if self._finished:
            return
        self._cancel_timer()
        if self._refusal is not None:
            self._unread -= len(chunk)
            if self._unread <= 0:
                self.refuse(self._refusal)
            else:
                self._set_timer()
        elif self.body is not None:
            await self._receive(chunk)

    async def _receive(self, chunk: bytes) -> None:
        assert self.body is not None
        try:
            await self.in_bulk(self.body.write, chunk)
        except JobsError as error:
            self.refuse(error)
        else:
            self._set_timer()

    def refuse(self, error: JobsError) -> None:
        """Answer with an error. Where a body is still coming, tornado closes the connection."""
        self._cancel_timer()
        self._close_body()
        if not self._finished:
            response = error_response(error, self.request_id)
            self._finish_with(response, response.status)

    def body_complete(self) -> None:
        """Note that the whole body has arrived: call it first in each method of HTTP."""
        self._is_complete = True
        self._cancel_timer()

    def on_connection_close(self) -> None:
        """Free the body of a client that went away while it was sending."""
        super().on_connection_close()
        self._cancel_timer()
        if not self._is_complete:
            self._close_body()

    def on_finish(self) -> None:
        """Free the body."""
        self._cancel_timer()
        self._close_body()

    def write_error(self, status_code: int, **kwargs: Any) -> None:  # noqa: ARG002
        """Answer with the same document as the routes, without what went wrong inside."""
        error = JobsError("Something went wrong in the controller: its log has it.")
        if status_code == 405:
            error = NotFound(f"There is no {self.request.method} here.")
        self._finish_with(error_response(error, self.request_id), status_code)

    def log_exception(self, _kind: object, error: object, trace: Any) -> None:
        """Log an error of ours, without the query of the request: a client may put a token there.

        What was refused is in the line about the request.
        """
        if isinstance(error, Exception) and not isinstance(error, web.HTTPError):
            line = f"{self.request.method} {self.request.path} failed"
            _log.error(line, exc_info=error.with_traceback(trace))

    def set_default_headers(self) -> None:
        """Name version and id in the answer, also in one that begins anew after an error."""
        self.set_header("Server", f"{PRODUCT}{__version__}")
        if self.request_id:
            self.set_header(logs.HEADER, self.request_id)

    async def respond(self, response: ApiResponse) -> None:
        """Send a response. A large one is sent in chunks, as fast as the client reads them."""
        self.set_status(response.status)
        for name, value in response.headers.items():
            self.set_header(name, value)
        if response.status != 204:
            self.set_header("Content-Type", response.content_type)
        if self.request.method == "HEAD" or response.status == 204:
            self.finish()
        elif response.file is None and len(response.body) <= CHUNK:
            self.finish(response.body)
        else:
            self.set_header("Content-Length", response.length)
            self.limit_send_buffer()
            pool = self.context.pool if response.file is None else self.context.intake.bulk
            with contextlib.suppress(StreamClosedError):  # the client disconnected
                await response.stream(self, pool)
                self.finish()

    def limit_send_buffer(self) -> None:
        """Keep the kernel from buffering megabytes for a client that does not read.

        Of a large buffer it reports no room before the client has taken a third of it.
        """
        if isinstance(self.request.connection, HTTP1Connection):
            options = (socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BUFFER)
            self.request.connection.stream.socket.setsockopt(*options)

    def flush(self, include_footers: bool = False) -> asyncio.Future[None]:
        """Send what was written. Who does not take a few chunks in `SEND_TIMEOUT` is cut off.

        tornado's own timeouts are for requests only.
        """
        sending = super().flush(include_footers)
        if isinstance(self.request.connection, HTTP1Connection):
            stream = self.request.connection.stream
            timer = asyncio.get_running_loop().call_later(SEND_TIMEOUT, stream.close)
            sending.add_done_callback(lambda _: timer.cancel())
        return sending

    def _finish_with(self, response: ApiResponse, status: int) -> None:
        """Send a small response, and say so where tornado closes the connection after it."""
        self.set_status(status)
        for name, value in response.headers.items():
            self.set_header(name, value)
        self.set_header("Content-Type", response.content_type)
        if not self._is_complete:  # tornado closes it then, also where there is no body
            self.set_header("Connection", "close")
        self.finish(b"" if self.request.method == "HEAD" else response.body)

    async def in_pool(self, work: Callable[..., _Answer], *arguments: object) -> _Answer:
        """Call a function in the pool for small answers."""
        return await self._in(self.context.pool, work, *arguments)

    async def in_bulk(self, work: Callable[..., _Answer], *arguments: object) -> _Answer:
        """Call a function in the pool for what is large."""
        return await self._in(self.context.intake.bulk, work, *arguments)

    async def _in(
        self, pool: ThreadPoolExecutor, work: Callable[..., _Answer], *arguments: object
    ) -> _Answer:
        """Call a function in a pool, where log lines know the request, too."""
        run = contextvars.copy_context().run
        return await asyncio.get_running_loop().run_in_executor(pool, run, work, *arguments)

    def _set_timer(self) -> None:
        loop = asyncio.get_running_loop()
        moment = min(loop.time() + self.context.intake.idle_timeout, self._deadline)
        self._timer = loop.call_at(moment, self._time_out)

    def _cancel_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _time_out(self) -> None:
        self.refuse(TimedOut("The body did not arrive in time.", "Send it again."))

    def _close_body(self) -> None:
        """Free the body. A thread may be writing to it, of which nothing is needed any more."""
        if self.body is not None:
            self.body.close()
