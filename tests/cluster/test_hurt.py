"""Pods that are hurt or taken away, side by side."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from tests.cluster.box.boot import T4, Box
from tests.cluster.box.cluster import Cluster
from tests.cluster.box.wait import wait_for
from tests.cluster.product import TEAM, DevPod
from tests.cluster.scenes import AGENT, COUNT, EAT_MEMORY, RUNNER, SubmittedJob, delete_job, drain


@dataclass(frozen=True)
class Ending:
    """How a job ended, and how many numbers it had printed before it was hurt."""

    submitted: SubmittedJob
    job: Any
    printed: int = 0

    def check(self, reason: str | None) -> None:
        self.submitted.check_counted(self.job, reason, self.printed)


@pytest.fixture(scope="module")
def urgent(cluster: Cluster) -> Iterator[None]:
    """The priority class of the flavor `urgent`."""
    api = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass"}
    cluster.apply({**api, "metadata": {"name": "urgent"}, "value": 1000})
    yield
    cluster.kubectl("delete", "priorityclass", "urgent")


@pytest.fixture(scope="module")
def ended(cluster: Cluster, dev_pod: DevPod, urgent: None) -> dict[str, Ending]:
    """Jobs that ran at the same time, after each was hurt in its own way, by its notebook's name.

    The machine's processes are those of the box.
    """
    if not isinstance(cluster, Box):
        pytest.skip("hurts processes of the box")
    crowd, gpu = ("-f", "crowd"), ("-f", "crowd-gpu")
    jobs = {
        "unclaimed": SubmittedJob.counting(dev_pod, "unclaimed", *gpu, "-d", "nowhere"),
        "runner": SubmittedJob.counting(dev_pod, "runner", *crowd),
        "agent": SubmittedJob.counting(dev_pod, "agent", *crowd),
        "silent": SubmittedJob.counting(dev_pod, "silent", *crowd),
        "starved": SubmittedJob.submit(dev_pod, "starved", *crowd, cells=(COUNT, EAT_MEMORY)),
        "drained": SubmittedJob.counting(dev_pod, "drained", *gpu, "-d", "t4"),
        "preempted": SubmittedJob.counting(dev_pod, "preempted", "-f", "crowd-gpus", "-d", "a100"),
    }
    wait_for("it waits", lambda: jobs["unclaimed"].job()["reason"] == "Unschedulable", timeout=60)
    delete_job(cluster, TEAM, jobs["unclaimed"].name)
    printed = {name: job.until_printed() for name, job in jobs.items() if name != "unclaimed"}

    jobs["urgent"] = SubmittedJob.counting(dev_pod, "urgent", "-f", "urgent", "-d", "a100")
    jobs["runner"].kill(RUNNER)
    jobs["agent"].kill(AGENT)
    jobs["starved"].prefer_runner_out_of_memory()
    jobs["starved"].let_end()
    end_without_agent(jobs["silent"])
    drain(cluster, T4.name, jobs["drained"].name)
    jobs["agent"].until_printed(more_than=jobs["agent"].printed())
    jobs["urgent"].until_printed()
    for name in ("agent", "urgent"):
        jobs[name].let_end()
    return {
        name: Ending(job, job.until_ended(), printed.get(name, 0)) for name, job in jobs.items()
    }


def end_without_agent(job: SubmittedJob) -> None:
    """Let a job's run succeed while its agent stands still, and then kill the agent."""
    agent = job.process(AGENT)
    os.kill(agent, signal.SIGSTOP)
    job.let_end()

    def has_ended() -> bool:
        (pod,) = job.pods()
        (container,) = pod["status"]["containerStatuses"]
        return "terminated" in container["state"]

    wait_for("the runner has ended", has_ended, timeout=60)  # the kubelet starts no agent now
    os.kill(agent, signal.SIGKILL)


@pytest.mark.usefixtures("box")
@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("runner", "Lost"),
        ("agent", None),
        ("starved", "OutOfMemory"),
        ("drained", "Evicted"),
        ("preempted", "Preempted"),
        ("urgent", None),
    ],
)
def test_nothing_is_lost(ended: dict[str, Ending], name: str, reason: str | None) -> None:
    ended[name].check(reason)


@pytest.mark.usefixtures("box")
def test_the_whole_container_was_out_of_memory(ended: dict[str, Ending]) -> None:
    (pod,) = ended["starved"].submitted.pods()
    (container,) = pod["status"]["containerStatuses"]
    assert container["state"]["terminated"]["exitCode"] == 137


@pytest.mark.usefixtures("box")
def test_a_run_whose_agent_could_not_send_its_end(ended: dict[str, Ending]) -> None:
    """It succeeded, but its last output is missing: nobody is told that all is well."""
    ended["silent"].check("Lost")
    assert "ran to its end" in ended["silent"].job["message"]


@pytest.mark.usefixtures("box")
def test_a_job_that_was_deleted_by_hand_before_it_was_claimed(ended: dict[str, Ending]) -> None:
    job = ended["unclaimed"].job
    assert (job["state"], job["reason"], job["delivery"]["state"]) == ("failed", "Lost", "none")
    assert "deleted by hand" in job["message"]
