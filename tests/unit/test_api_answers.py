"""What the controller makes of the errors that an API server answers, by real connections."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any, TypeVar

import pytest
from aiohttp import web
from kubernetes.aio import client

from jupyter_to_job.backends.kubernetes import JobRecord, placement_of_error
from jupyter_to_job.backends.kubernetes.records import JOB_LABEL
from jupyter_to_job.controller.cluster import informer
from jupyter_to_job.controller.cluster.cluster import Cluster
from jupyter_to_job.domain.errors import JobsError, NotFound, Refused, Unavailable

Result = TypeVar("Result")
HOME = (
    'persistentvolumeclaims "home-ana" is forbidden: User "system:serviceaccount:jobs:controller" '
    'cannot get resource "persistentvolumeclaims" in API group "" in the namespace "ana"'
)


class ApiServer:
    """Answers as `answer` says, which gets the path and returns a status, and a document or text.

    Watches tell nothing, and end while `watches_end` is set.
    """

    def __init__(self, answer: Callable[[str], tuple[int, Any]]) -> None:
        self.answer = answer
        self.watches_end = asyncio.Event()

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
            self.watches_end.set()
            await runner.cleanup()

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        status, document = self.answer(request.path)
        if "watch" in request.query and status == 200:
            await self.watches_end.wait()
            return web.Response()
        if isinstance(document, str):
            return web.Response(status=status, text=document)
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


async def until(condition: Callable[[], object]) -> None:
    async def wait() -> None:
        while not condition():
            await asyncio.sleep(0.02)

    await asyncio.wait_for(wait(), 60)


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


@pytest.mark.parametrize(
    ("status", "body", "message"),
    [
        (429, "Too many requests, please try again later.", "Kubernetes answered 429: Too Many"),
        (500, 'Internal Server Error: "/api/v1": no answer', "Kubernetes answered 500: Internal"),
        (503, "<html>No server is available.</html>", "Kubernetes answered 503: Service Unavai"),
        (
            504,
            {"message": "Timeout: not in time", "code": 504},
            "Kubernetes answered 504: Timeout:",
        ),
        (*status_document(401, "Unauthorized"), "Kubernetes answered 401: Unauthorized"),
        (403, "<html>Sign in</html>", "Something else than Kubernetes answered 403: Forbidden"),
        (404, "404 page not found\n", "Something else than Kubernetes answered 404: Not Found"),
        (404, {"message": "no Route"}, "Something else than Kubernetes answered 404: no Route"),
        (404, ["no Status"], "Something else than Kubernetes answered 404: Not Found"),
    ],
)
def test_what_says_nothing_of_an_object_is_tried_again(
    status: int, body: Any, message: str
) -> None:
    """The API server sends some errors as text; what is in front of it has pages of its own."""
    server = ApiServer(lambda _: (status, body))
    calls: list[Callable[[Cluster], Awaitable[object]]] = [
        lambda cluster: cluster.claim("ana", "home"),
        lambda cluster: cluster.create_job({"metadata": {"namespace": "ana", "name": "train"}}),
    ]
    for call in calls:
        with pytest.raises(Unavailable) as caught:
            ask(server, call)
        assert caught.value.message.startswith(message)


@pytest.mark.parametrize("status", [403, 404])
def test_a_page_in_place_of_answers_deletes_no_job(
    monkeypatch: pytest.MonkeyPatch, status: int
) -> None:
    for name in ("MIN_RETRY_DELAY", "MAX_RETRY_DELAY"):
        monkeypatch.setattr(informer, name, 0.05)
    names = ["train-aaaaaaaa"]
    pages: list[str] = []

    def answer(path: str) -> tuple[int, Any]:
        if pages:
            return status, pages[0]
        jobs = [_job(name) for name in names]
        if path.endswith("/jobs"):
            return 200, {"metadata": {"resourceVersion": "5"}, "items": jobs}
        known = (job for job in jobs if path.endswith(job["metadata"]["name"]))
        return next(((200, job) for job in known), status_document(404, "not found"))

    server, changes = ApiServer(answer), list[JobRecord]()

    async def look(cluster: Cluster) -> None:
        jobs = cluster.jobs("ana", changes.append)
        watch = asyncio.create_task(jobs.run())
        try:
            await until(jobs.synced.is_set)
            pages.append("<html>default backend - 404</html>")
            server.watches_end.set()
            await until(lambda: jobs.is_failing)
            assert list(jobs.records) == [("ana", names[0])]
            for call in (cluster.find_job("ana", names[0]), cluster.has_namespace("ana")):
                with pytest.raises(Unavailable, match="Something else than Kubernetes answered"):
                    await call

            names.append("train-bbbbbbbb")
            server.watches_end.clear()
            pages.clear()
            await until(lambda: len(jobs.records) == 2)
            assert [record.name for record in changes] == names
            found = await cluster.find_job("ana", names[0])
            assert found is not None and found.uid == f"uid of {names[0]}"
            assert await cluster.find_job("ana", "train-cccccccc") is None
        finally:
            watch.cancel()
            with suppress(asyncio.CancelledError):
                await watch

    ask(server, look)


def _job(name: str) -> dict[str, Any]:
    names = {"namespace": "ana", "name": name, "uid": f"uid of {name}"}
    return {"metadata": {**names, "labels": {JOB_LABEL: name}}, "spec": {}, "status": {}}
