"""One tornado handler for all routes: it authenticates, authorizes, and calls `api`.

An unauthorized request is refused before a byte of its body is read. Blocking work runs in two
pools: one is for requests that copy files, so that no other request waits for them.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

from jupyter_core.utils import ensure_async
from jupyter_server.base.handlers import APIHandler
from jupyter_server.extension.handler import ExtensionHandlerMixin
from tornado import web
from tornado.iostream import StreamClosedError

from .. import logs
from ..api import ApiRequest, ApiResponse, RequestContext, error_response, handle
from ..api.http import CHUNK
from ..api.routes import action, is_slow, takes_large, touches_workspace
from ..domain.errors import JobsError, Refused, TooLarge
from ..domain.transfer import Transfers
from ..service.port import Jobs
from ..workspace import Workspace
from .body import MAX_BODY, MAX_DRAIN, MAX_SUBMISSION, Body

RESOURCE = "jupyter-to-job"
CODES = {401: "unauthenticated", 403: "unauthenticated", 404: "not_found", 405: "no_route"}
"""Codes of the errors that are Jupyter Server's own, by their HTTP status."""
_MESSAGES = {
    403: "This needs a token, or the cookie of somebody who is logged in.",
    405: "There is no such route.",
}
_Answer = TypeVar("_Answer")


class Forbidden(web.HTTPError):
    """The server's authorizer does not allow a request of a user who is logged in."""


@dataclass(frozen=True)
class ServerContext:
    """The parts that all requests share.

    `rootless` says why nothing can be submitted here; None where notebooks are in a local folder.
    """

    jobs: Jobs
    quick: ThreadPoolExecutor
    slow: ThreadPoolExecutor
    transfers: Transfers
    workspace: Workspace
    rootless: str | None = None


@web.stream_request_body
class JobsHandler(ExtensionHandlerMixin, APIHandler):
    """`/jupyter-to-job/api/...`."""

    _body: Body | None = None
    _refused: JobsError | None = None
    _is_complete = False
    """Whether the whole body has arrived."""
    _request_id = ""
    """The id by which log lines about this request are found, here and at a gateway."""

    async def prepare(self) -> None:  # type: ignore[override]
        """Authenticate and authorize the caller before the body comes."""
        self._request_id = logs.accepted_request_id(self.request.headers.get(logs.HEADER))
        logs.add_context(request_id=self._request_id)
        self.set_header(logs.HEADER, self._request_id)
        await super().prepare()
        if self.current_user is None:
            raise web.HTTPError(403)
        request = self._api_request()
        if not await self._is_authorized(action(request), RESOURCE):
            message = f"You are not allowed to {action(request)} {RESOURCE} here."
            raise Forbidden(403, message)
        limit = MAX_SUBMISSION if takes_large(request) else MAX_BODY
        self.request.connection.set_max_body_size(MAX_DRAIN)  # type: ignore[union-attr]
        self._body = Body(limit)
        length = self.request.headers.get("Content-Length", "0")
        if length.isdecimal() and int(length) > limit:
            self._refuse(TooLarge(f"The body is over {limit >> 20} MiB.", "Send less."))

    async def data_received(self, chunk: bytes) -> None:
        """Keep a chunk of the body."""
        if self._body is not None and self._refused is None:
            try:
                if self._body.add(chunk):
                    await self._in(self._context.slow, self._body.spill)
            except JobsError as error:
                self._refuse(error)

    def on_finish(self) -> None:
        """Free the body."""
        super().on_finish()
        if self._body is not None:
            self._body.close()

    def write_error(self, status_code: int, **kwargs: Any) -> None:
        """Answer with the same error document as the routes."""
        error = (kwargs.get("exc_info") or (None, None))[1]
        message = "Something went wrong in the server: its log has it."
        if isinstance(error, web.HTTPError):
            message = error.log_message or error.reason or _MESSAGES.get(status_code, message)
        code = "forbidden" if isinstance(error, Forbidden) else CODES.get(status_code, "error")
        details = {"code": code, "message": message, "hint": ""}
        if status_code >= 500:
            self.log.error("request_id=%s failed: %s", self._request_id, message)
            details["request_id"] = self._request_id
        body = {"error": details, "message": message}
        self.set_header("Content-Type", "application/json")
        self.set_header(logs.HEADER, self._request_id)
        if not self._is_complete:
            # Tornado ends the connection after such an answer and does not say so. A proxy would
            # send the next request on it, anybody's, and have no answer for that one.
            self.set_header("Connection", "close")
        self.finish(json.dumps(body))

    @property
    def _context(self) -> ServerContext:
        context: ServerContext = self.settings["jupyter_to_job"]
        return context

    def _api_request(self) -> ApiRequest:
        request = self.request
        return ApiRequest(
            method=request.method or "GET",
            path=self.path_args[0],
            query={name: self.get_query_argument(name) for name in request.query_arguments},
            headers=request.headers,
            body=self._body.data if self._body else b"",
            large=self._body.file if self._body else None,
        )

    @web.authenticated
    async def _answer(self, path: str) -> None:
        """Answer a request whose whole body has arrived."""
        self._is_complete = True
        context = self._context
        request = self._api_request()
        try:
            if self._refused is not None:
                raise self._refused
            if context.rootless is not None and touches_workspace(request):
                raise Refused(context.rootless, "Set JUPYTER_TO_JOB_WORKSPACE to its folder.")
            if request.large is not None and self._body is not None:
                await self._in(context.slow, self._body.spill)  # the final chunk
        except JobsError as error:
            await self._send(error_response(error))
            return
        # Whether the server would let the caller subscribe to its events.
        may_listen = path != "health" or await self._is_authorized("execute", "events")
        api_context = RequestContext(may_listen, context.transfers, context.workspace)
        pool = context.slow if is_slow(request) else context.quick
        await self._send(await self._in(pool, partial(handle, context.jobs, request, api_context)))

    get = post = delete = _answer

    async def _send(self, response: ApiResponse) -> None:
        """Send a response, a large one in chunks, so that the event loop is never held up."""
        if response.status >= 500:
            answer = response.body.decode(errors="replace")
            self.log.warning("request_id=%s answered: %s", self._request_id, answer)
        self.set_status(response.status)
        for name, value in response.headers.items():
            self.set_header(name, value)
        if response.status == 204:
            self.clear_header("Content-Type")
            self.finish(set_content_type="")
            return
        if response.file is None and len(response.body) <= CHUNK:
            self.finish(response.body, set_content_type=response.content_type)
            return
        self.set_header("Content-Type", response.content_type)
        self.set_header("Content-Length", response.length)
        with contextlib.suppress(StreamClosedError):  # the client disconnected
            await response.stream(self, self._context.quick)
            self.finish(set_content_type=response.content_type)

    async def _in(self, pool: ThreadPoolExecutor, work: Callable[[], _Answer]) -> _Answer:
        """Call a function in a pool, where the request's id is known, too."""
        run = contextvars.copy_context().run
        return await asyncio.get_running_loop().run_in_executor(pool, run, work)

    def _refuse(self, error: JobsError) -> None:
        """Answer with an error once the body has arrived; no more of it is kept."""
        self._refused = error
        if self._body is not None:
            self._body.close()

    async def _is_authorized(self, action_name: str, resource: str) -> bool:
        """Ask the server's authorizer; `execute` is for code that runs."""
        answer = self.authorizer.is_authorized(self, self.current_user, action_name, resource)
        return bool(await ensure_async(answer))
