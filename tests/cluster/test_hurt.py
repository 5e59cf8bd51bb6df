"""Pods that are hurt or taken away.

The machine's processes are those of the box.
"""

from __future__ import annotations

import os
import signal

import pytest

from tests.cluster.box.boot import T4, Box
from tests.cluster.box.wait import wait_for
from tests.cluster.product import HOME, TEAM, DevPod
from tests.cluster.scenes import (
    AGENT,
    COUNT,
    EAT_MEMORY,
    RUNNER,
    SubmittedJob,
    delete_job,
    drain,
    until_worker_is_free,
)

CROWD = ("-f", "crowd")
pytestmark = pytest.mark.side_by_side


def test_a_killed_runner(box: Box, dev_pod: DevPod) -> None:
    assert dev_pod.cluster is box
    job = SubmittedJob.counting(dev_pod, "runner", *CROWD)
    printed = job.until_printed()
    job.kill(RUNNER)
    job.check_counted(job.until_ended(), "Lost", printed)


def test_a_killed_agent(box: Box, dev_pod: DevPod) -> None:
    """It starts again, and nobody notices."""
    assert dev_pod.cluster is box
    job = SubmittedJob.counting(dev_pod, "agent", *CROWD)
    printed = job.until_printed()
    job.kill(AGENT)
    job.until_printed(more_than=max(printed, job.printed()))
    job.let_end()
    job.check_counted(job.until_ended(), None, printed)


def test_the_whole_container_is_out_of_memory(box: Box, dev_pod: DevPod) -> None:
    assert dev_pod.cluster is box
    makes = "_ = open('made.txt', 'w').write('whole')"
    job = SubmittedJob.submit(dev_pod, "starved", *CROWD, cells=(makes, COUNT, EAT_MEMORY))
    printed = job.until_printed()
    job.prefer_runner_out_of_memory()
    job.let_end()
    ended = job.until_ended()
    job.check_counted(ended, "OutOfMemory", printed, copies=2)  # and the folder of its files
    assert dev_pod.run("cat", f"{HOME}/{job.name}/made.txt") == "whole", ended
    (pod,) = job.pods()
    (container,) = pod["status"]["containerStatuses"]
    assert container["state"]["terminated"]["exitCode"] == 137


def test_a_run_whose_agent_could_not_send_its_end(box: Box, dev_pod: DevPod) -> None:
    """It succeeded, but its last output is missing: nobody is told that all is well."""
    assert dev_pod.cluster is box
    job = SubmittedJob.counting(dev_pod, "silent", *CROWD)
    printed = job.until_printed()
    agent = job.process(AGENT)
    os.kill(agent, signal.SIGSTOP)
    job.let_end()

    def has_ended() -> bool:
        (pod,) = job.pods()
        (container,) = pod["status"]["containerStatuses"]
        return "terminated" in container["state"]

    wait_for("the runner has ended", has_ended)  # the kubelet starts no agent now
    os.kill(agent, signal.SIGKILL)
    ended = job.until_ended()
    job.check_counted(ended, "Lost", printed)
    assert "ran to its end" in ended["message"]


def test_a_drained_node(box: Box, dev_pod: DevPod) -> None:
    job = SubmittedJob.counting(dev_pod, "drained", "-f", "crowd-gpu", "-d", "t4")
    printed = job.until_printed()
    drain(box, T4.name, job.name)
    job.check_counted(job.until_ended(), "Evicted", printed)


@pytest.mark.side_by_side(2)
def test_a_job_that_another_one_preempts(box: Box, dev_pod: DevPod) -> None:
    until_worker_is_free(box)
    api = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass"}
    box.apply({**api, "metadata": {"name": "urgent"}, "value": 1000})  # of the flavor `urgent`
    job = SubmittedJob.counting(dev_pod, "preempted", "-f", "crowd-gpus", "-d", "a100")
    printed = job.until_printed()
    urgent = SubmittedJob.counting(dev_pod, "urgent", "-f", "urgent", "-d", "a100")
    job.check_counted(job.until_ended(), "Preempted", printed)
    printed = urgent.until_printed()
    urgent.let_end()
    urgent.check_counted(urgent.until_ended(), None, printed)
    box.kubectl("delete", "priorityclass", "urgent")


def test_a_job_that_was_deleted_by_hand_before_it_was_claimed(box: Box, dev_pod: DevPod) -> None:
    gpu = ("-f", "crowd-gpu", "-d", "nowhere")
    submitted = SubmittedJob.counting(dev_pod, "unclaimed", *gpu)
    submitted.until(lambda job: job["reason"] == "Unschedulable")
    delete_job(box, TEAM, submitted.name)
    job = submitted.until_ended()
    assert (job["state"], job["reason"], job["delivery"]["state"]) == ("failed", "Lost", "none")
    assert "deleted by hand" in job["message"]
