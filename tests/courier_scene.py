"""Jobs that wait for their delivery, and couriers with a pretend cluster."""

from __future__ import annotations

import asyncio
import contextlib
import os
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from job_runner.protocol import layout
from jupyter_to_job.backends.kubernetes import ContainerEnd, JobRecord, PodRecord
from jupyter_to_job.controller.couriers.couriers import Couriers
from jupyter_to_job.controller.couriers.manifest import CourierPods
from jupyter_to_job.controller.metrics import Metrics
from jupyter_to_job.domain.errors import JobsError, NotFound
from jupyter_to_job.exchange import FileExchange
from jupyter_to_job.exchange.records import ClusterJob, HeldRecord

from .unit import exchanges

NAME = "train-aaaaaaaa"
PODS = CourierPods("controller:1", "http://gateway", patience=60)
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
BAD_IMAGE = replace(WAITING, waiting="ImagePullBackOff", waiting_message="Back-off pulling a:1")
FAILED = replace(POD, phase="Failed", ended=ContainerEnd(1, "Error", "The gateway is away.\n"))


class PretendCluster:
    """Objects as watches tell of them, and the calls that couriers make."""

    def __init__(self) -> None:
        self.made: list[Any] = []
        self.records: dict[str, JobRecord] = {}
        self.pod_records: dict[str, PodRecord] = {}
        self.claims: dict[str, Any] = {}
        self.node = ""
        self.dev_pod: Any = None
        self.error: JobsError | None = None
        """What a Job is refused with."""
        self.unseen: JobsError | None = None
        """What questions for pods and claims are refused with."""
        self.refusals: dict[str, str] = {}
        self.stuck: set[str] = set()
        """The uids of Jobs that cannot be deleted."""

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
        if job.uid in self.stuck:
            raise RuntimeError("An answer that nobody expected.")
        del self.records[job.uid]

    async def claim(self, _namespace: str, name: str) -> Any:
        self._require_rights()
        if name not in self.claims:
            raise NotFound("It is gone.")
        return self.claims[name]

    async def node_with_claim(self, _namespace: str, _claim: str) -> str:
        return self.node

    async def pod(self, _namespace: str, _name: str) -> Any:
        self._require_rights()
        if self.dev_pod is None:
            raise NotFound("It is gone.")
        return self.dev_pod

    def _require_rights(self) -> None:
        if self.unseen is not None:
            raise self.unseen

    # As `JobObjects`:

    def is_synced(self, _namespace: str) -> bool:
        return True

    def record_of(self, job: ClusterJob) -> JobRecord | None:
        return self.records.get(job.uid)

    def pod_made_by(self, job: ClusterJob) -> PodRecord | None:
        return next((p for p in self.pod_records.values() if p.job_uid == job.uid), None)

    def refusal_of(self, job: ClusterJob) -> str | None:
        return self.refusals.get(job.uid)

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
        self.patch: Callable[[], Any] = dict
        self.add_claim("home", "claim-1")
        self.restart()

    def restart(self) -> None:
        self.changed: list[str] = []
        self.couriers = Couriers(
            self.cluster,  # type: ignore[arg-type]
            self.exchange,
            Objects(self.cluster),  # type: ignore[arg-type]
            replace(PODS, patch=lambda: self.patch()),
            self.changed.append,
            Metrics(),
        )

    def add_claim(self, name: str, uid: str) -> Any:
        """Add a claim of one node at a time; return the origin of jobs whose folder is on it."""
        spec = {"accessModes": ["ReadWriteOnce"]}
        self.cluster.claims[name] = {"metadata": {"uid": uid}, "spec": spec}
        mount = {**ORIGIN["mounts"][0], "claim": name, "claim_uid": uid}
        return {**ORIGIN, "mounts": [mount]}

    def work(self, name: str) -> None:
        """Look at a job, and at all that this calls, until there is nothing to do."""

        async def work() -> None:
            task = asyncio.create_task(self.couriers._work())
            self.couriers.look(name)
            while self.couriers._queue._waiting or self.couriers._queue._processing:
                await asyncio.sleep(0.01)
            task.cancel()

        asyncio.run(work())

    def sweep(self) -> None:
        """Look once for couriers that nobody here has started."""

        async def sweep() -> None:
            task = asyncio.create_task(self.couriers._sweep())
            await asyncio.sleep(0)
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task

        asyncio.run(sweep())

    def made(self) -> list[str]:
        """Return the jobs for which couriers were made."""
        return [m["metadata"]["labels"]["jupyter-to-job.io/job"] for m in self.cluster.made]

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
