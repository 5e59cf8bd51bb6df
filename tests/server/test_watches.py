"""The controller's watches against an API server: what is wrong in one namespace stays there."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Callable, Collection, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from tornado import web
from tornado.httpserver import HTTPServer
from tornado.testing import bind_unused_port

from job_runner.protocol import layout
from jupyter_to_job.backends.kubernetes import JobPods
from jupyter_to_job.backends.port import Units
from jupyter_to_job.controller.cluster import informer
from jupyter_to_job.controller.cluster.cluster import Cluster
from jupyter_to_job.controller.cluster.node_watch import NodeWatch
from jupyter_to_job.controller.metrics import Metrics
from jupyter_to_job.controller.pod_planner import PodPlanner
from jupyter_to_job.controller.reconciling.reconciler import Reconciler
from jupyter_to_job.domain.errors import Unavailable
from jupyter_to_job.exchange import FileExchange
from jupyter_to_job.exchange.records import ClusterJob
from jupyter_to_job.flavors import parse_catalog

from ..pretend_cluster import JOB_LABEL
from ..unit import exchanges

Object = dict[str, Any]
REQUEST = {
    "flavor_spec": {"cpu": 1, "memory": "1Gi"},
    "demand": {"cpu": "1", "memory": "1073741824"},
    "digest": "d",
}


GPUS = {"nvidia.com/gpu": "4"}
NODE: Object = {
    "metadata": {"name": "node-1", "uid": "n-1", "labels": {"kubernetes.io/arch": "arm64"}},
    "status": {"capacity": GPUS, "allocatable": GPUS},
}
BUSY_POD: Object = {
    "metadata": {"namespace": "elsewhere", "name": "busy", "uid": "p-1"},
    "spec": {
        "nodeName": "node-1",
        "containers": [{"name": "c", "resources": {"requests": {"nvidia.com/gpu": "3"}}}],
    },
}


class ApiServer:
    """Namespaces with Jobs, pods and events. `forbidden` namespaces are answered with 403.

    `groups` are the API groups, and with `*` among the namespaces all of them may be read at once.

    `nodes` and `all_pods` are the statuses with which nodes, and pods over the cluster, are
    answered.
    """

    def __init__(self) -> None:
        self.namespaces = {"good", "bad"}
        self.forbidden: set[str] = set()
        self.nodes = self.all_pods = 403
        self.groups, self.groups_status = ["batch"], 200
        self.groups_page: str | bytes | None = None
        """What a load balancer answers in place of the groups, and below of a namespace."""
        self.namespace_page: str | None = None
        self.jobs: dict[str, list[Object]] = {}
        self.pods: dict[str, list[Object]] = {}
        self.events: dict[str, list[Object]] = {}
        self.created: list[str] = []
        self.asked: list[str] = []
        self.watches, self.may_end = 0, asyncio.Event()
        """How many watches of objects have begun, and whether they end."""
        self.may_end.set()

    def application(self) -> web.Application:
        """Return its routes."""
        core = r"/api/v1/namespaces/([^/]+)/(pods|events)"
        return web.Application(
            [
                (r"/apis/batch/v1/namespaces/([^/]+)/(jobs)", _Objects, {"server": self}),
                (core, _Objects, {"server": self}),
                (r"/api/v1/namespaces/([^/]+)", _Namespace, {"server": self}),
                (r"/apis/", _Groups, {"server": self}),
                (r"/apis/batch/v1/(jobs)", _InAll, {"server": self}),
                (r"/api/v1/(events)", _InAll, {"server": self}),
                (r"/api/v1/(nodes)", _OfCluster, {"server": self}),
                (r"/api/v1/(pods)", _OfCluster, {"server": self}),
                (r"/.*", _Everywhere, {"server": self}),
            ]
        )


class _Handler(web.RequestHandler):
    def initialize(self, server: ApiServer) -> None:
        self.server = server
        server.asked.append(self.request.path)

    def fail(self, code: int) -> None:
        self.set_status(code)
        self.finish({"kind": "Status", "code": code, "message": f"because of {code}"})

    async def answer_all(self, kind: str) -> None:
        """Answer with the objects of all namespaces."""
        if "*" not in self.server.namespaces:
            self.fail(403)
        elif self.get_query_argument("watch", "") in ("true", "True"):
            await asyncio.sleep(0.2)
            self.finish("")
        else:
            items = [item for found in getattr(self.server, kind).values() for item in found]
            self.finish({"metadata": {"resourceVersion": "1"}, "items": items})


class _Namespace(_Handler):
    def get(self, name: str) -> None:
        if self.server.namespace_page is not None:
            self.finish(self.server.namespace_page)
        elif name not in self.server.namespaces:
            self.fail(404)
        else:
            self.finish({"metadata": {"name": name}})


class _Groups(_Handler):
    def get(self) -> None:
        if self.server.groups_page is not None:
            self.finish(self.server.groups_page)
            return
        if self.server.groups_status != 200:
            self.fail(self.server.groups_status)
            return
        self.finish({"kind": "APIGroupList", "groups": [{"name": n} for n in self.server.groups]})


class _OfCluster(_Handler):
    async def get(self, kind: str) -> None:
        status = self.server.nodes if kind == "nodes" else self.server.all_pods
        if "labelSelector=" in self.request.query:  # of our pods
            await self.answer_all(kind)
        elif status != 200:
            self.fail(status)
        elif self.get_query_argument("watch", "") in ("true", "True"):
            await asyncio.sleep(0.2)
            self.finish("")
        else:
            item = NODE if kind == "nodes" else BUSY_POD
            self.finish({"metadata": {"resourceVersion": "1"}, "items": [item]})


class _InAll(_Handler):
    async def get(self, kind: str) -> None:
        await self.answer_all(kind)


class _Everywhere(_Handler):
    def get(self) -> None:
        self.fail(403)


class _Objects(_Handler):
    async def get(self, namespace: str, kind: str) -> None:
        if namespace in self.server.forbidden | ({namespace} - self.server.namespaces):
            self.fail(403)
        elif self.get_query_argument("watch", "") in ("true", "True"):
            self.server.watches += 1
            await self.server.may_end.wait()
            await asyncio.sleep(0.2)
            for item in getattr(self.server, kind).get(namespace, []):
                versioned = {**item, "metadata": {**item["metadata"], "resourceVersion": "1"}}
                self.write(json.dumps({"type": "MODIFIED", "object": versioned}) + "\n")
            self.finish()
        else:
            items = getattr(self.server, kind).get(namespace, [])
            self.finish({"metadata": {"resourceVersion": "1"}, "items": items})

    def post(self, namespace: str, kind: str) -> None:
        manifest = json.loads(self.request.body)
        self.server.created.append(f"{namespace}/{manifest['metadata']['name']}")
        manifest["metadata"]["uid"] = f"uid-{kind}"
        self.set_status(201)
        self.server.jobs.setdefault(namespace, []).append(manifest)
        self.finish(manifest)


@asynccontextmanager
async def reconciling(
    server: ApiServer,
    exchange: FileExchange,
    tmp_path: Path,
    namespaces: Collection[str] = ("good", "bad"),
) -> AsyncIterator[Reconciler]:
    """Run a reconciler for these namespaces against the API server."""
    with serving(server, tmp_path) as kubeconfig:
        async with Cluster.connect(str(kubeconfig)) as cluster:
            pods = JobPods("agent:1", "http://gateway")
            served = frozenset(namespaces)
            reconciler = Reconciler(cluster, exchange, pods, served, lambda _: None)
            task = asyncio.create_task(reconciler.run())
            try:
                yield reconciler
            finally:
                task.cancel()
                with suppress(asyncio.CancelledError):
                    await task


@contextmanager
def serving(server: ApiServer, tmp_path: Path) -> Iterator[Path]:
    """Serve on the running loop; yield the kubeconfig."""
    socket, port = bind_unused_port()
    http = HTTPServer(server.application())
    http.add_socket(socket)
    kubeconfig = tmp_path / "kubeconfig"
    named = {"name": "x", "cluster": {"server": f"http://127.0.0.1:{port}"}}
    context = {"name": "x", "context": {"cluster": "x", "user": "x"}}
    document = {"clusters": [named], "contexts": [context], "current-context": "x"}
    kubeconfig.write_text(json.dumps({**document, "users": [{"name": "x", "user": {}}]}))
    try:
        yield kubeconfig
    finally:
        http.stop()


async def until(condition: Callable[[], object]) -> None:
    async def wait() -> None:
        while not condition():
            await asyncio.sleep(0.02)

    await asyncio.wait_for(wait(), 60)


def add_job(exchange: FileExchange, name: str, namespace: str, **changes: Any) -> str:
    """Record a job of a dev pod in a namespace."""
    origin = {
        "namespace": namespace, "service_account": "default", "security_context": {},
        "image_pull_secrets": [], "env": {}, "image": "notebook:1",
    }  # fmt: skip
    request = exchanges.request(name, **{**REQUEST, **changes})
    assert exchange.create(request, exchanges.RESULT, origin=origin)
    return name


@pytest.fixture
def jobs(tmp_path: Path) -> FileExchange:
    exchange = FileExchange(tmp_path / "jobs")
    exchange.prepare()
    add_job(exchange, "first-aaaaaaaa", "good")
    add_job(exchange, "second-aaaaaaaa", "bad")
    return exchange


async def test_a_missing_role_harms_no_other_namespace(
    jobs: FileExchange, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    server = ApiServer()
    server.forbidden.add("bad")
    caplog.set_level(logging.INFO)
    async with reconciling(server, jobs, tmp_path) as reconciler:
        await until(lambda: server.created == ["good/first-aaaaaaaa"])
        await until(lambda: "because of 403" in caplog.text)
        with pytest.raises(Unavailable):
            await reconciler.job_uid("second-aaaaaaaa")
        assert "pods in bad" in caplog.text
        tries = server.asked.count("/apis/batch/v1/namespaces/bad/jobs")
        await until(lambda: server.asked.count("/apis/batch/v1/namespaces/bad/jobs") > tries)
        assert caplog.text.count("because of 403") == 3  # once for Jobs, pods, and events

        server.forbidden.clear()  # the administrator applied the Role
        await until(lambda: "bad/second-aaaaaaaa" in server.created)
        assert "works again" in caplog.text
    over_cluster = {path for path in server.asked if "namespaces" not in path}
    assert over_cluster == {"/apis/"}


async def test_a_namespace_that_is_gone_ends_what_ran_there(
    jobs: FileExchange, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    server = ApiServer()
    server.namespaces.remove("bad")
    claim = jobs.root / "second-aaaaaaaa" / "attempt-1"
    claim.mkdir()
    (claim / "runner.json").write_text('{"v": 1, "pod": "gone"}')
    jobs.write("second-aaaaaaaa", layout.JOB, asdict(ClusterJob("bad", "second-aaaaaaaa", "gone")))
    async with reconciling(server, jobs, tmp_path):
        await until(lambda: (claim / "outcome.json").exists())
        await until(lambda: server.created == ["good/first-aaaaaaaa"])
    assert json.loads((claim / "outcome.json").read_text())["reason"] == "Lost"
    assert "jobs in bad: the namespace does not exist" in caplog.text


async def test_a_job_of_a_namespace_that_is_not_listed_any_more(
    jobs: FileExchange, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    add_job(jobs, "third-aaaaaaaa", "dropped")
    server = ApiServer()
    async with reconciling(server, jobs, tmp_path) as reconciler:
        await until(lambda: len(server.created) == 2)
        await until(lambda: "'dropped' is not in JUPYTER_TO_JOB_NAMESPACES" in caplog.text)
        assert await reconciler.job_uid("third-aaaaaaaa") is None
    assert not any("dropped" in path for path in server.asked)


async def test_jobs_are_planned_once_the_nodes_are_told_or_refused(
    jobs: FileExchange, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("MIN_RETRY_DELAY", "MAX_RETRY_DELAY"):
        monkeypatch.setattr(informer, name, 0.05)
    server = ApiServer()
    server.nodes = 503
    async with reconciling(server, jobs, tmp_path) as reconciler:
        nodes = NodeWatch(reconciler.cluster, counts_devices=False)
        planner = PodPlanner(nodes.nodes, dict, nodes.is_starting, nodes.requests)
        task = asyncio.create_task(nodes.run())
        await until(lambda: server.asked.count("/api/v1/nodes") > 2)
        assert planner.is_starting()

        server.nodes = 403
        await until(lambda: not planner.is_starting())  # a missing right does not stop all jobs
        assert planner.architecture_of("node-1") is None

        server.nodes = 200
        await until(lambda: planner.architecture_of("node-1") == "arm64")
        task.cancel()


@pytest.mark.parametrize(
    ("counts_devices", "all_pods", "units"),
    [(True, 200, {"gpu": Units(1, 4)}), (True, 403, {}), (False, 200, {})],
)
async def test_devices_are_counted_where_the_right_is_given(
    jobs: FileExchange, tmp_path: Path, counts_devices: bool, all_pods: int, units: Object
) -> None:
    catalog = parse_catalog(
        b"apiVersion: jupyter-to-job.io/v1\n"
        b"default: {flavor: one, device: gpu}\n"
        b"flavors: {one: {gpus: 1, devices: [gpu]}}\n"
        b"devices: {gpu: {resource: nvidia.com/gpu}}\n",
        "test",
    )
    server = ApiServer()
    server.nodes, server.all_pods = 200, all_pods
    async with reconciling(server, jobs, tmp_path) as reconciler:
        nodes = NodeWatch(reconciler.cluster, counts_devices=counts_devices)
        planner = PodPlanner(nodes.nodes, dict, nodes.is_starting, nodes.requests)
        task = asyncio.create_task(nodes.run())
        await until(lambda: nodes.nodes() is not None)
        await until(lambda: not counts_devices or "/api/v1/pods" in server.asked)
        await until(lambda: all_pods != 200 or not counts_devices or nodes.requests() is not None)
        assert planner.units(catalog, {"architecture": "arm64"}) == units
        assert ("/api/v1/pods" in server.asked) == counts_devices
        task.cancel()


async def test_devices_are_not_counted_once_the_right_is_taken_away(
    jobs: FileExchange, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("MIN_RETRY_DELAY", "MAX_RETRY_DELAY"):
        monkeypatch.setattr(informer, name, 0.05)
    server, metrics = ApiServer(), Metrics()
    server.nodes = server.all_pods = 200

    def failing(resource: str) -> float | None:
        name = "jupyter_to_job_failing_watches"
        return metrics.registry.get_sample_value(name, {"resource": resource})

    async with reconciling(server, jobs, tmp_path) as reconciler:
        nodes = NodeWatch(reconciler.cluster, counts_devices=True)
        nodes.measure(metrics)
        task = asyncio.create_task(nodes.run())
        await until(lambda: bool(nodes.requests()))
        assert (failing("nodes"), failing("all_pods")) == (0, 0)
        server.all_pods = 403
        await until(lambda: nodes.requests() is None)
        assert (failing("nodes"), failing("all_pods")) == (0, 1)
        server.all_pods = 200
        await until(lambda: bool(nodes.requests()))
        assert failing("all_pods") == 0
        server.nodes = 403
        await until(lambda: nodes.requests() is None)
        assert (failing("nodes"), failing("all_pods")) == (1, 0)
        task.cancel()


async def test_all_namespaces_at_once(jobs: FileExchange, tmp_path: Path) -> None:
    add_job(jobs, "third-aaaaaaaa", "unlisted")
    server = ApiServer()
    server.namespaces.update(["*", "unlisted"])
    async with reconciling(server, jobs, tmp_path, ["*"]) as reconciler:
        await until(lambda: len(server.created) == 3)
        assert "unlisted/third-aaaaaaaa" in server.created
        await until(lambda: reconciler.objects.is_synced("whichever"))
    asked = {path for path in server.asked if "/namespaces/" not in path}
    assert {"/apis/batch/v1/jobs", "/api/v1/pods", "/api/v1/events"} <= asked


async def test_watches_of_many_namespaces_leave_room_for_calls(
    jobs: FileExchange, tmp_path: Path
) -> None:
    """Each watch holds a connection for as long as it lasts."""
    server = ApiServer()
    server.namespaces = {"good", "bad", *(f"user-{n}" for n in range(40))}
    server.may_end.clear()
    try:
        async with reconciling(server, jobs, tmp_path, server.namespaces):
            await until(lambda: server.watches == 3 * len(server.namespaces))
            await until(lambda: len(server.created) == 2)
    finally:
        server.may_end.set()


async def test_records_of_one_namespace_are_not_those_of_another(
    jobs: FileExchange, tmp_path: Path
) -> None:
    """Whoever creates Jobs and pods in a namespace may copy names, labels and owners into it."""

    def job(namespace: str, uid: str) -> Object:
        labels = {JOB_LABEL: "first-aaaaaaaa"}
        names = {"namespace": namespace, "name": "first-aaaaaaaa", "uid": uid, "labels": labels}
        return {"metadata": names}

    def pod(namespace: str, uid: str) -> Object:
        made = job(namespace, uid)
        owner = {"kind": "Job", "uid": "job-uid", "controller": True}
        made["metadata"] |= {"name": "first-aaaaaaaa-abcde", "ownerReferences": [owner]}
        return made

    recorded = ClusterJob("good", "first-aaaaaaaa", "job-uid")
    jobs.write("first-aaaaaaaa", layout.JOB, asdict(recorded))
    server = ApiServer()
    server.jobs = {"good": [job("good", "job-uid")], "bad": [job("bad", "forged")]}
    server.pods = {"good": [pod("good", "pod-uid")], "bad": [pod("bad", "forged-pod")]}
    async with reconciling(server, jobs, tmp_path) as reconciler:
        await until(lambda: server.created)  # the other job's: all is known
        assert await reconciler.job_uid("first-aaaaaaaa") == "job-uid"
        record = reconciler.pod_of("first-aaaaaaaa")
        assert record is not None
        assert (record.namespace, record.uid) == ("good", "pod-uid")
