"""What those who run the controller ask it: probes, metrics, events, calls of the API server."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from kubernetes.aio import client
from prometheus_client.parser import text_string_to_metric_families
from tornado.httpclient import AsyncHTTPClient, HTTPResponse
from tornado.testing import bind_unused_port
from yarl import URL

from jupyter_to_job.api.routes import ROUTES
from jupyter_to_job.controller import cluster_events
from jupyter_to_job.controller.cluster.api_calls import verb_and_resource
from jupyter_to_job.controller.cluster.cluster import Cluster
from jupyter_to_job.controller.cluster_events import ClusterEvents, event_manifest
from jupyter_to_job.controller.metrics import Metrics
from jupyter_to_job.controller.operations import operations_server
from jupyter_to_job.controller.readiness import (
    PROBE_FILE,
    ExchangeCheck,
    Readiness,
    passed,
    watches_check,
)
from jupyter_to_job.controller.request_log import route_and_job
from jupyter_to_job.domain.errors import Refused
from jupyter_to_job.exchange.records import ClusterJob

JOB = ClusterJob("team", "train-abcdefgh", "u-1")


async def ask(path: str, metrics: Metrics, readiness: Readiness) -> HTTPResponse:
    """Ask a server for operations on a port of its own."""
    socket, port = bind_unused_port()
    server = operations_server(metrics, readiness)
    server.add_socket(socket)
    try:
        url = f"http://127.0.0.1:{port}{path}"
        return await AsyncHTTPClient().fetch(url, raise_error=False)
    finally:
        server.stop()


class Watch:
    """An informer, as far as the probe asks it."""

    def __init__(self, *, answered: bool = True, synced: bool = True) -> None:
        self.answered, self.synced = asyncio.Event(), asyncio.Event()
        for event, is_set in ((self.answered, answered), (self.synced, synced)):
            if is_set:
                event.set()


def test_alive_before_it_is_ready(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jupyter_to_job.controller.readiness.TIMEOUT", 60.0)

    async def asked() -> None:
        metrics = Metrics()
        readiness = Readiness(metrics, "lock", "exchange")
        assert (await ask("/healthz", metrics, readiness)).code == 200
        answer = await ask("/readyz", metrics, readiness)
        assert answer.code == 503
        checks = {"lock": "starting", "exchange": "starting"}
        assert json.loads(answer.body) == {"status": "unready", "checks": checks}
        readiness.set("lock", passed)
        readiness.set("exchange", ExchangeCheck(tmp_path))
        answer = await ask("/readyz", metrics, readiness)
        assert answer.code == 200
        assert json.loads(answer.body) == {"status": "ok", "checks": dict.fromkeys(checks, "ok")}
        assert metrics.registry.get_sample_value("jupyter_to_job_ready", {"check": "lock"}) == 1
        assert (await ask("/api/health", metrics, readiness)).code == 404

    asyncio.run(asked())


def test_an_exchange_that_cannot_be_written_to(tmp_path: Path) -> None:
    async def look() -> str:
        return await ExchangeCheck(tmp_path / "gone")()

    assert asyncio.run(look()) == "cannot be written to: No such file or directory"


def test_a_full_exchange_is_served(tmp_path: Path) -> None:
    (tmp_path / PROBE_FILE).symlink_to("/dev/full")
    metrics = Metrics()
    readiness = Readiness(metrics, "exchange")
    readiness.set("exchange", ExchangeCheck(tmp_path))
    answer = asyncio.run(ask("/readyz", metrics, readiness))
    assert answer.code == 200
    assert json.loads(answer.body) == {"status": "ok", "checks": {"exchange": "is full"}}
    assert metrics.registry.get_sample_value("jupyter_to_job_ready", {"check": "exchange"}) == 0


def test_a_volume_that_hangs_hangs_no_probe(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def look() -> None:
        check = ExchangeCheck(tmp_path)
        gate = asyncio.Event()
        loop = asyncio.get_running_loop()

        def write() -> str:
            asyncio.run_coroutine_threadsafe(gate.wait(), loop).result()
            return "ok"

        monkeypatch.setattr(check, "_write", write)
        monkeypatch.setattr("jupyter_to_job.controller.readiness.TIMEOUT", 0.1)
        assert await check() == "does not answer"
        assert await check() == "does not answer"
        gate.set()
        monkeypatch.undo()
        monkeypatch.setattr("jupyter_to_job.controller.readiness.TIMEOUT", 60.0)
        assert await check() == "ok"

    asyncio.run(look())


@pytest.mark.parametrize(
    ("watches", "word"),
    [
        ([{}, {}], "ok"),
        ([{}, {"answered": False, "synced": False}], "1 of 2 have not been read yet"),
        ([{}, {"synced": False}], "ok"),  # one namespace without our Role takes none from others
        ([{"synced": False}, {"synced": False}], "none of 2 may be read"),
    ],
)
def test_watches(watches: list[dict[str, bool]], word: str) -> None:
    async def look() -> str:
        found = [Watch(**options) for options in watches]
        return await watches_check(lambda: found)()

    assert asyncio.run(look()) == word


def test_metrics_are_what_prometheus_reads() -> None:
    async def asked() -> HTTPResponse:
        metrics = Metrics()
        metrics.jobs.labels("running", "").inc()
        return await ask("/metrics", metrics, Readiness(metrics))

    answer = asyncio.run(asked())
    assert answer.headers["Content-Type"].startswith("text/plain")
    families = {f.name: f for f in text_string_to_metric_families(answer.body.decode())}
    (sample,) = families["jupyter_to_job_jobs"].samples
    assert (sample.labels, sample.value) == ({"state": "running", "reason": ""}, 1)
    assert "process_resident_memory_bytes" in families


@pytest.mark.parametrize(
    ("path", "route", "job"),
    [
        ("/api/jobs", "jobs", None),
        ("/api/jobs/train-abcdefgh", "jobs/{name}", "train-abcdefgh"),
        ("/api/jobs/train-abcdefgh/cancel", "jobs/{name}/cancel", "train-abcdefgh"),
        ("/api/jobs/train-abcdefgh/made-up", "other", None),
        ("/api/jobs/no%20name", "other", None),
        ("/api/exchange/train-abcdefgh/attempt-1/journal/1", "exchange/{job}", "train-abcdefgh"),
        ("/api/blobs/00ff", "blobs/{sha256}", None),
        ("/api/submissions/secret-key", "submissions/{key}", None),
        ("/api/events", "events", None),
        ("/healthz", "healthz", None),
        ("/api/" + "x" * 1000, "other", None),
        ("/", "other", None),
    ],
)
def test_paths_have_few_routes(path: str, route: str, job: str | None) -> None:
    assert route_and_job(path) == (route, job)


@pytest.mark.parametrize("pattern", sorted({pattern for _, pattern, _ in ROUTES}))
def test_every_route_has_its_name(pattern: str) -> None:
    """In the log and in metrics; a newer one is no `other`."""
    path = pattern.replace("([^/]+)", "train-abcdefgh")
    route, job = route_and_job(f"/api/{path}")
    assert route != "other"
    assert route.format(name="train-abcdefgh", key="train-abcdefgh") == path
    assert job == ("train-abcdefgh" if path.startswith("jobs/") else None)


@pytest.mark.parametrize(
    ("method", "path", "verb", "resource"),
    [
        ("GET", "/api/v1/namespaces/team/pods?limit=5", "list", "pods"),
        ("GET", "/api/v1/pods?watch=True", "watch", "pods"),
        ("GET", "/api/v1/namespaces/team/pods/jupyter-ada", "get", "pods"),
        ("GET", "/api/v1/namespaces/team", "get", "namespaces"),
        ("GET", "/api/v1/nodes", "list", "nodes"),
        ("POST", "/apis/batch/v1/namespaces/team/jobs?dryRun=All", "create", "jobs"),
        ("DELETE", "/apis/batch/v1/namespaces/team/jobs/a", "delete", "jobs"),
        ("POST", "/apis/authentication.k8s.io/v1/tokenreviews", "create", "tokenreviews"),
        ("POST", "/apis/events.k8s.io/v1/namespaces/team/events", "create", "events"),
    ],
)
def test_calls_in_the_words_of_kubernetes(method: str, path: str, verb: str, resource: str) -> None:
    assert verb_and_resource(method, URL(f"https://api{path}")) == (verb, resource)


def test_an_event_is_one_of_kubernetes() -> None:
    event = event_manifest(JOB, "Fail", "JobFailed", "ä" * 1000)
    body = client.EventsV1Event.model_validate(event)
    sent = client.ApiClient().sanitize_for_serialization(body)  # type: ignore[no-untyped-call]
    assert sent["regarding"]["uid"] == "u-1"
    assert sent["type"] == "Warning"
    assert len(sent["note"].encode()) <= 1024
    assert len(sent["eventTime"]) == len("2026-11-24T06:00:00.000000+00:00")


class Taker:
    """A cluster that takes events, or not."""

    def __init__(self, *errors: Exception) -> None:
        self.errors = list(errors)
        self.taken: list[Any] = []

    async def create_event(self, event: Any) -> None:
        if self.errors:
            raise self.errors.pop(0)
        self.taken.append(event["reason"])


def test_events_are_lost_and_never_in_the_way(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(cluster_events, "INTERVAL", 0.0)

    async def tell() -> list[Any]:
        refused = Refused("Kubernetes answered 403: events is forbidden")
        cluster = Taker(refused, refused, RuntimeError("no"))
        events = ClusterEvents(cluster)
        for number in range(3 * cluster_events.MAX_WAITING):
            events.tell(JOB, "Deliver", f"Reason{number}", "")
        task = asyncio.create_task(events.run())
        while len(cluster.taken) < cluster_events.MAX_WAITING - 3:
            await asyncio.sleep(0)
        task.cancel()
        return cluster.taken

    taken = asyncio.run(tell())
    assert taken[0] == "Reason3"
    assert len(taken) == cluster_events.MAX_WAITING - 3
    said = [r.message for r in caplog.records if "events of jobs are lost" in r.message]
    assert len(said) == 1  # not for each


def test_calls_of_the_api_server_are_counted(tmp_path: Path) -> None:
    """With a server that answers everything with 404, and one that is away."""
    calls: list[tuple[str, str, str]] = []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 404 Not Found\r\nContent-Length: 18\r\nConnection: close\r\n\r\n")
        writer.write(b'{"kind": "Status"}')
        await writer.drain()
        writer.close()

    async def call() -> None:
        server = await asyncio.start_server(answer, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        kubeconfig = tmp_path / "config"
        kubeconfig.write_text(KUBECONFIG.format(port))

        def on_call(verb: str, resource: str, code: str, seconds: float) -> None:
            assert seconds >= 0
            calls.append((verb, resource, code))

        async with Cluster.connect(str(kubeconfig), on_call) as cluster:
            assert not await cluster.has_namespace("team")
            server.close()
            await server.wait_closed()
            with pytest.raises(Exception, match="cannot be reached"):
                await cluster.has_namespace("team")

    asyncio.run(call())
    assert calls == [("get", "namespaces", "404"), ("get", "namespaces", "error")]


KUBECONFIG = """
apiVersion: v1
kind: Config
current-context: here
contexts: [{{name: here, context: {{cluster: here, user: me}}}}]
clusters: [{{name: here, cluster: {{server: "http://127.0.0.1:{}"}}}}]
users: [{{name: me, user: {{token: t}}}}]
"""
