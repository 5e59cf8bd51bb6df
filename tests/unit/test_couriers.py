"""Couriers: when one is due, how it looks, what becomes of it, with a pretend cluster."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from job_runner.protocol import layout
from jupyter_to_job.backends.kubernetes import ContainerEnd, JobRecord, PodRecord
from jupyter_to_job.backends.kubernetes.records import job_record, node_with_claim, pod_record
from jupyter_to_job.controller.couriers.couriers import MAX_COURIERS, Couriers
from jupyter_to_job.controller.couriers.due import (
    MAX_BACKOFF,
    EndCourier,
    LookAgain,
    SeenCourier,
    SeenDelivery,
    StartCourier,
    backoff,
    next_step,
)
from jupyter_to_job.controller.couriers.manifest import CourierPods
from jupyter_to_job.domain.errors import JobsError, NotFound, Refused
from jupyter_to_job.exchange import FileExchange
from jupyter_to_job.exchange.records import ClusterJob, HeldRecord

from ..golden_couriers import manifests
from . import exchanges

NAME = "train-aaaaaaaa"
MANIFESTS = dict(manifests())
PODS = CourierPods("controller:1", "http://gateway", after=60)
ORIGIN: Any = {
    "namespace": "team", "pod": "jupyter-ada", "pod_uid": "dev-1", "service_account": "default",
    "image_pull_secrets": [], "security_context": {"runAsUser": 1000, "fsGroup": 100},
    "mounts": [
        {"path": "/w", "sub_path": "", "read_only": False, "kind": "persistentVolumeClaim",
         "claim": "home", "claim_uid": "claim-1", "access_modes": ["ReadWriteOnce"]},
    ],
}  # fmt: skip
POD = PodRecord(
    namespace="team", name="p", uid="pod-1", job=NAME, job_uid="courier-1", phase="Running",
    reason="", message="", disruption="", node="node-1", deleting=False, deletion_grace=0,
    created=0.0, scheduled=True, begun=True, waiting="", waiting_message="", ended=None,
)  # fmt: skip
WAITING = replace(POD, phase="Pending", begun=False)
UNSCHEDULED = replace(WAITING, scheduled=False, waiting_message="0/2 nodes are available")
FAILED = replace(POD, phase="Failed", ended=ContainerEnd(1, "Error", "The gateway is away.\n"))


@pytest.mark.parametrize(
    ("seen", "step"),
    [
        (SeenDelivery(0), LookAgain(60)),
        (SeenDelivery(59), LookAgain(1)),
        (SeenDelivery(60), StartCourier()),
        (SeenDelivery(100, failed=10), LookAgain(50)),  # of a dev pod
        (SeenDelivery(100, failed=60), StartCourier()),
        (SeenDelivery(900, failed=100, failures=2), LookAgain(20)),
        (SeenDelivery(900, failed=120, failures=2), StartCourier()),
    ],
)
def test_when_one_is_due(seen: SeenDelivery, step: object) -> None:
    assert next_step(seen, 60) == step


@pytest.mark.parametrize(
    ("courier", "step"),
    [
        (SeenCourier(1), LookAgain(59)),  # no watch has told of it yet
        (SeenCourier(11), EndCourier("The courier ended without a word.")),
        (SeenCourier(11, is_known=True), LookAgain(49)),
        (
            SeenCourier(60, is_known=True),
            EndCourier("The courier's pod was not created within 1 min."),
        ),
        (SeenCourier(59, is_known=True, pod=UNSCHEDULED), LookAgain(1)),
        (
            SeenCourier(60, is_known=True, pod=UNSCHEDULED),
            EndCourier("No node took the courier: 0/2 nodes are available"),
        ),
        (
            SeenCourier(60, is_known=True, pod=WAITING),
            EndCourier(
                "The courier did not start within 1 min: its volume could not be mounted in time"
            ),
        ),
        (SeenCourier(90, is_known=True, pod=POD), LookAgain(1770)),
        (
            SeenCourier(90, is_known=True, pod=FAILED),
            EndCourier("The courier could not deliver: The gateway is away."),
        ),
        (SeenCourier(90, is_known=True, pod=FAILED, has_reported=True), EndCourier("")),
        (SeenCourier(90, is_over=True, is_known=True, has_reported=True), EndCourier("")),
    ],
)
def test_what_becomes_of_one(courier: SeenCourier, step: object) -> None:
    assert next_step(SeenDelivery(1000, courier=courier), 60) == step


def test_ever_later() -> None:
    waits = [backoff(failures, 60) for failures in range(1, 12)]
    assert waits[:4] == [60, 120, 240, 480]
    assert waits[-1] == MAX_BACKOFF
    assert backoff(1, 0) == 5


class PretendCluster:
    """Objects as watches tell of them, and the calls that couriers make."""

    def __init__(self) -> None:
        self.made: list[Any] = []
        self.records: dict[str, JobRecord] = {}
        self.pod_records: dict[str, PodRecord] = {}
        self.claim_document: Any = {
            "metadata": {"uid": "claim-1"},
            "spec": {"accessModes": ["ReadWriteOnce"]},
        }
        self.nodes: set[str] = set()
        self.dev_pod: Any = None
        self.error: JobsError | None = None

    async def create_job(self, manifest: Any) -> str:
        if self.error is not None:
            raise self.error
        self.made.append(manifest)
        uid, metadata = f"courier-{len(self.made)}", manifest["metadata"]
        job = metadata["labels"]["jupyter-to-job.io/job"]
        record = JobRecord("team", metadata["name"], uid, finished=False, courier_of=job)
        self.records[uid] = record
        return uid

    async def delete_job(self, job: ClusterJob) -> None:
        del self.records[job.uid]

    async def claim(self, _namespace: str, _name: str) -> Any:
        if self.claim_document is None:
            raise NotFound("It is gone.")
        return self.claim_document

    async def nodes_with_claim(self, _namespace: str, _claim: str) -> set[str]:
        return self.nodes

    async def pod(self, _namespace: str, _name: str) -> Any:
        if self.dev_pod is None:
            raise NotFound("It is gone.")
        return self.dev_pod

    # As `JobObjects`:

    def is_synced(self, _namespace: str) -> bool:
        return True

    def record_of(self, job: ClusterJob) -> JobRecord | None:
        return self.records.get(job.uid)

    def pod_made_by(self, job: ClusterJob) -> PodRecord | None:
        return next((p for p in self.pod_records.values() if p.job_uid == job.uid), None)

    def couriers(self) -> list[JobRecord]:
        return list(self.records.values())

    def get_pod(self, _namespace: str, uid: str) -> PodRecord | None:
        return self.pod_records.get(uid)


class Objects:
    """The same as the couriers see it, whose `pod` is another one than the API's."""

    def __init__(self, cluster: PretendCluster) -> None:
        self._cluster = cluster
        self.pod = cluster.get_pod

    def __getattr__(self, name: str) -> Any:
        return getattr(self._cluster, name)


class Scene:
    """Jobs that have ended two minutes ago, and the couriers of a controller."""

    def __init__(self, root: Path) -> None:
        self.exchange = FileExchange(root, is_private=False)
        self.exchange.prepare()
        self.cluster = PretendCluster()
        self.restart()

    def restart(self) -> None:
        self.changed: list[str] = []
        self.couriers = Couriers(
            self.cluster,  # type: ignore[arg-type]
            self.exchange,
            Objects(self.cluster),  # type: ignore[arg-type]
            PODS,
            self.changed.append,
        )

    def add(self, name: str = NAME, origin: Any = ORIGIN, ago: float = 120.0) -> Path:
        request = exchanges.request(name, backend="kubernetes", workspace="/", notebook="w/t.ipynb")
        request = replace(request, source="/w/t.ipynb")
        assert self.exchange.create(request, exchanges.RESULT, origin=origin)
        directory = self.exchange.directory(name)
        exchanges.end(directory)
        ended = time.time() - ago
        os.utime(directory / "attempt-1" / layout.OUTCOME, (ended, ended))
        return directory

    def look(self, name: str = NAME) -> None:
        async def look() -> None:
            await self.couriers._take_next_step(name)

        asyncio.run(look())

    def held(self, name: str = NAME) -> HeldRecord | None:
        return self.exchange.record(name, layout.HELD, HeldRecord)

    def volumes(self) -> Any:
        return self.cluster.made[-1]["spec"]["template"]["spec"]


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(tmp_path)


def test_one_is_started_and_gone_when_it_has_delivered(scene: Scene) -> None:
    directory = scene.add()
    for _ in range(3):
        scene.look()
    (record,) = scene.cluster.records.values()
    assert record.courier_of == NAME
    assert scene.volumes()["volumes"][0]["persistentVolumeClaim"] == {"claimName": "home"}
    exchanges.deliver(directory)
    scene.look()
    assert not scene.cluster.records
    assert scene.held() is None


def test_a_dev_pod_has_its_minute(scene: Scene) -> None:
    scene.add(ago=30)
    scene.look()
    assert scene.cluster.made == []


def test_nothing_to_deliver(scene: Scene) -> None:
    scene.add("gone-aaaaaaaa")
    scene.exchange.remove("gone-aaaaaaaa")
    exchanges.deliver(scene.add("done-aaaaaaaa"))
    deleted = scene.add("deleted-aaaaaaaa")
    scene.exchange.write(deleted.name, layout.DELETE, {"time": exchanges.ENDED, "who": "me"})
    for name in ("gone-aaaaaaaa", "done-aaaaaaaa", "deleted-aaaaaaaa"):
        scene.look(name)
    assert scene.cluster.made == []


def test_a_token_is_good_for_one_job_while_its_courier_lives(scene: Scene) -> None:
    directory = scene.add()
    scene.look()
    job_of = scene.couriers.job_of
    assert job_of("team", "pod-1") is None
    scene.cluster.pod_records = {
        "pod-1": POD,
        "forged": replace(POD, uid="forged", job_uid="somebody's"),
        "elsewhere": replace(POD, uid="elsewhere", namespace="other"),
    }
    assert [job_of("team", uid) for uid in ("pod-1", "forged", "elsewhere")] == [NAME, None, None]
    exchanges.deliver(directory)
    scene.look()
    assert job_of("team", "pod-1") is None


def test_it_goes_where_the_claim_is(scene: Scene) -> None:
    scene.cluster.nodes = {"node-7"}
    scene.add()
    scene.look()
    assert "node-7" in str(scene.volumes()["affinity"])
    scene.cluster.claim_document["spec"]["accessModes"] = ["ReadWriteMany"]
    scene.add("shared-aaaaaaaa")
    scene.look("shared-aaaaaaaa")
    assert "affinity" not in scene.volumes()


def _no_user(scene: Scene) -> None:
    scene.add(origin={**ORIGIN, "security_context": {"fsGroup": 100}})


def _root(scene: Scene) -> None:
    scene.add(origin={**ORIGIN, "security_context": {"runAsUser": 0}})


def _claim_gone(scene: Scene) -> None:
    scene.add()
    scene.cluster.claim_document = None


def _claim_replaced(scene: Scene) -> None:
    scene.add()
    scene.cluster.claim_document["metadata"]["uid"] = "claim-2"


def _quota(scene: Scene) -> None:
    scene.add()
    scene.cluster.error = Refused("exceeded quota: compute")


@pytest.mark.parametrize(
    ("obstacle", "said"),
    [
        (_no_user, "names no runAsUser"),
        (_root, "runs as root"),
        (_claim_gone, "The volume claim home is gone."),
        (_claim_replaced, "is another one by now"),
        (_quota, "exceeded quota: compute"),
    ],
)
def test_what_keeps_one_from_starting_is_said(
    scene: Scene, obstacle: Callable[[Scene], None], said: str
) -> None:
    obstacle(scene)
    scene.look()
    held = scene.held()
    assert held is not None and said in held.message and not held.failed
    assert scene.changed == [NAME]
    assert scene.cluster.made == []
    scene.look()  # not at once again
    assert scene.changed == [NAME]


def test_a_failure_is_said_and_tried_again_later(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene.add()
    scene.look()
    scene.cluster.pod_records["pod-1"] = FAILED
    scene.look()
    held = scene.held()
    assert held is not None and "The gateway is away." in held.message
    assert not scene.cluster.records
    scene.look()
    assert len(scene.cluster.made) == 1
    now, clock = time.time(), time.monotonic()
    monkeypatch.setattr(time, "time", lambda: now + 61)
    monkeypatch.setattr(time, "monotonic", lambda: clock + 61)
    scene.look()
    assert len(scene.cluster.made) == 2


def test_what_the_courier_said_itself_stands(scene: Scene) -> None:
    scene.add()
    scene.look()
    scene.exchange.write(NAME, layout.HELD, {"message": "Cannot write w/t.ipynb: no room."})
    scene.cluster.pod_records["pod-1"] = replace(POD, phase="Succeeded")
    scene.look()
    held = scene.held()
    assert held is not None and held.message == "Cannot write w/t.ipynb: no room."
    assert not scene.cluster.records


def test_without_a_claim_the_dev_pod_delivers_or_nobody(scene: Scene) -> None:
    scene.add(origin={**ORIGIN, "mounts": []})
    scene.cluster.dev_pod = {"metadata": {"uid": "dev-1"}}
    scene.look()
    assert scene.held() is None
    scene.cluster.dev_pod = {"metadata": {"uid": "dev-2"}}
    scene.look()
    held = scene.held()
    assert held is not None and held.failed and "no volume claim" in held.message
    assert scene.cluster.made == []


def test_after_a_restart_strangers_go_and_another_one_comes(scene: Scene) -> None:
    scene.add()
    scene.look()
    scene.restart()
    scene.look()
    assert len(scene.cluster.made) == 2
    assert scene.couriers.job_of("team", "pod-1") is None

    async def sweep() -> None:
        task = asyncio.create_task(scene.couriers._sweep())
        await asyncio.sleep(0)
        task.cancel()

    asyncio.run(sweep())
    assert list(scene.cluster.records) == ["courier-2"]


def test_a_crowd_takes_turns(scene: Scene) -> None:
    names = [f"job{n}-aaaaaaaa" for n in range(MAX_COURIERS + 3)]
    for name in names:
        scene.add(name)
        scene.look(name)
    assert len(scene.cluster.records) == MAX_COURIERS

    async def work() -> None:
        """Until there is nothing to do: the first delivery calls the first in the line."""
        task = asyncio.create_task(scene.couriers._work())
        scene.couriers.look(names[0])
        while scene.couriers._queue._waiting or scene.couriers._queue._processing:
            await asyncio.sleep(0.01)
        task.cancel()

    exchanges.deliver(scene.exchange.directory(names[0]))
    exchanges.deliver(scene.exchange.directory(names[MAX_COURIERS]))  # it waits no longer
    asyncio.run(work())
    labels = [m["metadata"]["labels"]["jupyter-to-job.io/job"] for m in scene.cluster.made]
    assert labels == [*names[:MAX_COURIERS], names[MAX_COURIERS + 1]]


def test_a_job_has_one_timer(scene: Scene) -> None:
    """However often it was looked at: each look would else be followed by looks for ever."""
    directory = scene.add(ago=0)

    async def look() -> int:
        for _ in range(5):
            await scene.couriers._take_next_step(NAME)
        timers = [t for t in scene.couriers._timers.values() if not t.cancelled()]
        exchanges.deliver(directory)
        await scene.couriers._take_next_step(NAME)
        assert all(timer.cancelled() for timer in timers)
        return len(timers)

    assert asyncio.run(look()) == 1


def test_records_of_couriers() -> None:
    manifest = MANIFESTS["shared.yaml"]
    document = {**manifest, "metadata": {**manifest["metadata"], "uid": "courier-1"}}
    assert job_record(document).courier_of == "train-abcdefgh"
    terminated = {"exitCode": 1, "reason": "Error", "message": "The gateway is away."}
    pod = {
        "metadata": {**document["metadata"], "name": "train-abcdefgh-c1a2b-xyzab"},
        "spec": {**manifest["spec"]["template"]["spec"], "nodeName": "node-1"},
        "status": {
            "phase": "Failed",
            "containerStatuses": [{"name": "courier", "state": {"terminated": terminated}}],
        },
    }
    record = pod_record(pod)
    assert (record.job, record.begun) == ("train-abcdefgh", True)
    assert record.ended == ContainerEnd(1, "Error", "The gateway is away.")
    assert node_with_claim(pod, "claim-ada") == ""  # it has ended
    assert node_with_claim({**pod, "status": {"phase": "Running"}}, "claim-ada") == "node-1"
    assert node_with_claim({**pod, "status": {"phase": "Running"}}, "another") == ""
