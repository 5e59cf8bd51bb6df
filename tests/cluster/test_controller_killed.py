"""The controller is killed without a word to it: what runs goes on, and no end is lost."""

from __future__ import annotations

from tests.cluster.controllers import kill_controller
from tests.cluster.product import DevPod
from tests.cluster.scenes import SubmittedJob


def test_while_jobs_queue_run_and_end(dev_pod: DevPod) -> None:
    """Three jobs for two GPUs: the third one says why it waits, and has its turn."""
    gpu = ("-f", "crowd-gpu", "-d", "a100")
    running, ending = (SubmittedJob.counting(dev_pod, stem, *gpu) for stem in ("running", "ending"))
    printed = {job: job.until_printed() for job in (running, ending)}
    queued = SubmittedJob.counting(dev_pod, "queued", *gpu)
    job = queued.until(lambda job: job["reason"] == "Unschedulable")
    assert job["state"] == "queued"
    assert "nvidia.com/gpu" in job["message"]

    ending.let_end()
    kill_controller(dev_pod)
    printed[queued] = queued.until_printed()
    running.until_printed(more_than=printed[running])
    for each in (running, queued):
        each.let_end()
    for each, before in printed.items():
        each.check_counted(each.until_ended(), None, before)
