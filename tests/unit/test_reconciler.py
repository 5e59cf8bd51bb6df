"""The reconciler with a pretend cluster, on which anything happens: every job ends, once.

`tests/cluster` has the real one. Here its objects come, go and fail in any order, hundreds of
times, and the controller is started anew at any moment.
"""

from __future__ import annotations

import asyncio
import os
import random
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from job_runner.attempt.finish import finish_job
from job_runner.protocol import documents, layout, times
from job_runner.protocol.outcome import CellCounts, Outcome, write_outcome
from jupyter_to_job.backends.kubernetes import ContainerEnd, JobPods, JobRecord, PodRecord
from jupyter_to_job.backends.kubernetes.records import NONCE
from jupyter_to_job.controller.reconciling.job_files import is_ending
from jupyter_to_job.controller.reconciling.next_step import EndAttempt
from jupyter_to_job.controller.reconciling.reconciler import Reconciler
from jupyter_to_job.controller.reconciling.wait_limits import WaitLimits
from jupyter_to_job.domain.errors import Conflict, JobsError, NotFound, Refused, Unavailable
from jupyter_to_job.domain.job import Job, State
from jupyter_to_job.domain.state import Placement
from jupyter_to_job.exchange import FileExchange
from jupyter_to_job.exchange.records import ClusterJob
from jupyter_to_job.service.reading.view import JobReader

from . import exchanges

NAME = "train-aaaaaaaa"
NAMESPACE = "team"
PODS = JobPods("agent:1", "http://gateway")
ORIGIN = {
    "namespace": NAMESPACE, "service_account": "default", "image": "notebook:1", "env": {},
    "image_pull_secrets": [], "security_context": {}, "nonce": "n" * 32,
}  # fmt: skip
LIMITS = WaitLimits(image=-1, agent=0, unschedulable=0)
"""An image that is not there ends a job at once."""
DISRUPTIONS = ("EvictionByEvictionAPI", "PreemptionByScheduler", "TerminationByKubelet")


class Records(dict[tuple[str, str], Any]):
    """What there is of a kind, and as `records` what the watch has told of it so far."""

    def __init__(self) -> None:
        super().__init__()
        self.records: dict[tuple[str, str], Any] = {}
        self.tell: Callable[[Any], object] = str
        self.synced = asyncio.Event()
        self.synced.set()

    def __bool__(self) -> bool:
        return True  # as an informer without records is

    async def run(self) -> None:
        """Wait for ever: a test says when the watch tells."""
        await asyncio.Event().wait()

    def watch(self) -> None:
        """Tell of what has changed."""
        for key in self.records.keys() | self.keys():
            known, current = self.records.get(key), self.get(key)
            if current is None:
                del self.records[key]
            else:
                self.records[key] = current
            if known != current:
                self.tell(current or known)

    def begin(self, tell: Callable[[Any], object]) -> Records:
        """List everything anew, as a controller does that begins."""
        self.tell, self.records = tell, {}
        return self


class PretendCluster:
    """Objects of one namespace, and the calls that the reconciler makes. `made` counts Jobs."""

    def __init__(self) -> None:
        self.job_records, self.pod_records, self.refusal_records = Records(), Records(), Records()
        self.made = 0
        self.crash = False
        self.error: JobsError | None = None
        self.claim: Callable[[str, str], Awaitable[Any]] = self._no_claim

    async def _no_claim(self, _namespace: str, name: str) -> Any:
        raise NotFound(f"Kubernetes answered 404: {name} not found")

    async def api_groups(self) -> frozenset[str]:
        return frozenset(["batch"])

    async def has_namespace(self, _namespace: str) -> bool:
        return not isinstance(self.error, NotFound)

    def jobs(self, _namespace: str | None, on_change: Callable[[Any], None]) -> Records:
        return self.job_records.begin(on_change)

    def pods(self, _namespace: str | None, on_change: Callable[[Any], None]) -> Records:
        return self.pod_records.begin(on_change)

    def refusals(self, _namespace: str | None, on_change: Callable[[Any], None]) -> Records:
        return self.refusal_records.begin(on_change)

    async def create_job(self, manifest: Any) -> str:
        key = NAMESPACE, manifest["metadata"]["name"]
        if key in self.job_records:
            raise Conflict("It exists.")
        if self.error is not None:
            raise self.error
        self.made += 1
        nonce = manifest["metadata"]["annotations"][NONCE]
        uid = f"job-{self.made}"
        self.job_records[key] = JobRecord(*key, uid, finished=False, nonce=nonce)
        if self.crash:
            self.crash = False
            raise RuntimeError("The controller is killed before it has the answer.")
        return uid

    async def find_job(self, namespace: str, name: str) -> JobRecord | None:
        found: JobRecord | None = self.job_records.get((namespace, name))
        return found

    async def delete_pod(self, pod: PodRecord, _grace: int) -> None:
        self.delete(pod.name)

    def delete(self, name: str) -> None:
        """As the API does: the pod has its grace, where one was scheduled."""
        for key, pod in list(self.pod_records.items()):
            if pod.name == name and not pod.scheduled:
                del self.pod_records[key]
            elif pod.name == name:
                self.pod_records[key] = replace(pod, deleting=True)

    async def delete_job(self, job: ClusterJob) -> None:
        record = self.job_records.get((job.namespace, job.name))
        if record is not None and record.uid == job.uid:
            del self.job_records[(job.namespace, job.name)]
            for pod in list(self.pod_records.values()):
                self.delete(pod.name)


class Life:
    """A job on the pretend cluster, and what happens to it at random."""

    def __init__(self, root: Path, seed: int, origin: Any = ORIGIN, **changes: Any) -> None:
        self.random = random.Random(seed)
        self.retries = self.random.choice([0, 0, 1, 2])
        self.exchange = FileExchange(root, is_private=False)
        spec = {"cpu": "1", "memory": "1Gi", "retries": self.retries}
        demand = {"cpu": "1", "memory": "1"}
        request = exchanges.request(
            NAME, backend="kubernetes", flavor_spec=spec, demand=demand, **changes
        )
        assert self.exchange.create(request, exchanges.RESULT, origin=origin)
        self.directory = self.exchange.directory(NAME)
        self.cluster = PretendCluster()
        self.pods_made = 0
        self.log: list[str] = []
        self.restart()

    def restart(self) -> None:
        self.reconciler = Reconciler(
            self.cluster,  # type: ignore[arg-type]
            self.exchange,
            PODS,
            frozenset([NAMESPACE]),
            lambda _job: None,
            LIMITS,
        )

        def finish(job: str, end: EndAttempt) -> None:  # in this process: it is faster
            finish_job(self.exchange.directory(job), end.reason, end.message, end.attempt)

        self.reconciler.folds.start = finish  # type: ignore[method-assign]
        self._watch_jobs()
        self._watch_pods()

    async def settle(self) -> None:
        """Reconcile until nothing changes any more."""
        for _ in range(4):
            try:
                await self.reconciler._reconcile(NAME)
            except (JobsError, RuntimeError) as error:
                self.log.append(str(error))
                self.restart()

    def happen(self) -> None:
        """Let one thing happen."""
        name = self.random.choice(
            ["watch jobs", "watch jobs", "watch pods", "watch pods", "pod", "pod", "schedule",
             "schedule", "claim", "claim", "end", "end", "gone", "gone", "evict", "stuck",
             "cancel", "delete job", "restart", "crash", "job ends"]
        )  # fmt: skip
        self.log.append(name)
        getattr(self, f"_{name.replace(' ', '_')}")()

    def _watch_jobs(self) -> None:
        self.cluster.job_records.watch()

    def _watch_pods(self) -> None:
        self.cluster.pod_records.watch()

    def _job(self) -> JobRecord | None:
        return self.cluster.job_records.get((NAMESPACE, NAME))

    def _any_pod(self, **wanted: Any) -> PodRecord | None:
        pods = [
            pod
            for pod in self.cluster.pod_records.values()
            if all(getattr(pod, field) == value for field, value in wanted.items())
        ]
        return self.random.choice(pods) if pods else None

    def _change(self, pod: PodRecord | None, **changes: Any) -> None:
        if pod is not None:
            self.cluster.pod_records[NAMESPACE, pod.uid] = replace(pod, **changes)

    def _pod(self) -> None:
        """Make a pod, as the Job controller does: one at a time, and one for each disruption."""
        job, pods = self._job(), self.cluster.pod_records.values()
        failed = [pod for pod in pods if pod.terminal]
        allowed = all(pod.disruption for pod in failed) and self.pods_made <= self.retries
        if job and not job.finished and allowed and len(failed) == len(pods):
            self.pods_made += 1
            uid = f"pod-{self.pods_made}"
            self.cluster.pod_records[NAMESPACE, uid] = PodRecord(
                namespace=NAMESPACE, name=uid, uid=uid, job=NAME, job_uid=job.uid,
                phase="Pending", reason="", message="", disruption="", node="", deleting=False,
                deletion_grace=30, created=float(self.pods_made), scheduled=False, begun=False,
                waiting="", waiting_message="", ended=None,
            )  # fmt: skip

    def _schedule(self) -> None:
        pod = self._any_pod(scheduled=False)
        self._change(
            pod,
            scheduled=True,
            phase="Running",
            node="node-1",
            begun=True,
        )

    def _stuck(self) -> None:
        """A pod waits for its image for longer than it may."""
        pod = self._any_pod(scheduled=False)
        self._change(pod, scheduled=True, waiting="ImagePullBackOff")

    def _claim(self) -> None:
        """The agent of a pod claims an attempt."""
        pod = self._any_pod(phase="Running", deleting=False)
        is_refused = is_ending(self.exchange, NAME)
        if pod is None or is_refused or self._claimed(pod):
            return
        number = max(layout.attempts(self.directory), default=0) + 1
        attempt = layout.attempt_dir(self.directory, number)
        attempt.mkdir()
        documents.write_document(attempt / layout.RUNNER, {"pod": pod.uid})

    def _claimed(self, pod: PodRecord) -> Path | None:
        for number in layout.attempts(self.directory):
            attempt = layout.attempt_dir(self.directory, number)
            if (documents.read_document(attempt / layout.RUNNER) or {}).get("pod") == pod.uid:
                return attempt
        return None

    def _end(self) -> None:
        """The run of a pod ends, and its agent sends the outcome, or does not get to it."""
        pod = self._any_pod(phase="Running")
        if pod is None:
            return
        state, reason = self.random.choice([("succeeded", None), ("failed", "CellError")])
        if pod.deleting:
            state, reason = "failed", "Terminated"
        attempt = self._claimed(pod)
        if attempt and self.random.random() < 0.7:
            cells, moment = CellCounts(done=0, total=0), times.now()
            message = None if reason is None else "It ended."
            write_outcome(
                attempt, Outcome(state, reason, message, 0, cells, moment, moment, {}, None)
            )
        code = 0 if state == "succeeded" else 1
        self._change(pod, phase="Failed" if code else "Succeeded", ended=ContainerEnd(code, "", ""))

    def _gone(self) -> None:
        """Somebody removes a pod that has ended, or that is told to."""
        pod = self._any_pod(phase="Failed") or self._any_pod(deleting=True)
        if pod is not None:
            del self.cluster.pod_records[NAMESPACE, pod.uid]

    def _evict(self) -> None:
        pod = self._any_pod(phase="Running", deleting=False)
        self._change(pod, deleting=True, disruption=self.random.choice(DISRUPTIONS))

    def _cancel(self) -> None:
        if self.random.random() < 0.2 and not self.state().final:  # as the service does
            documents.write_document_once(self.directory / layout.CANCEL, {"time": times.now()})

    def _delete_job(self) -> None:
        is_known = bool(self.cluster.job_records.records)  # else it takes until the next resync
        if self.random.random() < 0.2 and is_known and (job := self._job()):
            asyncio.get_running_loop()
            del self.cluster.job_records[(NAMESPACE, NAME)]
            for pod in list(self.cluster.pod_records.values()):
                if pod.job_uid == job.uid:
                    self.cluster.delete(pod.name)

    def _job_ends(self) -> None:
        """The Job controller notices that no pod follows."""
        job, pods = self._job(), list(self.cluster.pod_records.values())
        is_over = all(pod.terminal for pod in pods) and self.pods_made > self.retries
        has_failed = any(pod.terminal and not pod.disruption for pod in pods)
        if job and (is_over or has_failed):
            self.cluster.job_records[(NAMESPACE, NAME)] = replace(job, finished=True)

    def _restart(self) -> None:
        self.restart()

    def _crash(self) -> None:
        self.cluster.crash = True

    def run_out(self) -> None:
        """Let the cluster come to rest: what can end ends."""
        for step in (self._pod, self._schedule, self._end, self._job_ends, self._gone):
            step()
            self._watch_jobs()
            self._watch_pods()

    def job(self) -> Job:
        request = self.exchange.request(NAME)
        return JobReader(self.exchange, lambda *_: True).job(request, Placement())

    def state(self) -> State:
        return self.job().state


@pytest.fixture(autouse=True)
def _no_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "fsync", lambda _: None)


@pytest.mark.parametrize("group", range(4))
def test_whatever_happens_a_job_ends_once(tmp_path: Path, group: int) -> None:
    async def live(seed: int) -> None:
        life = Life(tmp_path / str(seed), seed)
        final: State | None = None
        try:
            for _ in range(life.random.randrange(30)):
                life.happen()
                await life.settle()
                state = life.state()
                assert final is None or state is final, f"it was {final}, and is {state}"
                final = state if state.final else None
            for _ in range(8):
                life.run_out()
                await life.settle()
            assert life.state().final, life.state()
            assert final is None or life.state() is final
            assert life.cluster.made <= 1
        except BaseException as error:
            error.add_note(f"seed {seed}, {life.retries} retries: {', '.join(life.log)}")
            raise

    for seed in range(25 * group, 25 * (group + 1)):
        asyncio.run(live(seed))


def test_what_is_refused_now_is_tried_again(tmp_path: Path) -> None:
    """A quota that frees up later lets the job through; until then it says why it waits."""

    async def live() -> None:
        life = Life(tmp_path, 0)
        life.cluster.error = Refused("Kubernetes answered 403: exceeded quota: gpus.")
        with pytest.raises(Unavailable):
            await life.reconciler._reconcile(NAME)
        placement = life.reconciler.placement_of(NAME)
        assert placement is not None and placement.reason == "QuotaExceeded"
        assert life.state() is State.QUEUED
        life.cluster.error = None
        await life.settle()
        assert life.cluster.made == 1 and life.reconciler.placement_of(NAME) is None

    asyncio.run(live())


def test_a_job_says_that_a_broken_webhook_keeps_it(tmp_path: Path) -> None:
    async def live() -> None:
        life = Life(tmp_path, 0)
        words = 'Kubernetes answered 500: Internal error occurred: failed calling webhook "vjob".'
        life.cluster.error = Unavailable(words)
        with pytest.raises(Unavailable):
            await life.reconciler._reconcile(NAME)
        placement = life.reconciler.placement_of(NAME)
        assert placement is not None and placement.reason == "BackendError"
        assert placement.message == f"{words} It is tried again."
        life.cluster.error = None
        life.cluster.crash = True  # the next answer is lost, and the Job found by the watch
        with pytest.raises(RuntimeError):
            await life.reconciler._reconcile(NAME)
        life._watch_jobs()
        await life.reconciler._reconcile(NAME)
        assert life.cluster.made == 1 and life.reconciler.placement_of(NAME) is None

    asyncio.run(live())


def test_a_job_says_that_its_claims_cannot_be_read(tmp_path: Path) -> None:
    async def live() -> None:
        home = {"path": "/home/ana", "claim": "home", "claim_uid": "claim-1"}
        origin = {**ORIGIN, "mounts": [home]}
        life = Life(tmp_path, 0, origin, mounts=("/home/ana",))
        words = "Kubernetes answered 500: etcdserver: request timed out."

        async def fail(_namespace: str, _name: str) -> Any:
            raise Unavailable(words)

        life.cluster.claim = fail
        with pytest.raises(Unavailable):
            await life.reconciler._reconcile(NAME)
        placement = life.reconciler.placement_of(NAME)
        assert placement is not None and placement.reason == "BackendError"
        assert placement.message == f"{words} It is tried again."

    asyncio.run(live())


def test_a_job_is_deleted_whose_creation_was_not_answered(tmp_path: Path) -> None:
    """No job.json tells of its Job, and no watch yet; soon its nonce is gone, too."""

    async def live() -> None:
        life = Life(tmp_path, 0)
        life.cluster.crash = True
        with pytest.raises(RuntimeError):
            await life.reconciler._reconcile(NAME)
        assert life._job() is not None
        assert not (life.directory / layout.JOB).exists()
        for wish in (layout.CANCEL, layout.DELETE):
            documents.write_document_once(life.directory / wish, {"time": times.now()})
        for _ in range(2):
            await life.reconciler._reconcile(NAME)
        assert life._job() is None
        assert not life.directory.exists()

    asyncio.run(live())


def test_a_job_that_is_deleted_soon_after_its_end_leaves_nothing_in_memory(tmp_path: Path) -> None:
    """Its Job and pods are there still, and their end is told when nobody knows the job."""

    async def live() -> None:
        life = Life(tmp_path, 0)
        for _ in range(8):
            await life.settle()
            for step in (life._pod, life._schedule, life._end, life._job_ends):
                step()
                life._watch_jobs()
                life._watch_pods()
        assert life.state().final and life.cluster.pod_records
        documents.write_document_once(life.directory / layout.DELETE, {"time": times.now()})
        await life.settle()
        assert not life.directory.exists()
        life.run_out()
        await life.settle()
        objects = vars(life.reconciler.objects)
        assert [name for name, kept in objects.items() if isinstance(kept, dict) and kept] == []

    asyncio.run(live())


@pytest.mark.parametrize("document", [layout.REQUEST, layout.ORIGIN])
def test_a_deleted_job_with_a_damaged_document_goes_with_its_job(
    tmp_path: Path, document: str
) -> None:
    async def live() -> None:
        life = Life(tmp_path, 0)
        await life.settle()
        assert life._job() is not None
        documents.write_document_once(life.directory / layout.DELETE, {"time": times.now()})
        (life.directory / document).write_text("{")
        await life.reconciler._reconcile(NAME)
        assert life._job() is None
        assert not life.directory.exists()

    asyncio.run(live())


def test_what_can_never_pass_ends_the_job(tmp_path: Path) -> None:
    async def live() -> None:
        life = Life(tmp_path, 0)
        life.cluster.error = NotFound("Kubernetes answered 403: the namespace is terminated.")
        await life.settle()
        assert life.state() is State.FAILED and life.job().reason == "BackendError"

    asyncio.run(live())


def test_a_job_of_somebody_else_has_the_name(tmp_path: Path) -> None:
    async def live() -> None:
        life = Life(tmp_path, 0)
        forged = JobRecord(NAMESPACE, NAME, "forged", finished=False, nonce="guessed")
        life.cluster.job_records[(NAMESPACE, NAME)] = forged
        await life.settle()
        assert life.job().reason == "BackendError" and "not ours" in (life.job().message or "")
        assert await life.reconciler.job_uid(NAME) is None
        assert list(life.cluster.job_records.values()) == [forged]

    asyncio.run(live())
