"""The cluster's side of preflight, with a pretend cluster; tests/cluster has the real one."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from kubernetes.aio import client

from jupyter_to_job.backends.kubernetes import job_manifest, pod_manifest
from jupyter_to_job.backends.kubernetes.records import job_uid_of
from jupyter_to_job.controller.cluster.cluster import Cluster
from jupyter_to_job.controller.preflight import cluster_checks
from jupyter_to_job.controller.preflight.cluster_checks import ClusterChecks
from jupyter_to_job.controller.reconciling.known_kernels import KnownKernels
from jupyter_to_job.domain.errors import BadInput, JobsError, Refused, Unavailable
from jupyter_to_job.domain.job import State
from jupyter_to_job.domain.preflight import JobImage
from jupyter_to_job.domain.state import AttemptStatus, Ended
from jupyter_to_job.exchange import Request

from .test_manifest import ORIGIN, PODS, REQUEST

FULL = Refused(
    "Kubernetes answered 403: exceeded quota: q, requested: pods=1, used: pods=3, limited: pods=3"
)
INSECURE = Refused('pods "x" is forbidden: violates PodSecurity "restricted:latest": a b')


WEBHOOK = Refused('admission webhook "pods.example" denied the request: no bare pods')
POLICY = Refused(
    "ValidatingAdmissionPolicy 'bare-pods' with binding 'bare-pods' denied request: no bare pods"
)


class PretendCluster:
    """Says the same to every Job, and to every pod; counts the trials."""

    def __init__(self, job: JobsError | None = None, pod: JobsError | None = None) -> None:
        self.job, self.pod = job, pod
        self.tried: list[str] = []
        self.both = asyncio.Barrier(2) if hasattr(asyncio, "Barrier") else None

    async def try_job(self, manifest: Any) -> None:
        await self._say(manifest, self.job)

    async def try_pod(self, manifest: Any) -> None:
        await self._say(manifest, self.pod)

    async def _say(self, manifest: Any, error: JobsError | None) -> None:
        self.tried.append(manifest["kind"])
        if self.both is not None:
            await self.both.wait()  # neither waits for the other one's answer
        if error is not None:
            raise error


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A slow machine takes no answer away."""
    monkeypatch.setattr(cluster_checks, "MAX_WAIT", 60.0)
    monkeypatch.setattr(cluster_checks, "TRIAL_TTL", 3600.0)


def build(request: Request, origin: Any) -> Any:
    return job_manifest(request, origin, PODS)


def ask(
    make: Callable[[], Any], times: int = 1, build: Callable[..., Any] = build
) -> tuple[dict[str, bool], Any]:
    """Check a request some times; return the last problems, whether they block, and the cluster."""

    async def live() -> tuple[dict[str, bool], Any]:
        cluster = make()
        checks = ClusterChecks(cluster, build, KnownKernels())
        for _ in range(times):
            found = await asyncio.to_thread(checks.problems, REQUEST, ORIGIN)
        return {problem.code: problem.blocking for problem in found}, cluster

    return asyncio.run(live())


def test_what_fits_has_no_problem() -> None:
    found, cluster = ask(PretendCluster, times=3)
    assert found == {}
    assert sorted(cluster.tried) == ["Job", "Pod"]  # the same question is asked once


def test_the_pod_is_tried_as_one_of_a_job() -> None:
    """Policies refuse pods that no controller makes."""
    pod = pod_manifest(build(REQUEST, ORIGIN))
    assert job_uid_of(pod)
    client.V1Pod.model_validate(pod)
    (owner,) = pod["metadata"]["ownerReferences"]
    assert (owner["apiVersion"], owner["kind"], owner["name"]) == ("batch/v1", "Job", REQUEST.name)


def test_a_wrong_patch_of_the_administrator() -> None:
    def refuse(_request: Request, _origin: Any) -> Any:
        raise BadInput("The patch touches the agent.", "Mend it.")

    found, cluster = ask(PretendCluster, build=refuse)
    assert (found, cluster.tried) == ({"cluster_refuses": True}, [])


def test_a_patch_of_which_the_client_makes_no_pod() -> None:
    def wrong(request: Request, origin: Any) -> Any:
        patch: Any = {"spec": {"dnsConfg": {}}}
        return job_manifest(request, origin, replace(PODS, patch=patch))

    found, _ = ask(lambda: Cluster(client.ApiClient()), build=wrong)
    assert found == {"cluster_refuses": True}


@pytest.mark.parametrize(
    ("job", "pod", "expected"),
    [
        (FULL, None, {"over_quota": False}),
        (None, INSECURE, {"cluster_refuses": True}),
        (FULL, INSECURE, {"over_quota": False, "cluster_refuses": True}),
        (BadInput('Job.batch "x" is invalid: spec'), None, {"cluster_refuses": True}),
        (WEBHOOK, None, {"cluster_refuses": True}),
        (None, WEBHOOK, {"cluster_refuses": False}),  # the pod was not the Job controller's
        (FULL, POLICY, {"over_quota": False, "cluster_refuses": False}),
        (BadInput('admission webhook "x" does not support dry run'), None, {}),
        (None, Refused('User "x" cannot create resource "pods" in the namespace "team"'), {}),
        (
            None,
            Refused(
                "ValidatingAdmissionPolicy 'jupyter-to-job-own-jobs' with binding "
                "'jupyter-to-job-own-jobs' denied request: Only the Job controller."
            ),
            {},
        ),
        (Unavailable("Kubernetes cannot be reached."), None, {"not_checked": False}),
    ],
)
def test_refusals(job: JobsError | None, pod: JobsError | None, expected: dict[str, bool]) -> None:
    assert ask(lambda: PretendCluster(job, pod))[0] == expected


def test_a_cluster_that_does_not_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster_checks, "MAX_WAIT", 0.05)

    class Silent(PretendCluster):
        async def _say(self, manifest: Any, error: JobsError | None) -> None:
            await asyncio.Event().wait()

    assert ask(Silent)[0] == {"not_checked": False}


def test_only_some_wait_for_a_cluster_that_does_not_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    """The threads are those that agents' output goes through."""
    monkeypatch.setattr(cluster_checks, "MAX_ASKING", 1)

    async def live() -> None:
        answered, asked = asyncio.Event(), asyncio.Event()

        class Slow(PretendCluster):
            async def _say(self, manifest: Any, error: JobsError | None) -> None:
                self.tried.append(manifest["kind"])
                asked.set()
                await answered.wait()

        cluster = Slow()
        checks = ClusterChecks(cluster, build, KnownKernels())
        first = asyncio.create_task(asyncio.to_thread(checks.problems, REQUEST, ORIGIN))
        await asked.wait()
        (second,) = await asyncio.to_thread(checks.problems, REQUEST, ORIGIN)
        assert second.code == "not_checked"
        answered.set()
        assert await first == []
        assert await asyncio.to_thread(checks.problems, REQUEST, ORIGIN) == []

    asyncio.run(live())


def test_kernels_that_earlier_runs_found() -> None:
    kernels = KnownKernels()
    gone = "The kernel 'ir' is not installed or did not start: there is no kernel of that name. x"
    lost = Ended(State.FAILED, "NoKernel", gone, "2026-01-02T00:00:00.000Z")
    ran = AttemptStatus(1, alive=False, running=True, ended=replace(lost, reason="CellError"))
    failed = AttemptStatus(1, alive=False, running=True, ended=lost)  # it has a start, too
    kernels.learn(replace(REQUEST, kernel="python3"), ORIGIN, ran)
    kernels.learn(replace(REQUEST, kernel="ir"), ORIGIN, failed)
    kernels.learn(replace(REQUEST, kernel="julia"), ORIGIN, replace(failed, ended=None))
    kernels.learn(replace(REQUEST, kernel="eves", owner="team/eve"), ORIGIN, ran)
    older = replace(ran, ended=replace(lost, finished="2026-01-01T00:00:00.000Z"))
    kernels.learn(replace(REQUEST, kernel="ir"), ORIGIN, older)

    async def image_of(request: Request) -> JobImage:
        return ClusterChecks(PretendCluster(), build, kernels).image(request, ORIGIN)

    own = JobImage(ORIGIN["image"], True, ("python3",), ("ir",))
    assert asyncio.run(image_of(REQUEST)) == own
    other = replace(REQUEST, flavor_spec={"image": "other:1"})
    assert asyncio.run(image_of(other)) == JobImage("other:1", is_own=False)
