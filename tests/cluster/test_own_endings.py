"""Runs that end by themselves or by their limits, side by side."""

from __future__ import annotations

from typing import Any

import pytest

from tests.cluster.product import DevPod
from tests.cluster.scenes import COUNT, EAT_MEMORY, SubmittedJob, large_output, output_size

MEGABYTES = 30


@pytest.fixture(scope="module")
def ended(dev_pod: DevPod) -> dict[str, Any]:
    """Jobs that ran at the same time, after their ends."""
    cells = {
        "deadline": (COUNT,),
        "memory": ("print(0, flush=True)", EAT_MEMORY),
        "large": large_output(MEGABYTES),
    }
    options = {"deadline": ("--max-runtime", "5s")}
    jobs = {
        name: SubmittedJob.submit(dev_pod, name, "-f", "crowd", *options.get(name, ()), cells=each)
        for name, each in cells.items()
    }
    return {name: job.until_ended() for name, job in jobs.items()}


@pytest.mark.usefixtures("cluster")
def test_a_run_past_its_limit(dev_pod: DevPod, ended: dict[str, Any]) -> None:
    job = ended["deadline"]
    SubmittedJob(dev_pod, job["name"]).check_counted(job, "DeadlineExceeded", at_least=10)


@pytest.mark.usefixtures("cluster")
def test_out_of_memory(dev_pod: DevPod, ended: dict[str, Any]) -> None:
    """On cgroup v1 the kernel process alone, on v2 the whole container (see `test_hurt`)."""
    job = ended["memory"]
    assert "512 MiB" in job["message"]
    SubmittedJob(dev_pod, job["name"]).check_counted(job, "OutOfMemory", at_least=1)


@pytest.mark.usefixtures("cluster")
def test_a_large_result(dev_pod: DevPod, ended: dict[str, Any]) -> None:
    job = ended["large"]
    assert (job["state"], job["delivery"]["state"]) == ("succeeded", "delivered"), job
    assert output_size(dev_pod, job) == MEGABYTES * 1_000_000
