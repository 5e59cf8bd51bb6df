"""Dev pods with a claim of their own, and what becomes of their results in the exchange."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from job_runner.protocol import layout
from jupyter_to_job.domain.errors import NotFound
from jupyter_to_job.exchange import FileExchange
from jupyter_to_job.exchange.records import DeliveryRecord, HeldRecord
from tests.cluster.box.boot import T4
from tests.cluster.box.images import Images
from tests.cluster.box.node import Hardware
from tests.cluster.box.volumes import NODE_LABEL, Volume
from tests.cluster.box.wait import wait_for
from tests.cluster.peaks import command_lines
from tests.cluster.product import HOME, DevPod, dev_pod_manifest
from tests.cluster.scenes import COUNT, SubmittedJob, notebook

WORK = f"{HOME}/work"
COURIER = b"jupyter_to_job.agent.courier"


@dataclass
class Place:
    """A dev pod of the box with a claim of its own, mounted at `work`."""

    pod: DevPod
    images: Images
    volume: Volume
    read_only: bool = False
    node: Hardware = T4

    @classmethod
    def make(
        cls,
        beside: DevPod,
        images: Images,
        name: str,
        *,
        shared: bool = False,
        size: str | None = None,
    ) -> Place:
        """Make volume and claim, and start the dev pod, in another one's namespace."""
        box, namespace = beside.box, beside.namespace
        mode = "ReadWriteMany" if shared else "ReadWriteOnce"
        node = None if shared else T4.name
        volume = box.add_volume(name, mode, claim=f"{namespace}/{name}", node=node, size=size)
        box.apply(volume.claim_manifest())
        place = cls(replace(beside, name=f"ada-{name}"), images, volume)
        place.start()
        return place

    def start(self) -> None:
        """Start the dev pod, on `node`."""
        name, namespace = self.pod.name, self.pod.namespace
        manifest = dev_pod_manifest(
            self.images, namespace, name, "ada", self.volume.name, self.pod.controller
        )
        spec = manifest["spec"]
        spec["nodeSelector"] = {NODE_LABEL: self.node.name}
        if self.read_only:
            spec["containers"][0]["volumeMounts"][-1]["readOnly"] = True
        self.pod.cluster.apply(manifest)
        self.pod.cluster.until_ready(name, namespace, timeout=60)

    def stop(self) -> None:
        """Delete the dev pod; it is gone afterwards."""
        self.pod.cluster.kubectl("delete", "pod", self.pod.name, "-n", self.pod.namespace)

    def submit(self, *cells: str, folder: str = WORK, stem: str = "train") -> SubmittedJob:
        """Submit a notebook of the claim, to be run in a folder of its own."""
        path = f"{folder}/{stem}.ipynb"
        if not self.read_only:
            self.pod.write(path, notebook(*cells))
        command = ("jupyter-to-job", "submit", path, "--isolated", "-f", "crowd")
        return SubmittedJob(self.pod, self.pod.run(*command).strip())

    def begin(self, *cells: str, folder: str = WORK) -> SubmittedJob:
        """Submit a notebook that goes on until `let_end`, and wait until it runs."""
        job = self.submit(COUNT, *cells, folder=folder)
        job.until_printed()
        return job


def exchange_of(job: SubmittedJob) -> FileExchange:
    """Return the exchange that a job is in."""
    return job.dev_pod.controller.exchange(job.dev_pod.box)


def delivery(job: SubmittedJob) -> DeliveryRecord | None:
    """Return what is on record of a job's delivery."""
    try:
        return exchange_of(job).record(job.name, layout.DELIVERY, DeliveryRecord)
    except NotFound:
        return None


def until_delivered(job: SubmittedJob, timeout: float = 90) -> DeliveryRecord:
    """Wait for the record of a job's delivery."""
    wait_for(f"{job.name} is delivered", lambda: delivery(job), timeout=timeout)
    found = delivery(job)
    assert found is not None
    return found


def until_held(job: SubmittedJob, words: str) -> None:
    """Wait until a job says that it is held, and why."""

    def is_held() -> bool:
        held = exchange_of(job).record(job.name, layout.HELD, HeldRecord)
        return held is not None and words in held.message

    wait_for(f"{job.name} is held: {words}", is_held, timeout=120)


def couriers(job: SubmittedJob) -> list[Any]:
    """Return the pods of a job's couriers."""
    labels = f"app.kubernetes.io/component=courier,jupyter-to-job.io/job={job.name}"
    return job.dev_pod.cluster.items("pods", job.dev_pod.namespace, labels)


def until_no_couriers(job: SubmittedJob) -> None:
    """Wait until no courier's pod of a job is left."""
    wait_for(f"no courier of {job.name} is left", lambda: not couriers(job), timeout=60)


def results(place: Place, job: SubmittedJob) -> list[str]:
    """Return the names in the claim that are of a job, but those of files in folders."""
    return sorted(p.name for p in place.volume.folder.iterdir() if job.name in p.name)


def find_couriers(job: SubmittedJob) -> set[int]:
    """Return the process ids of a job's couriers, as this machine counts them."""
    parts = COURIER, job.name.encode()
    return {pid for pid, line in command_lines() if all(part in line for part in parts)}
