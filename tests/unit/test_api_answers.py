"""What the controller makes of the errors that an API server answers, by real connections."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, TypeVar

import pytest
from aiohttp import web
from kubernetes.aio import client

from jupyter_to_job.backends.kubernetes import placement_of_error
from jupyter_to_job.controller.cluster.cluster import Cluster
from jupyter_to_job.domain.errors import JobsError, NotFound, Refused

Result = TypeVar("Result")
HOME = (
    'persistentvolumeclaims "home-ana" is forbidden: User "system:serviceaccount:jobs:controller" '
    'cannot get resource "persistentvolumeclaims" in API group "" in the namespace "ana"'
)


class ApiServer:
    """Answers as `answer` says, which gets the path and returns a status and a document."""

    def __init__(self, answer: Callable[[str], tuple[int, Any]]) -> None:
        self.answer = answer

    @asynccontextmanager
    async def cluster(self) -> AsyncIterator[Cluster]:
        """Serve on the running loop, and connect to it."""
        application = web.Application()
        application.router.add_route("*", "/{path:.*}", self._handle)
        runner = web.AppRunner(application)
        await runner.setup()
        try:
            await web.TCPSite(runner, "127.0.0.1", 0).start()
            configuration = client.Configuration()
            configuration.host = f"http://127.0.0.1:{runner.addresses[0][1]}"
            async with client.ApiClient(configuration) as api:
                yield Cluster(api)
        finally:
            await runner.cleanup()

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        status, document = self.answer(request.path)
        return web.json_response(document, status=status)


def status_document(code: int, message: str, **details: Any) -> tuple[int, Any]:
    """Return an error as Kubernetes answers it."""
    document = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code}
    return code, {**document, "message": message, "details": details}


def ask(server: ApiServer, call: Callable[[Cluster], Awaitable[Result]]) -> Result:
    """Return what a call of the cluster returns."""

    async def run() -> Result:
        async with server.cluster() as cluster:
            return await call(cluster)

    return asyncio.run(run())


def test_a_read_without_the_right_says_whose_role_is_missing() -> None:
    def answer(path: str) -> tuple[int, Any]:
        return (200, {}) if path == "/api/v1/namespaces/ana" else status_document(403, HOME)

    with pytest.raises(Refused) as caught:
        ask(ApiServer(answer), lambda cluster: cluster.claim("ana", "home-ana"))
    assert caught.value.message == f"Kubernetes answered 403: {HOME}"
    placement = placement_of_error(caught.value)
    assert (placement.reason, placement.message) == (
        "BackendError",
        "The controller may not get persistentvolumeclaims in the namespace ana. "
        "The administrator applies the Role of k8s/dev-namespace there.",
    )


def test_a_read_in_a_namespace_that_goes_finds_nothing() -> None:
    """As the API server says by the cause, under another status."""
    answer = status_document(403, "it is being terminated", causes=[
        {"reason": "NamespaceTerminating", "message": "namespace ana is being terminated"},
    ])  # fmt: skip
    with pytest.raises(NotFound, match="it is being terminated"):
        ask(ApiServer(lambda _: answer), lambda cluster: cluster.claim("ana", "home-ana"))


def test_a_list_that_is_too_old_is_told_by_its_message() -> None:
    answer = status_document(410, "The provided continue parameter is too old.")
    with pytest.raises(JobsError) as caught:
        ask(ApiServer(lambda _: answer), lambda cluster: cluster.node_with_claim("ana", "home"))
    assert caught.value.retryable
    assert caught.value.message == f"Kubernetes answered 410: {answer[1]['message']}"
