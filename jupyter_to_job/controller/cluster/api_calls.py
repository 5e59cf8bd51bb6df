"""Counts the calls of the API server, by the client's own hooks: verb, resource, status."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import aiohttp
from yarl import URL

OnCall = Callable[[str, str, str, float], object]
"""Hears of each call: its verb and resource, the status (or `error`), and how long it took."""
NO_ANSWER = "error"
_VERBS = {"POST": "create", "DELETE": "delete", "PUT": "update", "PATCH": "patch"}


def tracing(on_call: OnCall) -> aiohttp.TraceConfig:
    """Return what the client's session reports its calls by. A watch is told when it begins."""
    trace = aiohttp.TraceConfig()

    async def begin(_session: object, call: SimpleNamespace, _params: object) -> None:
        call.begun = asyncio.get_running_loop().time()

    def report(call: SimpleNamespace, params: Any, status: str) -> None:
        seconds = asyncio.get_running_loop().time() - call.begun
        on_call(*verb_and_resource(params.method, params.url), status, seconds)

    async def end(_session: object, call: SimpleNamespace, params: Any) -> None:
        report(call, params, str(params.response.status))

    async def fail(_session: object, call: SimpleNamespace, params: Any) -> None:
        report(call, params, NO_ANSWER)

    trace.on_request_start.append(begin)
    trace.on_request_end.append(end)
    trace.on_request_exception.append(fail)
    return trace


def verb_and_resource(method: str, url: URL) -> tuple[str, str]:
    """Return what a call does in Kubernetes' words: `list pods`, whatever their namespace."""
    parts = url.path.strip("/").split("/")
    parts = parts[2:] if parts[0] == "api" else parts[3:]
    if parts[:1] == ["namespaces"] and len(parts) > 2:
        parts = parts[2:]
    verb = _VERBS.get(method, "get" if len(parts) > 1 else "list")
    if verb == "list" and "watch" in url.query:
        verb = "watch"
    return verb, parts[0] if parts else ""
