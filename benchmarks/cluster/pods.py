"""Measures how long a job's pod holds its GPU around the run, on the cluster of the tests.

From the API server's audit log: when the Job was created, and when the kubelet last told of the
pod, which is its end. From the job's directory: when the runner began and ended, what lies
between, and when the result was in the dev pod. From the dev pod: when the job was sent. One job
runs at a time, and after each the same Job is created and deleted once more by itself. Between
them run jobs that create a file, if its size is given.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import math
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
from . import targets

CONTROLLER = f"system:serviceaccount:{NAMESPACE}:controller"
CELLS = ["import time", "time.sleep(2)"]
MAKE = "import os; open('made.bin', 'wb').write(os.urandom({}_000_000))"
"""A cell that creates a file of so many megabytes."""
SEND = f"""
import json, sys, time
from pathlib import Path
from jupyter_to_job.domain.job import Submission
from jupyter_to_job.wiring import connect
from jupyter_to_job.wiring.settings import Settings
jobs = connect(Settings.load(), Path("{HOME}"))
submission = Submission(sys.argv[1], flavor="gpu-1", device="any", isolated=True)
jobs.preflight(submission)  # as the dialog does, before SEND
sent = time.time()
print(json.dumps([sent, jobs.submit(submission)[0].name]))
"""
"""Sends a job in the dev pod as JupyterLab's server does, with a connection that is open."""
Row = tuple[str, str, tuple[float, float] | None]
ROWS: dict[str, Row] = {
    "the same Job alone, created": ("bare", "nothing", None),
    "SEND to Job created": ("answered", "sent", None),
    "agent has the files": ("files", "created", None),
    "runner has begun": ("start", "created", None),
    "kernel's process has started": ("process", "created", None),
    "first cell": ("cell", "created", targets.POD_STARTED),
    "pod ended, after the runner": ("ended", "finished", targets.POD_ENDED),
    "outcome written to delivered": ("delivered", "outcome", targets.DELIVERED),
}
"""What is printed: seconds from the second moment to the first, and what median and 95 % may be."""

FILE_ROWS: dict[str, Row] = {
    title: (end, begin, (targets.FILES, targets.FILES))
    for title, (end, begin, _) in ROWS.items()
    if end in ("ended", "delivered")
}
"""The rows that files make longer."""


def main() -> int:
    """Boot, run the jobs, print the medians; return 1 if a target is missed."""
    parser = argparse.ArgumentParser(prog="benchmarks.cluster.pods", description=__doc__)
    parser.add_argument("--jobs", type=int, default=9)
    parser.add_argument("--cpu", default="1", help="of the notebook's container")
    parser.add_argument(
        "--artifacts", type=int, default=0, metavar="MB", help="as many further jobs create this"
    )
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
        pod = product.start_dev_pod(box, images)
        pod.write(f"{HOME}/train.ipynb", notebook(CELLS))
        pod.write(f"{HOME}/makes.ipynb", notebook([*CELLS, MAKE.format(options.artifacts)]))
        plain, makers = [], []
        for _ in range(options.jobs):
            plain.append(_measure(box, pod, "train.ipynb"))
            if options.artifacts:
                makers.append(_measure(box, pod, "makes.ipynb"))
    missed = _show(f"{len(plain)} jobs", plain, ROWS)
    bare, submitted = (_median(plain, *ROWS[title][:2]) for title in list(ROWS)[:2])
    if submitted > targets.SUBMITTED * bare:
        missed.append(f"SEND to Job created: {submitted / bare:.1f} times a bare Job")
    if makers:
        missed += _show(f"{len(makers)} jobs with {options.artifacts} MB", makers, FILE_ROWS)
    print("\nmissed: " + "; ".join(missed) if missed else "\nall targets are met")
    return 1 if missed else 0


def _measure(box: Box, dev_pod: DevPod, path: str) -> dict[str, float]:
    """Run a job until its pod has ended; return the moments of its life in unix seconds."""
    sent, name = json.loads(dev_pod.run("python", "-c", SEND, path))
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
    phases = ("Succeeded", "Failed")
    pods = box.items("pods", TEAM, f"{label}={job}")
    return [pod for pod in pods if pod["status"]["phase"] in phases]


def _agent_moment(box: Box, pod: str) -> float:
    """Return when the agent said that the files are there."""
    log = box.kubectl("logs", pod, "-n", TEAM, "-c", "agent", "--timestamps")
    line = next(line for line in log.splitlines() if "attempt 1" in line)
    return datetime.fromisoformat(line.split()[0][:26] + "+00:00").timestamp()


def _median(jobs: Sequence[dict[str, float]], end: str, begin: str) -> float:
    return statistics.median(job[end] - job[begin] for job in jobs)


def _show(what: str, jobs: Sequence[dict[str, float]], rows: dict[str, Row]) -> list[str]:
    """Print the seconds of jobs; return which targets they missed."""
    print(f"\n{f'seconds, of {what}':32} {'median':>8} {'95 %':>8}  of the jobs")
    missed = []
    for title, (end, begin, target) in rows.items():
        seconds = sorted(job[end] - job[begin] for job in jobs)
        found = _median(jobs, end, begin), seconds[math.ceil(0.95 * len(seconds)) - 1]
        shown = " ".join(f"{s:.2f}" for s in seconds)
        print(f"  {title:30} {found[0]:8.3f} {found[1]:8.3f}  {shown}", flush=True)
        for name, figure, most in zip(("median", "95 %"), found, target or (), strict=False):
            if figure > most:
                missed.append(f"{title}, {what}: {name} {figure:.2f} s")
    return missed


if __name__ == "__main__":
    raise SystemExit(main())
