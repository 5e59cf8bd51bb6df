"""What of a dev pod comes along with its jobs, as its user learns of it at a real gateway."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import httpx
import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_notebook

from job_runner.protocol import layout
from jupyter_to_job.backends.kubernetes import JobPods, job_manifest
from jupyter_to_job.backends.kubernetes.device_counts import PodRequests
from jupyter_to_job.backends.kubernetes.nodes import NodeRecord
from jupyter_to_job.backends.kubernetes.pod_patch import read_patch
from jupyter_to_job.controller.callers import identity
from jupyter_to_job.controller.callers.identity import Identities
from jupyter_to_job.controller.callers.tenants import Tenants
from jupyter_to_job.controller.pod_planner import PodPlanner
from jupyter_to_job.exchange import FileExchange

from ..gateways import serve
from ..golden_manifests import PATCHES
from ..pretend_cluster import PINNED_IMAGE, Clock, PretendCluster, tenants

NOTEBOOK = nbformat.writes(new_notebook(cells=[new_code_cell("print(1)")])).encode()
DIGEST = hashlib.sha256(NOTEBOOK).hexdigest()
NOTEBOOK_PATH = "home/work/train.ipynb"
CATALOG = """
apiVersion: jupyter-to-job.io/v1
default: {flavor: small, device: near}
flavors:
  small: {cpu: 1, gpus: 1, devices: [near, far, ready, grows]}
  queued: {cpu: 1, gpus: 1, devices: [near], queue: gpus}
  part: {cpu: 1, devices: [slice]}
  parts: {cpu: 1, gpus: 2, devices: [slice]}
  two: {cpu: 1, gpus: 2, devices: [ready]}
devices:
  near: {resource: example.org/gpu, node_selector: {kind: near}}
  far: {resource: example.org/gpu, node_selector: {kind: far}}
  ready: {resource: example.org/gpu, image: "registry/ready:1"}
  grows: {resource: example.org/gpu, node_selector: {kind: near}, autoscaled: true}
  slice: {limits: {example.org/slice: 1}}
"""


def node(name: str, kind: str) -> NodeRecord:
    labels = {"kind": kind, "kubernetes.io/arch": "amd64"}
    return NodeRecord(name, name, labels, {"example.org/gpu": Decimal(1)})


class DevPod:
    """A dev pod's client of a gateway."""

    def __init__(self, client: httpx.Client, token: str) -> None:
        self.client = client
        self.headers = {"Authorization": f"Bearer {token}"}

    def post(self, path: str, **body: Any) -> Any:
        answer = self.client.post(path, json=body, headers=self.headers)
        return answer.json()

    def submit(self, **options: Any) -> Any:
        self.client.put(f"blobs/{DIGEST}", content=NOTEBOOK, headers=self.headers)
        options = {"notebook": NOTEBOOK_PATH, "expected_sha256": DIGEST, **options}
        return self.post("jobs", **options)


@pytest.fixture
def exchange(tmp_path: Path) -> FileExchange:
    made = FileExchange(tmp_path / "exchange")
    made.prepare()
    return made


@contextmanager
def dev_pod(
    exchange: FileExchange,
    mode: str,
    nodes: list[NodeRecord] | None,
    patch: Any = None,
    path: str = "/home",
    is_starting: Callable[[], bool] = lambda: False,
    rules: Tenants | None = None,
    lacks_kueue: Callable[[], bool] = lambda: False,
    status: Any = None,
    busy: list[PodRequests] | None = None,
    env: Any = (),
    **spec: Any,
) -> Iterator[DevPod]:
    cluster = PretendCluster()
    token = cluster.add_pod(claim="home-ada", path=path, nodeName="here", **spec)
    pod = cluster.pods["team", "jupyter-ada"]
    pod["status"].update({} if status is None else status)
    pod["spec"]["containers"][0]["env"] = env
    cluster.claims["team", "home-ada"]["status"] = {"accessModes": [mode]}
    identities = Identities(cluster, rules or tenants(), cluster, Clock())
    catalog = exchange.root.parent / "flavors.yaml"
    catalog.write_text(CATALOG)
    planner = PodPlanner(
        lambda: nodes, lambda: patch or {}, is_starting, lambda: busy, lacks_kueue=lacks_kueue
    )
    with (
        serve(exchange, identities, catalog, planner) as url,
        httpx.Client(base_url=f"{url}/api/", trust_env=False, timeout=20) as client,
    ):
        yield DevPod(client, token)


NODES = [node("here", "near"), node("there", "far")]


@pytest.mark.parametrize(
    ("mode", "nodes", "device", "isolated"),
    [
        ("ReadWriteMany", NODES, "far", False),
        ("ReadWriteMany", None, "far", False),
        ("ReadWriteMany", NODES, "grows", False),
        ("ReadWriteOnce", NODES, "near", False),
        ("ReadWriteOnce", NODES, "far", True),
        ("ReadWriteOnce", None, "near", True),
        ("ReadWriteOnce", [*NODES, node("more", "near")], "near", True),
        ("ReadWriteOnce", NODES, "grows", True),
        ("ReadWriteOncePod", NODES, "near", True),
    ],
)
def test_it_is_told_before_and_after(
    exchange: FileExchange,
    mode: str,
    nodes: list[NodeRecord] | None,
    device: str,
    isolated: bool,
) -> None:
    with dev_pod(exchange, mode, nodes) as pod:
        before = pod.post("preflight", notebook="home/work/train.ipynb", device=device)
        after = pod.submit(device=device)
    mounts = [] if isolated else ["/home"]
    assert (before["isolated"], before["mounts"]) == (isolated, mounts)
    told = [p["message"] for p in before["problems"] if p["code"] == "volume_left"]
    assert (after["isolated"], after["mounts"]) == (isolated, mounts)
    assert after["left_behind"] == told
    assert bool(told) is isolated
    request = exchange.request(after["name"])
    assert request.cwd == (None if isolated else "/home/work")
    assert not request.isolation_asked


@pytest.mark.parametrize(
    ("device", "why"),
    [
        ("grows", "a node may be added for jobs with this device."),
        ("far", "jobs with this device may run on another one."),
    ],
)
def test_a_volume_of_one_node_says_why_it_stays(
    exchange: FileExchange, device: str, why: str
) -> None:
    """Bound to the node of today, the job could not have what an autoscaler adds."""
    with dev_pod(exchange, "ReadWriteOnce", NODES) as pod:
        before = pod.post("preflight", notebook=NOTEBOOK_PATH, device=device)
    (told,) = [p["message"] for p in before["problems"] if p["code"] == "volume_left"]
    assert told.endswith(f"its claim home-ada can be used on one node at a time, and {why}")


def test_who_wants_it_isolated_gets_it_with_the_volumes(exchange: FileExchange) -> None:
    with dev_pod(exchange, "ReadWriteMany", NODES) as pod:
        job = pod.submit(isolated=True)
        again = pod.post(f"jobs/{job['name']}/rerun")
    assert (job["isolated"], job["mounts"]) == (True, ["/home"])
    assert again["isolated"]


def test_a_rerun_elsewhere_is_planned_anew(exchange: FileExchange) -> None:
    with dev_pod(exchange, "ReadWriteOnce", NODES) as pod:
        inputs = [{"path": "home/work/helpers.py", "sha256": DIGEST}]
        far = pod.submit(device="far", inputs=inputs)
        near = pod.post(f"jobs/{far['name']}/rerun", device="near")
        again = pod.post(f"jobs/{near['name']}/rerun", device="far")
    assert [job["isolated"] for job in (far, near, again)] == [True, False, True]


def test_a_rerun_that_would_lose_its_files_is_refused(exchange: FileExchange) -> None:
    with dev_pod(exchange, "ReadWriteOnce", NODES) as pod:
        near = pod.submit(device="near")
        error = pod.post(f"jobs/{near['name']}/rerun", device="far")["error"]
        assert error["code"] == "refused"
        assert "no files were sent along. /home stays behind" in error["message"]
        assert "submit the notebook itself" in error["hint"]
        assert exchange.jobs() == {near["name"]}
        assert not pod.post(f"jobs/{near['name']}/rerun")["isolated"]
        apart = pod.submit(device="near", isolated=True)
        assert pod.post(f"jobs/{apart['name']}/rerun", device="far")["isolated"]


def test_a_dev_pod_of_root_is_told_and_refused(exchange: FileExchange) -> None:
    with dev_pod(exchange, "ReadWriteMany", NODES, securityContext={"runAsUser": 0}) as pod:
        (problem,) = [
            p for p in pod.post("preflight", notebook="home/a.ipynb")["problems"] if p["blocking"]
        ]
        answer = pod.submit()
    assert problem["code"] == "runs_as_root"
    assert answer["error"]["code"] == "refused"
    assert answer["error"]["message"] == problem["message"]
    assert exchange.jobs() == frozenset()


def test_a_user_that_the_image_names_is_told_unless_the_cluster_knows_it(
    exchange: FileExchange,
) -> None:
    def codes(**status: Any) -> set[str]:
        statuses = [{"name": "notebook", "imageID": PINNED_IMAGE, **status}]
        told = {"containerStatuses": statuses}
        with dev_pod(exchange, "ReadWriteMany", NODES, status=told) as pod:
            problems = pod.post("preflight", notebook="home/a.ipynb")["problems"]
        return {problem["code"] for problem in problems}

    assert "user_unknown" in codes()
    assert "user_unknown" not in codes(user={"linux": {"uid": 1001, "gid": 100}})


UNKNOWN_BUILD: dict[str, Any] = {
    "image": "notebook:1",
    "status": {"containerStatuses": [{"name": "notebook", "imageID": f"sha256:{'b' * 64}"}]},
}
"""A dev pod whose image came from no registry."""


def test_an_image_whose_build_is_not_known_is_told_and_refused(exchange: FileExchange) -> None:
    """Its tag may mean another image by now, or on another node."""
    with dev_pod(exchange, "ReadWriteMany", NODES, **UNKNOWN_BUILD) as pod:
        before = pod.post("preflight", notebook="home/a.ipynb")
        (problem,) = (p for p in before["problems"] if p["blocking"])
        answer = pod.submit()
        assert exchange.jobs() == frozenset()
        other = pod.submit(device="ready")  # with an image of its own
        rerun = pod.post(f"jobs/{other['name']}/rerun", device="near")
        assert exchange.jobs() == {other["name"]}
    assert (problem["code"], before["mounts"]) == ("image_unpinned", ["/home"])
    assert "JUPYTER_TO_JOB_UNPINNED_IMAGES" in problem["hint"]
    for refused in (answer, rerun):
        assert refused["error"]["code"] == "refused"
        assert refused["error"]["message"] == problem["message"]


def test_the_administrator_may_allow_images_from_no_registry(exchange: FileExchange) -> None:
    rules = tenants(unpinned_images=True)
    with dev_pod(exchange, "ReadWriteMany", NODES, rules=rules, **UNKNOWN_BUILD) as pod:
        problems = pod.post("preflight", notebook="home/a.ipynb")["problems"]
        job = pod.submit()
    told = {problem["code"]: problem["blocking"] for problem in problems}
    assert told["image_unpinned"] is False
    origin = exchange.document(job["name"], layout.ORIGIN) or {}
    assert (origin["image"], origin["image_pinned"]) == ("notebook:1", False)


def test_an_image_that_is_not_told_yet_is_waited_for(
    exchange: FileExchange, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The kubelet reports a moment after the start, and a pod is read once."""
    statuses: list[Any] = [{"name": "notebook", "imageID": "", "state": {"waiting": {}}}]
    pod_of_ada: dict[str, Any] = {"image": "notebook:1", "status": {"containerStatuses": statuses}}
    with dev_pod(exchange, "ReadWriteMany", NODES, **pod_of_ada) as pod:
        with monkeypatch.context() as impatient:
            impatient.setattr(identity, "IMAGE_LOOKS", 2)
            early = pod.submit()["error"]
        assert (early["code"], early["message"]) == (
            "unavailable",
            "Kubernetes does not tell yet which image your pod runs.",
        )
        told = {**statuses[0], "imageID": PINNED_IMAGE}
        threading.Timer(identity.IMAGE_INTERVAL / 2, lambda: statuses.__setitem__(0, told)).start()
        job = pod.submit()
    assert (exchange.document(job["name"], layout.ORIGIN) or {})["image"] == PINNED_IMAGE


def test_a_queue_where_kueue_is_not_installed(exchange: FileExchange) -> None:
    """Its jobs would wait for ever."""
    with dev_pod(exchange, "ReadWriteMany", NODES) as pod:
        old = pod.submit(flavor="queued")
    with dev_pod(exchange, "ReadWriteMany", NODES, lacks_kueue=lambda: True) as pod:
        problems = pod.post("preflight", notebook="home/a.ipynb", flavor="queued")["problems"]
        refused = [pod.submit(flavor="queued"), pod.post(f"jobs/{old['name']}/rerun")]
        others = pod.post("preflight", notebook="home/a.ipynb")["problems"]
        assert pod.submit()["flavor"] == "small"
    (problem,) = (problem for problem in problems if problem["code"] == "no_kueue")
    assert problem["blocking"]
    assert "queue 'gpus' of Kueue, and this cluster has no Kueue" in problem["message"]
    assert "ask your administrator" in problem["hint"]
    for answer in refused:
        assert answer["error"]["message"] == problem["message"]
        assert answer["error"]["code"] == "refused"
    assert "no_kueue" not in {problem["code"] for problem in others}


@pytest.mark.parametrize(
    ("example", "place", "path", "notebook", "mounts"),
    [
        ("mount", "/datasets", "/datasets", "datasets/a.ipynb", []),
        ("ca-bundle", "/etc/ca-bundle", "/etc/ca-bundle", "etc/ca-bundle/a.ipynb", []),
        ("mount", "/datasets", "/home", "home/a.ipynb", ["/home"]),
        ("mount", "/home/data", "/home", "home/a.ipynb", ["/home"]),
        ("mount", "/home/data", "/home", "home/data/a.ipynb", ["/home"]),
    ],
)
def test_what_the_administrator_mounts_at_the_same_place(
    exchange: FileExchange,
    example: str,
    place: str,
    path: str,
    notebook: str,
    mounts: list[str],
) -> None:
    text = (PATCHES / f"{example}.yaml").read_text()
    text = text.replace("mountPath: /datasets", f"mountPath: {place}")
    patch = read_patch(text.encode(), example)
    isolated = f"/{notebook}".startswith(place)
    with dev_pod(exchange, "ReadWriteMany", NODES, patch, path) as pod:
        before = pod.post("preflight", notebook=notebook)
        job = pod.submit(notebook=notebook)
    (*told,) = (p["message"] for p in before["problems"] if p["code"] == "volume_left")
    assert (job["mounts"], job["isolated"], job["left_behind"]) == (mounts, isolated, told)
    reason = f"{place} stays behind: the administrator mounts something of their own here."
    assert told == ([reason] if isolated else [])
    request, origin = exchange.request(job["name"]), exchange.document(job["name"], layout.ORIGIN)
    pods = JobPods("agent:1", "http://gateway", patch=patch)
    assert job_manifest(request, origin or {}, pods)["kind"] == "Job"


OWN_TAINT = {"key": "example.org/jobs", "value": "", "effect": "NoSchedule"}
TAINTED = [replace(each, taints=(OWN_TAINT,)) for each in NODES]
SHIPPED = read_patch((PATCHES / "affinity.yaml").read_bytes(), "affinity.yaml")


@pytest.mark.parametrize(
    ("patch", "nodes", "mounts", "lacks"),
    [
        ({}, NODES, ["/home"], False),
        ({}, TAINTED, [], True),
        ({"spec": {"tolerations": [{"key": "example.org/jobs", "operator": "Exists"}]}}, TAINTED,
         ["/home"], False),
        ({"spec": {"nodeSelector": {"pool": "jobs"}}}, NODES, [], True),
        ({"spec": {"nodeSelector": None}}, NODES, [], False),  # on any node, then
        (SHIPPED, TAINTED, [], False),
        ({"spec": {"affinity": {"podAntiAffinity": {}}}}, NODES, ["/home"], False),
    ],
)  # fmt: skip
def test_the_patch_says_on_which_nodes_jobs_may_be(
    exchange: FileExchange, patch: Any, nodes: list[NodeRecord], mounts: list[str], lacks: bool
) -> None:
    with dev_pod(exchange, "ReadWriteOnce", nodes, patch) as pod:
        before = pod.post("preflight", notebook="home/work/train.ipynb", device="near")
        assert pod.submit(device="near")["mounts"] == before["mounts"] == mounts
    messages = [problem["message"] for problem in before["problems"]]
    assert ("No node has the device near now." in messages) is lacks


@pytest.mark.parametrize(
    ("flavor", "in_use", "needs"),
    [
        ("part", 0, []),
        ("part", 1, [{"resource": "slice", "amount": "1", "free": "0"}]),
        ("parts", 0, []),  # a device's limits are given once, whatever `gpus` says
        ("parts", 1, [{"resource": "slice", "amount": "1", "free": "0"}]),
        ("two", 0, [{"resource": "ready", "amount": "2", "free": "1"}]),
    ],
)
def test_it_is_told_that_fewer_devices_are_free(
    exchange: FileExchange, flavor: str, in_use: int, needs: list[Any]
) -> None:
    there = {"example.org/gpu": Decimal(1), "example.org/slice": Decimal(1)}
    nodes = [NodeRecord("n", "n", {}, capacity=there, allocatable=there)]
    busy = [PodRequests("others", "busy", "b", "n", {"example.org/slice": Decimal(in_use)})]
    with dev_pod(exchange, "ReadWriteMany", nodes, busy=busy) as pod:
        found = pod.post("preflight", notebook=NOTEBOOK_PATH, flavor=flavor)
    assert found["wait"]["needs"] == needs


def test_nothing_is_planned_before_the_nodes_are_known(exchange: FileExchange) -> None:
    """Another plan a moment later would be none of what the dialog had said."""
    starting, nodes = threading.Event(), list[NodeRecord]()
    with dev_pod(exchange, "ReadWriteOnce", nodes, is_starting=starting.is_set) as pod:
        nodes += NODES
        old = pod.submit(device="near")
        del nodes[:]
        starting.set()
        for answer in (
            pod.post("preflight", notebook="home/work/train.ipynb", device="near"),
            pod.submit(device="near"),
            pod.post(f"jobs/{old['name']}/rerun"),
        ):
            assert answer["error"]["code"] == "unavailable"
            assert "controller is starting" in answer["error"]["message"]
        assert exchange.jobs() == {old["name"]}

        nodes += NODES
        starting.clear()
        assert pod.submit(device="near")["mounts"] == ["/home"]


def test_the_origin_has_the_architecture_of_its_node(exchange: FileExchange) -> None:
    with dev_pod(exchange, "ReadWriteMany", NODES) as pod:
        job = pod.submit()
    origin = exchange.document(job["name"], layout.ORIGIN) or {}
    assert (origin["architecture"], origin["node"]) == ("amd64", "here")


def test_the_record_has_the_names_of_variables_that_come_along(exchange: FileExchange) -> None:
    reference = {"name": "proxies", "key": "http"}
    env = [
        {"name": "LANG", "value": "C.UTF-8"},
        {"name": "HTTP_PROXY", "valueFrom": {"configMapKeyRef": reference}},
        {"name": "PASSWORD", "value": "secret"},
    ]
    with dev_pod(exchange, "ReadWriteMany", NODES, env=env) as pod:
        job = pod.submit(env={"MINE": "1"})
        answer = pod.client.get(f"jobs/{job['name']}/record", headers=pod.headers)
    assert answer.status_code == 200, answer.text
    record = answer.json()
    assert (record["variables"], record["env"]) == (["HTTP_PROXY", "LANG"], ["MINE"])
    assert record["image"] == PINNED_IMAGE
