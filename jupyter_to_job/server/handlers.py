"""One tornado handler for all routes: it authenticates, authorizes, and hands over to `api`."""

from __future__ import annotations

import asyncio
from typing import Any

from jupyter_server.base.handlers import APIHandler
from jupyter_server.extension.handler import ExtensionHandlerMixin
from tornado import web

from ..api import Request, handle
from ..api.routes import action

RESOURCE = "jupyter-to-job"


class JobsHandler(ExtensionHandlerMixin, APIHandler):
    """`/jupyter-to-job/api/...`."""

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

    async def _answer(self, path: str) -> None:
        asked = self.request
        request = Request(
            method=asked.method or "GET",
            path=path,
            query={name: self.get_query_argument(name) for name in asked.query_arguments},
            headers=asked.headers,
            body=asked.body or b"",
        )
        await self._authorize(action(request))
        ours: dict[str, Any] = self.settings["jupyter_to_job"]
        loop = asyncio.get_running_loop()
        response = await loop.run_in_executor(ours["pool"], handle, ours["jobs"], request)
        self.set_status(response.status)
        for name, value in response.headers.items():
            self.set_header(name, value)
        if response.status == 204:
            self.clear_header("Content-Type")
            self.finish(set_content_type="")
            return
        self.finish(response.body, set_content_type=response.content_type)

    async def _authorize(self, what: str) -> None:
        """Ask the server's authorizer; `execute` for whatever runs code. Raises 403."""
        decision = self.authorizer.is_authorized(self, self.current_user, what, RESOURCE)
        allowed = await decision if asyncio.iscoroutine(decision) else decision
        if not allowed:
            raise web.HTTPError(403, f"Not allowed to {what} {RESOURCE}.")
