"""Measures a trivial notebook from its submission to its result, beside papermill in a bare Job.

Both run in the image of the dev pod, with the same resources and a GPU, in the same folder of a
claim that all nodes share. The one is sent to JupyterLab's server in the dev pod, as its page does.
The other is a Job that somebody creates by the API, and its result counts when the Job is complete:
what papermill writes before may be half of it. They take turns, one at a time.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from job_runner.protocol import layout, times
from jupyter_to_job.controller.cluster.cluster import Cluster
from tests.cluster import lab, product
from tests.cluster.box.boot import Box
from tests.cluster.box.images import build_images
from tests.cluster.box.node import GPU
from tests.cluster.box.wait import wait_for
from tests.cluster.lab import TOKEN, WORK
from tests.cluster.product import TEAM, DevPod
from tests.cluster.scenes import text_of

from ..machine import print_machine
from ..runner.measure import notebook
from .pods import creation, end_of_pod, ended_pods

CLAIM = "bench"
CELLS = ["import time\nprint(repr(time.time()))", "print('done')"]
JOB_CONTROLLERS = (
    "system:kube-controller-manager",
    "system:serviceaccount:kube-system:job-controller",
)
ROWS = {
    "submitted to first cell": ("sent", "cell", 1.3),
    "submitted to result": ("sent", "result", 1.0),
    "GPU held: Job created to first cell": ("created", "cell", None),
    "GPU held: runner's end to pod's end": ("finished", "ended", None),
}
"""What is printed: seconds from the first moment to the second, and how many times papermill's
they may be."""


@dataclass(frozen=True)
class Moments:
    """Moments of a job's life, in unix seconds."""

    sent: float
    created: float
    cell: float
    finished: float
    result: float
    ended: float


def main() -> int:
    """Boot, run the jobs, print the medians; return 1 if a target is missed."""
    parser = argparse.ArgumentParser(prog="benchmarks.cluster.against_papermill")
    parser.add_argument("--jobs", type=int, default=9, help="of each kind")
    parser.add_argument("--cpu", default="1", help="of the notebook's container")
    options = parser.parse_args()
    print_machine()
    product.FLAVORS = product.FLAVORS.replace("cpu: 100m", f"cpu: {options.cpu}")
    with (
        tempfile.TemporaryDirectory(prefix="jupyter-to-job-") as folder,
        Box.boot(Path(folder), limits_cpu=True) as box,
    ):
        archive = Path(folder) / "images.tar"
        images = build_images(archive)
        box.load_image(archive)
        product.install(box, images)
        # Where dev pods are, our policy refuses a Job with a GPU that is not ours: papermill's is.
        box.kubectl("label", "namespace", TEAM, f"{product.DEV_PODS}-")
        volume = box.add_volume(CLAIM, "ReadWriteMany", claim=f"{TEAM}/{CLAIM}")
        box.apply(volume.claim_manifest())
        image = lab.single_user_image(box)
        dev_pod = product.start_pod(box, lab.lab_manifest(image, CLAIM, "grace"))
        dev_pod.write(f"{WORK}/trivial.ipynb", notebook(CELLS))
        ours, papermill = [], []
        for number in range(options.jobs):
            ours.append(_run_ours(box, dev_pod, volume.folder))
            papermill.append(_run_papermill(box, image, f"papermill-{number}", volume.folder))
    return 1 if _show(ours, papermill) else 0


def _run_ours(box: Box, dev_pod: DevPod, folder: Path) -> Moments:
    """Send the notebook to the server in the dev pod, and wait until its pod has ended."""
    choices = {"notebook": "trivial.ipynb", "flavor": "gpu-1", "device": "any"}
    headers = {"Authorization": f"token {TOKEN}"}
    with httpx.Client(
        base_url=f"{lab.address(dev_pod)}/jupyter-to-job/api/", headers=headers
    ) as api:
        api.post("preflight", json=choices).raise_for_status()  # as the dialog does, before SEND
        sent = time.time()
        name = api.post("jobs", json=choices).raise_for_status().json()["name"]
    directory = box.run_dir / "volumes" / "exchange" / name
    wait_for("the result is there", (directory / layout.DELIVERY).exists, timeout=120)
    wait_for("the pod has ended", lambda: ended_pods(box, name), timeout=60)
    (pod,) = ended_pods(box, name)
    outcome = json.loads((directory / "attempt-1" / layout.OUTCOME).read_text())
    delivery = json.loads((directory / layout.DELIVERY).read_text())
    return Moments(
        sent=sent,
        created=creation(box, name).answered.timestamp(),
        cell=_first_cell(folder / f"{name}.ipynb"),
        finished=times.parse(outcome["finished"]).timestamp(),
        result=times.parse(delivery["time"]).timestamp(),
        ended=end_of_pod(box, pod["metadata"]["name"]),
    )


def _run_papermill(box: Box, image: str, name: str, folder: Path) -> Moments:
    """Create a Job that runs papermill, and wait until it is complete."""
    sent, created = asyncio.run(_create(box, _manifest(image, name)))
    complete = ("--for=condition=Complete", "--timeout=120s")
    box.kubectl("wait", f"job/{name}", "-n", TEAM, *complete, timeout=130)
    (pod,) = ended_pods(box, name, "batch.kubernetes.io/job-name")
    told = [
        request.answered.timestamp()
        for user in JOB_CONTROLLERS
        for request in box.audit.requests(user)
        if (request.resource, request.subresource, request.name) == ("jobs", "status", name)
    ]
    output = folder / f"{name}.ipynb"
    return Moments(
        sent=sent,
        created=created,
        cell=_first_cell(output),
        finished=output.stat().st_mtime,
        result=max(told),
        ended=end_of_pod(box, pod["metadata"]["name"]),
    )


async def _create(box: Box, job: dict[str, Any]) -> tuple[float, float]:
    """Create a Job by a connection that is open; return the moments before and after."""
    async with Cluster.connect(str(box.kubeconfig)) as cluster:
        await cluster.has_namespace(TEAM)
        before = time.time()
        await cluster.create_job(job)
        return before, time.time()


def _manifest(image: str, name: str) -> dict[str, Any]:
    """Return the Job of papermill: the dev pod's image and claim, the flavor's resources."""
    pod = lab.lab_manifest(image, CLAIM, "grace")["spec"]
    (container,) = pod["containers"]
    del container["readinessProbe"]
    flavor = product.FLAVORS.partition("x-small")[2]
    cpu = flavor.partition("cpu: ")[2].partition(",")[0]
    amounts = {"cpu": cpu, "memory": "512Mi", GPU: "1"}
    container |= {
        "command": ["papermill", "trivial.ipynb", f"{name}.ipynb"],
        "workingDir": WORK,
        "resources": {"requests": amounts, "limits": amounts},
    }
    template = {"spec": {**pod, "restartPolicy": "Never"}}
    metadata = {"name": name, "namespace": TEAM}
    spec = {"template": template, "backoffLimit": 0}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": spec}


def _first_cell(result: Path) -> float:
    """Return when the first cell ran, as it printed itself."""
    return float(text_of(json.loads(result.read_text())).splitlines()[0])


def _show(ours: Sequence[Moments], papermill: Sequence[Moments]) -> list[str]:
    """Print the medians; return the rows that missed their targets."""
    print(f"\nseconds, medians of {len(ours)} jobs     ours  papermill  ratio  target")
    missed = []
    for title, (begin, end, target) in ROWS.items():
        own, other = (
            statistics.median(getattr(job, end) - getattr(job, begin) for job in jobs)
            for jobs in (ours, papermill)
        )
        bound = "" if target is None else f"{target:8.2f}"
        print(f"  {title:38} {own:6.2f} {other:8.2f} {own / other:8.2f} {bound}".rstrip())
        if target is not None and own / other > target:
            missed.append(title)
    print("missed: " + "; ".join(missed) if missed else "all targets are met")
    return missed


if __name__ == "__main__":
    raise SystemExit(main())
