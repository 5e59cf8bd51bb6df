"""The controller is killed without a word to it: what runs goes on, and no end is lost."""

from __future__ import annotations

import pytest

from tests.cluster.box.boot import Box
from tests.cluster.box.images import Images
from tests.cluster.controllers import kill_controller, own_controller
from tests.cluster.product import DevPod
from tests.cluster.scenes import SubmittedJob, until_worker_is_free


@pytest.mark.side_by_side(2)
def test_while_jobs_queue_run_and_end(box: Box, images: Images, dev_pod: DevPod) -> None:
    """Three jobs for two GPUs: the third one says why it waits, and has its turn."""
    assert dev_pod.cluster is box  # the first controller is there
    until_worker_is_free(box)
    with own_controller(box, images, "killed") as mine:
        check_jobs(mine)


def check_jobs(mine: DevPod) -> None:
    """Check that jobs go on which run, end and queue."""
    gpu = ("-f", "crowd-gpu", "-d", "a100")
    running, ending = (SubmittedJob.counting(mine, stem, *gpu) for stem in ("running", "ending"))
    printed = {job: job.until_printed() for job in (running, ending)}
    queued = SubmittedJob.counting(mine, "queued", *gpu)
    job = queued.until(lambda job: job["reason"] == "Unschedulable")
    assert job["state"] == "queued"
    assert "nvidia.com/gpu" in job["message"]

    ending.let_end()
    kill_controller(mine)
    printed[queued] = queued.until_printed()
    running.until_printed(more_than=printed[running])
    for each in (running, queued):
        each.let_end()
    for each, before in printed.items():
        each.check_counted(each.until_ended(), None, before)
