"""Users, and attackers, at a real gateway: who reaches which job, and what asking costs."""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_notebook

from job_runner.protocol import layout
from jupyter_to_job.controller.callers.identity import Identities
from jupyter_to_job.domain.errors import Conflict
from jupyter_to_job.domain.job import DeliveryState, Submission
from jupyter_to_job.exchange import FileExchange
from jupyter_to_job.flavors import SHIPPED
from jupyter_to_job.service.delivery import deliver_if_pulling
from jupyter_to_job.service.remote import RemoteJobs
from jupyter_to_job.service.submitting.submission import Caller, local_environment

from .. import notebooks
from ..gateways import serve
from ..pretend_cluster import JOB_LABEL, Clock, PretendCluster, tenants, token_for

JOB_UID = "job-uid"
DELIVERY = {"v": 1, "path": "a", "sha256": "0" * 64, "time": "2026-01-01T00:00:00.000Z"}
NOTEBOOK = nbformat.writes(new_notebook(cells=[new_code_cell("print(1)")])).encode()


@pytest.fixture
def exchange(tmp_path: Path) -> FileExchange:
    made = FileExchange(tmp_path / "exchange")
    made.prepare()
    return made


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def cluster() -> PretendCluster:
    return PretendCluster()


@contextmanager
def gateway(
    exchange: FileExchange,
    cluster: PretendCluster,
    clock: Clock,
    catalog: Path = SHIPPED,
    **rules: Any,
) -> Iterator[str]:
    identities = Identities(cluster, tenants(**rules), cluster, clock)
    with serve(exchange, identities, catalog) as url:
        yield url


@pytest.fixture
def url(exchange: FileExchange, cluster: PretendCluster, clock: Clock) -> Iterator[str]:
    with gateway(exchange, cluster, clock) as url:
        yield url


class Call:
    """Sends requests with a token. A document as a body is sent as JSON."""

    def __init__(self, client: httpx.Client) -> None:
        self.client = client

    def __call__(
        self, token: str, method: str, path: str, body: Any = None, key: str | None = None
    ) -> httpx.Response:
        content = body if isinstance(body, bytes | None) else json.dumps(body).encode()
        headers = {"Authorization": f"Bearer {token}"}
        if key is not None:
            headers["Idempotency-Key"] = key
        return self.client.request(method, path, content=content, headers=headers)

    def status(self, token: str, method: str, path: str, body: Any) -> int:
        """Return the status of an answer."""
        try:
            return self(token, method, path, body).status_code
        except httpx.TransportError:  # refused while the body was still being sent
            return 403


@contextmanager
def client(url: str) -> Iterator[Call]:
    limits = httpx.Limits(max_keepalive_connections=0)  # a refusal may end its connection
    with httpx.Client(base_url=f"{url}/api/", timeout=20, trust_env=False, limits=limits) as made:
        yield Call(made)


@pytest.fixture
def call(url: str) -> Iterator[Call]:
    with client(url) as call:
        yield call


def submit(
    call: Call, token: str, *, key: str | None = None, status: int = 201, output: str | None = None
) -> str:
    """Submit a notebook that prints, over REST; return the job's name."""
    digest = hashlib.sha256(NOTEBOOK).hexdigest()
    assert call(token, "PUT", f"blobs/{digest}", NOTEBOOK).status_code == 200
    body = {"notebook": "home/train.ipynb", "expected_sha256": digest, "output": output}
    answer = call(token, "POST", "jobs", body, key=key)
    assert answer.status_code == status, answer.text
    return str(answer.json()["name"])


def listed(call: Call, token: str) -> set[str]:
    return {job["name"] for job in call(token, "GET", "jobs").json()["jobs"]}


def reached(call: Call, token: str, job: str) -> dict[str, int]:
    """Try every route to a job; return the statuses of those that did not answer 404."""
    routes: list[tuple[str, str, Any]] = [
        ("GET", f"jobs/{job}", None),
        ("GET", f"jobs/{job}/logs", None),
        ("GET", f"jobs/{job}/journal", None),
        ("GET", f"jobs/{job}/notebook", None),
        ("GET", f"exchange/{job}/request.json", None),
        ("HEAD", f"exchange/{job}/snapshot.ipynb", None),
        ("GET", f"exchange/{job}/attempt-1/result.ipynb", None),
        ("PUT", f"exchange/{job}/delivery.json", DELIVERY),
        ("PUT", f"exchange/{job}/attempt-2/runner.json", {"v": 1, "pod": "mine"}),
        ("POST", f"exchange/{job}/attempt-1/journal/00000001.jsonl?offset=0", b"x"),
        ("POST", f"jobs/{job}/cancel", {}),
        ("POST", f"jobs/{job}/rerun", {}),
        ("POST", f"jobs/{job}/deliver", {}),
        ("DELETE", f"jobs/{job}", None),
    ]
    answers = {
        f"{method} {path}": call.status(token, method, path, b) for method, path, b in routes
    }
    return {route: status for route, status in answers.items() if status != 404}


def test_users_of_one_name_in_two_namespaces(call: Call, cluster: PretendCluster) -> None:
    ada, other_ada = cluster.add_pod("team"), cluster.add_pod("other")
    job = submit(call, ada)
    assert call(ada, "GET", f"jobs/{job}").json()["owner"] == "team/ada"
    assert reached(call, other_ada, job) == {}
    assert (listed(call, ada), listed(call, other_ada)) == ({job}, set())
    digest = hashlib.sha256(NOTEBOOK).hexdigest()  # that blob is the other's own
    body = {"notebook": "home/train.ipynb", "expected_sha256": digest}
    assert call(other_ada, "POST", "jobs", body).status_code == 409


def test_a_hub_whose_namespaces_change(
    exchange: FileExchange, cluster: PretendCluster, clock: Clock
) -> None:
    with gateway(exchange, cluster, clock, owner_scope="cluster") as url, client(url) as call:
        job = submit(call, cluster.add_pod("team"))
        assert call(cluster.add_pod("other"), "GET", f"jobs/{job}").json()["owner"] == "ada"
        assert reached(call, cluster.add_pod("other", "jupyter-eve", username="eve"), job) == {}


def test_an_unlisted_namespace(call: Call, cluster: PretendCluster) -> None:
    job = submit(call, cluster.add_pod("team"))
    count = cluster.reviews
    stranger = cluster.add_pod("elsewhere")
    assert set(reached(call, stranger, job).values()) == {403}
    assert (
        "elsewhere may not submit jobs" in call(stranger, "GET", "jobs").json()["error"]["message"]
    )
    assert cluster.reviews == count


def test_a_pod_that_says_not_whose_it_is(call: Call, cluster: PretendCluster) -> None:
    nobody = cluster.add_pod(username=None)
    for _ in range(3):
        answer = call(nobody, "GET", "jobs")
        assert (answer.status_code, "does not say whose" in answer.text) == (403, True)
    assert cluster.reads == ["pod team/jupyter-ada"]  # the refusal is remembered, too


def test_a_namespace_without_our_role_says_so_and_harms_no_other(
    call: Call, cluster: PretendCluster
) -> None:
    cluster.forbidden.add("other")
    answer = call(cluster.add_pod("other"), "GET", "jobs")
    assert answer.status_code == 503
    assert "may not read the namespace other" in answer.json()["error"]["message"]
    assert "Role" in answer.json()["error"]["hint"]
    assert call(cluster.add_pod("team"), "GET", "jobs").status_code == 200


def test_a_pod_is_reviewed_each_minute_and_read_once(
    call: Call, cluster: PretendCluster, clock: Clock
) -> None:
    token = cluster.add_pod(claim="home-ada")
    for _ in range(4):
        assert call(token, "GET", "jobs").status_code == 200
        clock.now += 61
    assert cluster.reviews == 4
    assert cluster.reads == ["pod team/jupyter-ada", "claim team/home-ada"]
    renewed = token_for(cluster.tokens[token])  # as the kubelet does before it expires
    cluster.tokens[renewed] = cluster.tokens[token]
    assert call(renewed, "GET", "jobs").status_code == 200
    assert len(cluster.reads) == 2


def test_pods_that_ended_or_are_gone(call: Call, cluster: PretendCluster, clock: Clock) -> None:
    ended, gone = cluster.add_pod(name="a"), cluster.add_pod(name="b")
    cluster.pods["team", "a"]["status"]["phase"] = "Succeeded"
    assert call(ended, "GET", "jobs").status_code == 403
    assert call(gone, "GET", "jobs").status_code == 200
    cluster.add_pod(name="b", username="eve")  # another pod of that name
    clock.now += 61
    assert call(gone, "GET", "jobs").status_code == 403


CATALOG = """
apiVersion: jupyter-to-job.io/v1
default: {flavor: small, device: cpu}
flavors:
  small: {cpu: 1, memory: 1Gi, devices: [cpu]}
  large: {cpu: 8, memory: 9Gi, devices: [cpu], allowed: {groups: [research]}}
devices:
  cpu: {title: CPU}
"""


def test_groups(
    exchange: FileExchange, cluster: PretendCluster, clock: Clock, tmp_path: Path
) -> None:
    catalog = tmp_path / "flavors.yaml"
    catalog.write_text(CATALOG)
    rules: dict[str, Any] = {"catalog": catalog, "groups_annotation": "groups"}
    with gateway(exchange, cluster, clock, **rules) as url, client(url) as call:
        for name, groups, allowed in (("a", "staff, research", True), ("b", "staff", False)):
            token = cluster.add_pod(name=name, groups=groups)
            flavors = call(token, "GET", "flavors").json()["flavors"]
            assert flavors["large"]["allowed"] is allowed


# Agents ---------------------------------------------------------------------------------------


def read_request(call: Call, token: str, job: str) -> int:
    return call(token, "GET", f"exchange/{job}/request.json").status_code


@pytest.fixture
def job(call: Call, cluster: PretendCluster) -> str:
    """A job of Ada's, with a Job on record and its pod."""
    name = submit(call, cluster.add_pod())
    cluster.job_uids[name] = JOB_UID
    return name


def test_an_agent_and_its_own_job(call: Call, cluster: PretendCluster, job: str) -> None:
    agent = cluster.add_job_pod(job, job_uid=JOB_UID)
    assert read_request(call, agent, job) == 403  # not on record yet
    cluster.job_pods[job] = cluster.record(agent)
    assert read_request(call, agent, job) == 200  # at once: that refusal is not remembered
    assert reached(call, agent, submit(call, cluster.add_pod())) == {}
    for route in ("jobs", f"jobs/{job}", "flavors", "events"):
        assert call(agent, "GET", route).status_code == 404


def test_an_agent_costs_the_cluster_one_review(
    call: Call, cluster: PretendCluster, job: str
) -> None:
    agent = cluster.add_job_pod(job, job_uid=JOB_UID)
    cluster.job_pods[job] = cluster.record(agent)
    reviews, reads = cluster.reviews, list(cluster.reads)
    for _ in range(5):
        assert read_request(call, agent, job) == 200
    assert (cluster.reviews, cluster.reads) == (reviews + 1, reads)


def test_an_agents_rights_end_with_its_pod(call: Call, cluster: PretendCluster, job: str) -> None:
    agent = cluster.add_job_pod(job, job_uid=JOB_UID)
    cluster.job_pods[job] = cluster.record(agent)
    assert read_request(call, agent, job) == 200
    cluster.job_pods[job] = replace(cluster.record(agent), phase="Failed")
    assert read_request(call, agent, job) == 403
    cluster.job_pods[job] = replace(cluster.record(agent), uid="its replacement")
    assert read_request(call, agent, job) == 403
    del cluster.job_pods[job]
    assert read_request(call, agent, job) == 403


def test_a_job_of_that_name_with_another_uid_is_not_ours(
    call: Call, cluster: PretendCluster, job: str
) -> None:
    """Somebody made a Job with the name of one that has ended: its pods look like ours."""
    forged = cluster.add_job_pod(job, job_uid="forged")
    cluster.job_pods[job] = cluster.record(forged)
    assert set(reached(call, forged, job).values()) == {403}


@pytest.mark.parametrize("namespace", ["team", "other"])
def test_a_pod_that_looks_like_a_jobs(
    call: Call, cluster: PretendCluster, job: str, namespace: str
) -> None:
    agent = cluster.add_job_pod(job, job_uid=JOB_UID)
    cluster.job_pods[job] = cluster.record(agent)
    forged = cluster.add_job_pod(job, namespace, job_uid=JOB_UID, suffix="zzzzz")
    assert set(reached(call, forged, job).values()) == {403}
    assert read_request(call, agent, job) == 200


def test_a_dev_pod_with_our_label(call: Call, cluster: PretendCluster, job: str) -> None:
    token = cluster.add_pod(name="jupyter-eve")
    cluster.pods["team", "jupyter-eve"]["metadata"]["labels"] = {JOB_LABEL: job}
    assert set(reached(call, token, job).values()) == {403}


# Workspaces -----------------------------------------------------------------------------------


def test_two_servers_of_one_user_with_equal_paths(call: Call, cluster: PretendCluster) -> None:
    first, second = cluster.add_pod(claim="a"), cluster.add_pod(name="ada-2", claim="b")
    job = submit(call, first)
    assert (listed(call, first), listed(call, second)) == ({job}, set())
    assert events(call, second) == []
    assert [e["name"] for e in events(call, first)] == [job]

    assert call(second, "GET", f"jobs/{job}").json()["delivery"]["state"] == "held"
    assert call(second, "POST", f"jobs/{job}/deliver").status_code == 409
    assert call(second, "POST", f"jobs/{job}/rerun", {}).status_code == 409
    assert call(second, "PUT", f"exchange/{job}/delivery.json", DELIVERY).status_code == 409
    assert call(second, "GET", f"jobs/{job}/notebook").status_code == 200  # it is the user's

    assert call(first, "GET", f"jobs/{job}").json()["delivery"]["state"] == "pending"
    assert call(first, "PUT", f"exchange/{job}/delivery.json", DELIVERY).status_code == 200
    assert call(second, "GET", f"jobs/{job}").json()["delivery"]["state"] == "delivered"


def test_an_idempotency_key_is_for_one_notebook(call: Call, cluster: PretendCluster) -> None:
    """At one path of two servers there are two notebooks."""
    first, second = cluster.add_pod(claim="a"), cluster.add_pod(name="ada-2", claim="b")
    names = [submit(call, pod, key="nightly") for pod in (first, second)]
    assert [listed(call, pod) for pod in (first, second)] == [{name} for name in names]
    assert submit(call, first, status=200, key="nightly") == names[0]
    assert submit(call, second, status=200, key="nightly") == names[1]


def test_a_claim_outlives_its_pod(call: Call, cluster: PretendCluster) -> None:
    job = submit(call, cluster.add_pod(claim="a"))
    again = cluster.add_pod(claim="a")  # the server was started again
    assert listed(call, again) == {job}
    assert call(again, "PUT", f"exchange/{job}/delivery.json", DELIVERY).status_code == 200


def test_a_claim_that_was_made_anew_is_another_one(call: Call, cluster: PretendCluster) -> None:
    job = submit(call, cluster.add_pod(claim="a"))
    again = cluster.add_pod(claim="a")
    cluster.claims["team", "a"]["metadata"]["uid"] = "made anew"
    assert listed(call, again) == set()
    assert call(again, "PUT", f"exchange/{job}/delivery.json", DELIVERY).status_code == 409


def test_a_pod_without_a_claim(call: Call, cluster: PretendCluster) -> None:
    """Its files are gone with it. The job is still shown, or nobody would stop it."""
    first = cluster.add_pod()
    job = submit(call, first)
    again = cluster.add_pod()
    assert (listed(call, first), listed(call, again)) == ({job}, {job})
    assert call(again, "PUT", f"exchange/{job}/delivery.json", DELIVERY).status_code == 409
    assert call(first, "PUT", f"exchange/{job}/delivery.json", DELIVERY).status_code == 200


def test_an_output_elsewhere_counts_as_well(call: Call, cluster: PretendCluster) -> None:
    first = cluster.add_pod(claim="a")
    job = submit(call, first, output="tmp/result.ipynb")  # no claim is mounted there
    again = cluster.add_pod(claim="a")
    assert call(again, "PUT", f"exchange/{job}/delivery.json", DELIVERY).status_code == 409
    assert call(first, "PUT", f"exchange/{job}/delivery.json", DELIVERY).status_code == 200


def test_nothing_is_published_in_another_workspace(
    url: str, cluster: PretendCluster, tmp_path: Path
) -> None:
    """Both servers see their claims at the same path, here the same folder."""
    workspace = tmp_path / "workspace"
    notebooks.write(workspace / "train.ipynb", "print('# x')")
    first, second = (
        server(url, workspace, cluster.add_pod(name=claim, claim=claim, path=str(workspace)))
        for claim in ("a", "b")
    )
    name = first.submit(Submission("train.ipynb"))[0].name
    held = deliver_if_pulling(second, second.get(name))
    assert held.delivery.state is DeliveryState.HELD
    with pytest.raises(Conflict, match="another workspace"):
        second.deliver(name)
    assert [path.name for path in workspace.iterdir()] == ["train.ipynb"]
    assert deliver_if_pulling(first, first.get(name)).delivery.path == f"{name}.ipynb"
    assert (workspace / f"{name}.ipynb").is_file()


def test_origin_is_what_the_gateway_read(
    call: Call, cluster: PretendCluster, exchange: FileExchange
) -> None:
    job = submit(call, cluster.add_pod(claim="home-ada"))
    origin = exchange.document(job, layout.ORIGIN)
    assert origin is not None
    assert (origin["namespace"], origin["pod"], origin["owner"]) == (
        "team",
        "jupyter-ada",
        "team/ada",
    )
    (mount,) = origin["mounts"]
    assert (mount["claim"], mount["claim_uid"]) == ("home-ada", "team-home-ada-uid")
    assert mount["access_modes"] == ["ReadWriteOnce"]


def server(url: str, workspace: Path, token: str) -> RemoteJobs:
    """Return the use cases of a server in the pod that has a token."""
    file = workspace.parent / f"token-{hashlib.sha256(token.encode()).hexdigest()[:8]}"
    file.write_text(token)
    caller = Caller("", str(workspace), environment=local_environment(sys.executable))
    return RemoteJobs(url, file, caller)


def events(call: Call, token: str) -> list[Any]:
    """Return the jobs at the beginning of an event stream, up to its second heartbeat."""
    jobs, heartbeats = [], 0
    with call.client.stream(
        "GET", "events", headers={"Authorization": f"Bearer {token}"}
    ) as answer:
        for line in answer.iter_lines():
            heartbeats += line.startswith(":")
            if heartbeats == 3:  # the first comes at once
                break
            if line.startswith("data: "):
                jobs.append(json.loads(line.removeprefix("data: ")))
    return jobs
