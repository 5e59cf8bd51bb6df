"""One tornado handler for all routes: it authenticates, authorizes, and hands over to `api`.

Whoever may not is refused before a byte of the body is taken. What is synchronous, or could take
long, happens in the pools: one is for what copies files, so that no look at a job waits for it.
"""

from __future__ import annotations

import asyncio
import contextlib
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

from ..api import ApiRequest, ApiResponse, RequestContext, error_response, handle
from ..api.routes import action, is_slow, takes_large, touches_workspace
from ..domain.errors import JobsError, Refused, TooLarge
from ..domain.transfer import Transfers
from ..service.port import Jobs
from .body import MAX_BODY, MAX_DRAIN, MAX_SUBMISSION, Body

RESOURCE = "jupyter-to-job"
CHUNK = 256 << 10
"""Bytes of an answer that are handed to the network at a time: others get their turn in between."""
_CODES = {401: "unauthenticated", 403: "forbidden", 404: "not_found", 405: "no_route"}
_MESSAGES = {
    403: "This needs a token, or the cookie of somebody who is logged in.",
    405: "There is no such route.",
}
_Answer = TypeVar("_Answer")


@dataclass(frozen=True)
class ServerContext:
    """What the handlers share.

    `rootless` is why nothing can be submitted here: None where there is a folder with notebooks.
    """

    jobs: Jobs
    quick: ThreadPoolExecutor
    slow: ThreadPoolExecutor
    transfers: Transfers
    rootless: str | None = None


@web.stream_request_body
class JobsHandler(ExtensionHandlerMixin, APIHandler):
    """`/jupyter-to-job/api/...`."""

    _body: Body | None = None
    _refused: JobsError | None = None
    _has_come = False
    """Whether the whole request is here."""

    async def prepare(self) -> None:  # type: ignore[override]
        """Find out who is calling and whether they may, before the body comes."""
        await super().prepare()
        if self.current_user is None:
            raise web.HTTPError(403)
        asked = self._asked()
        await self._authorize(action(asked))
        limit = MAX_SUBMISSION if takes_large(asked) else MAX_BODY
        self.request.connection.set_max_body_size(MAX_DRAIN)  # type: ignore[union-attr]
        self._body = Body(limit)
        length = self.request.headers.get("Content-Length", "0")
        if length.isdecimal() and int(length) > limit:
            self._refuse(TooLarge(f"The body is over {limit >> 20} MiB.", "Send less."))

    async def data_received(self, chunk: bytes) -> None:
        """Take a piece of the body."""
        if self._body is not None and self._refused is None:
            try:
                if self._body.add(chunk):
                    await self._in(self._context.slow, self._body.spill)
            except JobsError as error:
                self._refuse(error)

    @web.authenticated
    async def get(self, path: str) -> None:
        """Answer a GET."""
        await self._answer(path)

    @web.authenticated
    async def post(self, path: str) -> None:
        """Answer a POST."""
        await self._answer(path)

    @web.authenticated
    async def delete(self, path: str) -> None:
        """Answer a DELETE."""
        await self._answer(path)

    def on_finish(self) -> None:
        """Let go of the body."""
        super().on_finish()
        if self._body is not None:
            self._body.close()

    def write_error(self, status_code: int, **kwargs: Any) -> None:
        """Say what went wrong as every other route of ours does."""
        error = (kwargs.get("exc_info") or (None, None))[1]
        message = "Something went wrong in the server: its log has it."
        if isinstance(error, web.HTTPError):
            message = error.log_message or error.reason or _MESSAGES.get(status_code, message)
        code = _CODES.get(status_code, "error")
        body = {"error": {"code": code, "message": message, "hint": ""}, "message": message}
        self.set_header("Content-Type", "application/json")
        if not self._has_come:
            # Tornado ends the connection after such an answer and does not say so. A proxy would
            # send the next request on it, anybody's, and have no answer for that one.
            self.set_header("Connection", "close")
        self.finish(json.dumps(body))

    @property
    def _context(self) -> ServerContext:
        context: ServerContext = self.settings["jupyter_to_job"]
        return context

    def _asked(self) -> ApiRequest:
        asked = self.request
        return ApiRequest(
            method=asked.method or "GET",
            path=self.path_args[0],
            query={name: self.get_query_argument(name) for name in asked.query_arguments},
            headers=asked.headers,
            body=self._body.whole if self._body else b"",
            large=self._body.file if self._body else None,
        )

    async def _answer(self, path: str) -> None:
        self._has_come = True
        context = self._context
        request = self._asked()
        if self._refused is None and context.rootless is not None and touches_workspace(request):
            self._refuse(Refused(context.rootless, "Set JUPYTER_TO_JOB_WORKSPACE to its folder."))
        if self._refused is None and request.large is not None and self._body is not None:
            try:
                await self._in(context.slow, self._body.spill)  # the last piece
            except JobsError as error:
                self._refuse(error)
        if self._refused is not None:
            await self._send(error_response(self._refused))
            return
        here = RequestContext(
            await self._may_listen() if path == "health" else True, context.transfers
        )
        pool = context.slow if is_slow(request) else context.quick
        await self._send(await self._in(pool, partial(handle, context.jobs, request, here)))

    async def _send(self, response: ApiResponse) -> None:
        """Send a response, a large one in pieces: never longer than a piece on the event loop."""
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
        with contextlib.closing(response.pieces(CHUNK)) as pieces:
            try:
                while piece := await self._in(self._context.quick, partial(next, pieces, b"")):
                    self.write(piece)
                    await self.flush()
            except StreamClosedError:  # the client went
                return
        self.finish(set_content_type=response.content_type)

    async def _in(self, pool: ThreadPoolExecutor, work: Callable[[], _Answer]) -> _Answer:
        return await asyncio.get_running_loop().run_in_executor(pool, work)

    def _refuse(self, error: JobsError) -> None:
        """Answer with an error once the body has passed; nothing more of it is kept."""
        self._refused = error
        if self._body is not None:
            self._body.close()

    async def _authorize(self, what: str) -> None:
        """Ask the server's authorizer; `execute` for whatever runs code. Raises 403."""
        asked = self.authorizer.is_authorized(self, self.current_user, what, RESOURCE)
        if not await ensure_async(asked):
            raise web.HTTPError(403, f"You are not allowed to {what} {RESOURCE} here.")

    async def _may_listen(self) -> bool:
        """Tell whether the server would let the caller listen to its events."""
        asked = self.authorizer.is_authorized(self, self.current_user, "execute", "events")
        return bool(await ensure_async(asked))
