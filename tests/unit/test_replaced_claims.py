"""A job does not mount another claim that has the name of its dev pod's."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest

from job_runner.protocol import documents, layout
from jupyter_to_job.controller.__main__ import Controller, Rules
from jupyter_to_job.controller.certificate import Certificate
from jupyter_to_job.controller.cluster.cluster import Cluster
from jupyter_to_job.controller.job_tracker import JobTracker
from jupyter_to_job.controller.metrics import Metrics
from jupyter_to_job.controller.reconciling.run_admission import RunAdmission
from jupyter_to_job.controller.reconciling.wait_limits import WaitLimits
from jupyter_to_job.domain.errors import JobsError, NotFound, Refused, Unavailable
from jupyter_to_job.domain.job import State
from jupyter_to_job.exchange import FileExchange
from jupyter_to_job.wiring import Settings

from ..gateways import context_of, serving
from ..pretend_cluster import tenants
from .test_operations import KUBECONFIG
from .test_reconciler import NAME, NAMESPACE, ORIGIN, PODS, Life


def mount(claim: str | None, **more: Any) -> dict[str, Any]:
    path = f"/{claim or 'examples'}"
    return {
        "path": path, "sub_path": "", "read_only": False, "volume": path[1:],
        "kind": "persistentVolumeClaim", "source": {"claimName": claim}, "claim": claim,
        "claim_uid": claim and f"uid-of-{claim}", "access_modes": ["ReadWriteMany"], **more,
    }  # fmt: skip


EXAMPLES = mount(None, kind="configMap", source={"name": "examples"}, access_modes=[])
MOUNTS = [mount("home"), mount("data"), EXAMPLES, mount("left")]


class Claims:
    """What the API server says of each claim."""

    def __init__(self) -> None:
        self.uids = {name: f"uid-of-{name}" for name in ("home", "data")}
        self.error: JobsError | None = None
        self.reads = 0

    async def read(self, namespace: str, name: str) -> dict[str, Any]:
        assert namespace == NAMESPACE
        self.reads += 1
        if self.error is not None:
            raise self.error
        if name not in self.uids:
            raise NotFound(f"Kubernetes answered 404: {name} not found")
        return {"metadata": {"name": name, "uid": self.uids[name]}}


def life_with_volumes(tmp_path: Path) -> Life:
    paths = tuple(mount["path"] for mount in MOUNTS[:-1])
    return Life(tmp_path, 0, origin={**ORIGIN, "node": None, "mounts": MOUNTS}, mounts=paths)


@pytest.mark.parametrize(
    ("uids", "error", "said"),
    [
        ({"data": None}, None, "The volume claim data is gone."),
        ({"home": "uid-of-eves"}, None, "The volume claim home is another one by now."),
        ({}, Refused("Kubernetes answered 403: no claims for you"), "no claims for you"),
    ],
)
def test_it_waits_and_says_why(
    tmp_path: Path, uids: dict[str, str | None], error: JobsError | None, said: str
) -> None:
    async def live() -> None:
        life = life_with_volumes(tmp_path)
        claims = Claims()
        life.cluster.claim = claims.read
        before, claims.error = dict(claims.uids), error
        claims.uids = {k: u for k, v in before.items() if (u := uids.get(k, v)) is not None}
        with pytest.raises(Unavailable):
            await life.reconciler._reconcile(NAME)
        placement = life.reconciler.placement_of(NAME)
        assert placement is not None and said in str(placement.message)
        assert (life.cluster.made, life.state()) == (0, State.QUEUED)

        claims.uids, claims.error = before, None
        await life.settle()
        assert life.cluster.made == 1 and life.reconciler.placement_of(NAME) is None

    asyncio.run(live())


def test_with_its_namespace_the_job_ends(tmp_path: Path) -> None:
    async def live() -> None:
        life = life_with_volumes(tmp_path)
        life.cluster.error = NotFound("Kubernetes answered 404: the namespace is not found.")
        await life.settle()
        assert (life.state(), life.job().reason) == (State.FAILED, "BackendError")

    asyncio.run(live())


def test_a_job_ends_whose_claim_was_exchanged_before_its_pod_came(tmp_path: Path) -> None:
    """Its Job was made long ago: it was suspended, its pods were refused, or it is a retry."""

    async def live() -> None:
        life = life_with_volumes(tmp_path)
        claims = Claims()
        life.cluster.claim = claims.read
        await life.settle()
        life._watch_jobs()
        life._pod()
        life._schedule()
        life._watch_pods()
        assert (life.cluster.made, len(life.cluster.pod_records)) == (1, 1)

        claims.error = Unavailable("The API server does not answer.")
        with pytest.raises(Unavailable):
            await life.reconciler.runs.admit(NAME, "attempt-1")
        claims.error = None
        await life.reconciler.runs.admit(NAME, "attempt-1")
        assert not life.exchange.has(NAME, layout.STOP)

        claims.uids["home"] = "uid-of-eves"
        with pytest.raises(Refused, match="The volume claim home is another one by now"):
            await life.reconciler.runs.admit(NAME, "attempt-1")
        for _ in range(4):
            await life.settle()
            life._gone()
            life._watch_jobs()
            life._watch_pods()
        job = life.job()
        assert (life.state(), job.reason) == (State.FAILED, "BackendError")
        assert "The volume claim home is another one by now." in str(job.message)
        assert "Submit it again" in str(job.message)
        assert (len(life.cluster.job_records), len(life.cluster.pod_records)) == (0, 0)

    asyncio.run(live())


Claim = Callable[[int], httpx.Response]


@pytest.fixture
def agent(tmp_path: Path) -> Iterator[tuple[Life, Claims, Claim]]:
    """A job with volumes, what the API server says of them, and what claims an attempt of it."""
    life = life_with_volumes(tmp_path / "exchange")
    claims, stopped = Claims(), list[str]()
    cluster: Any = life.cluster
    cluster.claim = claims.read
    runs = RunAdmission(cluster, life.exchange, JobTracker(Metrics()), stopped.append)
    headers = {"Authorization": f"Bearer {NAME}/pod-1"}
    with (
        context_of(life.exchange) as context,
        serving(replace(context, runs=runs)) as url,
        httpx.Client(base_url=url, headers=headers, timeout=30) as client,
    ):

        def claim(attempt: int) -> httpx.Response:
            path = f"/api/exchange/{NAME}/attempt-{attempt}/{layout.RUNNER}"
            return client.put(path, content=documents.encode({"pod": "pod-1"}))

        yield life, claims, claim


def test_the_claims_of_each_attempt_are_read_once(agent: tuple[Life, Claims, Claim]) -> None:
    life, claims, claim = agent
    claims.error = Unavailable("The API server does not answer.")
    assert claim(1).status_code == 503
    assert not life.exchange.has(NAME, f"attempt-1/{layout.RUNNER}")
    claims.error, claims.reads = None, 0
    assert claim(1).status_code == 200
    assert claim(1).status_code == 200  # by an agent that was started again
    assert claims.reads == 2


def test_an_agent_does_not_begin_beside_another_claim(agent: tuple[Life, Claims, Claim]) -> None:
    life, claims, claim = agent
    assert claim(1).status_code == 200
    claims.uids["data"] = "uid-of-eves"
    for _ in range(2):  # it tries again, and never goes on to the next attempt
        refused = claim(2)
        assert (refused.status_code, refused.json()["error"]["code"]) == (403, "refused")
        assert not life.exchange.has(NAME, f"attempt-2/{layout.RUNNER}")
    assert life.exchange.has(NAME, layout.STOP)


def test_the_gateway_of_a_controller_asks(tmp_path: Path) -> None:
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text(KUBECONFIG.format(1))
    exchange = FileExchange(tmp_path / "exchange", is_private=False)
    exchange.prepare()
    rules = Rules(tenants(), WaitLimits(), PODS, dict, Certificate(""))

    async def make() -> Controller:
        async with Cluster.connect(str(kubeconfig)) as cluster:
            return Controller(Settings.load(), rules, exchange, cluster, Metrics())

    controller = asyncio.run(make())
    assert controller._context.runs is controller._reconciler.runs
