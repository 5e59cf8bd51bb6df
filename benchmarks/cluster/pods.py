"""Measures how long a job's pod holds its GPU around the run, on the cluster of the tests.

From the API server's audit log: when the Job was created, and when the kubelet last told of the
pod, which is its end. From the job's directory: when the runner began and ended, what lies
between, and when the result was in the dev pod. From the dev pod: when the job was sent. One job
runs at a time, and after each the same Job is created and deleted once more by itself.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import tempfile
import time
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from job_runner.protocol import layout, times
from job_runner.protocol.journal.journal import read_journal
from jupyter_to_job.controller.cluster.cluster import Cluster
from tests.cluster import product
from tests.cluster.box.audit import Request
from tests.cluster.box.boot import Box
from tests.cluster.box.images import build_images
from tests.cluster.box.wait import wait_for
from tests.cluster.product import HOME, NAMESPACE, TEAM, DevPod

from ..machine import print_machine
from ..runner.measure import notebook

CONTROLLER = f"system:serviceaccount:{NAMESPACE}:controller"
CELLS = ["import time", "time.sleep(2)"]
SEND = f"""
import json, sys, time
from pathlib import Path
from jupyter_to_job.domain.job import Submission
from jupyter_to_job.wiring import connect
from jupyter_to_job.wiring.settings import Settings
jobs = connect(Settings.load(), Path("{HOME}"))
submission = Submission("train.ipynb", flavor="gpu-1", device="any")
jobs.preflight(submission)  # as the dialog does, before SEND
sent = time.time()
print(json.dumps([sent, jobs.submit(submission)[0].name]))
"""
"""Sends a job in the dev pod as JupyterLab's server does, with a connection that is open."""
ROWS = {
    "the same Job alone, created": ("bare", "nothing"),
    "SEND to Job created": ("answered", "sent"),
    "agent has the files": ("files", "created"),
    "runner has begun": ("start", "created"),
    "kernel's process has started": ("process", "created"),
    "first cell": ("cell", "created"),
    "pod ended, after the runner": ("ended", "finished"),
    "outcome written to delivered": ("delivered", "outcome"),
}
"""What is printed: seconds from the second moment to the first."""


def main() -> None:
    """Boot, run the jobs, print the medians."""
    parser = argparse.ArgumentParser(prog="benchmarks.cluster.pods", description=__doc__)
    parser.add_argument("--jobs", type=int, default=9)
    parser.add_argument("--cpu", default="1", help="of the notebook's container")
    options = parser.parse_args()
    print_machine()
    product.FLAVORS = product.FLAVORS.replace("cpu: 200m", f"cpu: {options.cpu}")
    with (
        tempfile.TemporaryDirectory(prefix="jupyter-to-job-") as folder,
        Box.boot(Path(folder), limits_cpu=True) as box,
    ):
        archive = Path(folder) / "images.tar"
        images = build_images(archive)
        box.load_image(archive)
        product.install(box, images)
        pod = product.start_dev_pod(box, images)
        pod.write(f"{HOME}/train.ipynb", notebook(CELLS))
        _show([_measure(box, pod) for _ in range(options.jobs)])


def _measure(box: Box, dev_pod: DevPod) -> dict[str, float]:
    """Run a job until its pod has ended; return the moments of its life in unix seconds."""
    sent, name = json.loads(dev_pod.run("python", "-c", SEND))
    dev_pod.run("jupyter-to-job", "wait", name)
    wait_for("the pod has ended", lambda: ended_pods(box, name))
    (pod,) = ended_pods(box, name)
    assert pod["status"]["phase"] == "Succeeded", pod["status"]
    (agent,) = pod["status"]["initContainerStatuses"]
    if agent["restartCount"]:
        print(f"{name}: its agent was started again {agent['restartCount']} times")
    pod_name = pod["metadata"]["name"]
    created = creation(box, name)
    return {
        "nothing": 0.0,
        "bare": asyncio.run(_create_again(box, name)),
        "sent": sent,
        "created": created.time.timestamp(),
        "answered": created.answered.timestamp(),
        "files": _agent_moment(box, pod_name),
        "ended": end_of_pod(box, pod_name),
        **_moments_of_directory(box.run_dir / "volumes" / "exchange" / name),
    }


def creation(box: Box, job: str) -> Request:
    """Return the request by which the controller created a Job."""
    requests = box.audit.requests(CONTROLLER)
    (created,) = [r for r in requests if (r.verb, r.name) == ("create", job)]
    return created


def end_of_pod(box: Box, pod: str) -> float:
    """Return when a node last told of a pod that has ended."""
    return max(
        request.time.timestamp()
        for node in box.nodes
        for request in box.audit.requests(f"system:node:{node.hardware.name}")
        if request.subresource == "status" and request.name == pod
    )


def _moments_of_directory(job: Path) -> dict[str, float]:
    """Return what the job's directory tells of its run."""
    attempt = job / "attempt-1"
    first: dict[str, float] = {}
    for entry in read_journal(attempt / layout.JOURNAL):
        first.setdefault(entry.record["k"], entry.record["t"])
    outcome = json.loads((attempt / layout.OUTCOME).read_text())
    delivery = json.loads((job / layout.DELIVERY).read_text())
    return {
        "start": first["start"],
        "process": first["kernel"],
        "cell": first["cell_start"],
        "finished": times.parse(outcome["finished"]).timestamp(),
        "outcome": (attempt / layout.OUTCOME).stat().st_mtime,
        "delivered": times.parse(delivery["time"]).timestamp(),
    }


async def _create_again(box: Box, name: str) -> float:
    """Return the seconds that it takes to create a job's Job under another name, suspended."""
    job = box.get("job", name, TEAM)
    spec = {**job["spec"], "suspend": True}
    for key in ("selector", "manualSelector"):
        spec.pop(key, None)
    template = json.loads(json.dumps(spec["template"]))
    del template["metadata"]["labels"]  # those with our label are the controller's to create
    copy_name = f"{name}-bare"
    copy = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": copy_name, "namespace": TEAM},
        "spec": {**spec, "template": template},
    }
    async with Cluster.connect(str(box.kubeconfig)) as cluster:
        await cluster.has_namespace(TEAM)  # opens the connection
        begun = time.perf_counter()
        await cluster.create_job(copy)
        seconds = time.perf_counter() - begun
    box.kubectl("delete", "job", copy_name, "-n", TEAM, "--wait=false")
    return seconds


def ended_pods(box: Box, job: str, label: str = "jupyter-to-job.io/job") -> list[Any]:
    """Return the pods of a job, found by a label, that have ended."""
    selector = f"{label}={job}"
    found = box.kubectl("get", "pods", "-n", TEAM, "-l", selector, "-o=json")
    phases = ("Succeeded", "Failed")
    return [pod for pod in json.loads(found)["items"] if pod["status"]["phase"] in phases]


def _agent_moment(box: Box, pod: str) -> float:
    """Return when the agent said that the files are there."""
    log = box.kubectl("logs", pod, "-n", TEAM, "-c", "agent", "--timestamps")
    line = next(line for line in log.splitlines() if "attempt 1" in line)
    return datetime.fromisoformat(line.split()[0][:26] + "+00:00").timestamp()


def _show(moments: Sequence[dict[str, float]]) -> None:
    print(f"\nseconds, of {len(moments)} jobs            median     95 %  of the jobs")
    for title, (end, begin) in ROWS.items():
        seconds = sorted(m[end] - m[begin] for m in moments)
        most = seconds[min(len(seconds) - 1, round(0.95 * len(seconds)))]
        shown = " ".join(f"{s:.2f}" for s in seconds)
        print(f"  {title:30} {statistics.median(seconds):8.3f} {most:8.3f}  {shown}", flush=True)


if __name__ == "__main__":
    main()
