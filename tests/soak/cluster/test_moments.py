"""Something is killed or taken away on a cluster at random moments in the lives of three jobs."""

from __future__ import annotations

import contextlib
import random
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from tests.cluster.box.cluster import KubectlError
from tests.cluster.controllers import kill_controller
from tests.cluster.product import DevPod
from tests.cluster.scenes import (
    AGENT,
    RUNNER,
    SubmittedJob,
    delete_job,
    evict,
    find_process,
)

Ending = tuple[str, "str | None"]
SUCCEEDED: Ending = ("succeeded", None)
CELL = (
    "import time\nfor number in range(40):\n    print(number, flush=True)\n    time.sleep(0.05)\n"
)
SECONDS = 12.0
"""From the submission of a job until it has certainly begun to end."""


def kill(job: SubmittedJob, of: bytes) -> None:
    """Kill a process of a job, if it is there."""
    if find_process(of, job.name) is not None:
        with contextlib.suppress(ProcessLookupError, AssertionError):
            job.kill(of)


def evict_pod(job: SubmittedJob) -> None:
    """Evict a job's pod, if there is one."""
    with contextlib.suppress(KubectlError):  # it has ended
        for pod in job.pods():
            evict(job.dev_pod.cluster, job.dev_pod.namespace, pod["metadata"]["name"])


def delete_by_hand(job: SubmittedJob) -> None:
    """Delete a job's Job, if there is one."""
    with contextlib.suppress(KubectlError):
        delete_job(job.dev_pod.cluster, job.dev_pod.namespace, job.name)


FAULTS: dict[str, tuple[Callable[[SubmittedJob], None], tuple[Ending, ...]]] = {
    "controller": (lambda job: kill_controller(job.dev_pod), ()),
    "agent": (lambda job: kill(job, AGENT), (("failed", "Lost"),)),
    "runner": (lambda job: kill(job, RUNNER), (("failed", "Lost"), ("failed", "RunnerMissing"))),
    "eviction": (evict_pod, (("failed", "Evicted"),)),
    "deletion": (delete_by_hand, (("failed", "Lost"),)),
}
"""What happens, and how a job may have ended by it; it may always have succeeded before."""


@pytest.mark.usefixtures("box")
@pytest.mark.timeout(600)
def test_a_fault_on_the_cluster(dev_pod: DevPod, rng: random.Random, met: Counter[str]) -> None:
    """Each of three jobs ends once, in a way that is right, and with all that was journalled."""
    fault = rng.choice(list(FAULTS))
    inflict, endings = FAULTS[fault]
    jobs = [
        SubmittedJob.submit(dev_pod, f"moment-{number}", "-f", "crowd", cells=(CELL,))
        for number in range(3)
    ]
    victims = rng.sample(jobs, 2)
    for job in victims:
        time.sleep(rng.uniform(0, SECONDS / 2))  # the moment
        inflict(job)
    met[fault] += 1
    for job in jobs:
        right = {SUCCEEDED, *endings} if job in victims else {SUCCEEDED}
        check(job, job.until_ended(), right)


def check(job: SubmittedJob, ended: Any, right: set[Ending]) -> None:
    """Check how a job ended, and that its result has every number that was journalled."""
    assert (ended["state"], ended["reason"]) in right, ended
    printed = job.printed()
    if ended["delivery"]["state"] == "none":
        assert printed == 0
        assert ended["state"] == "failed"
        return
    job.check_counted(ended, ended["reason"], 40 if ended["state"] == "succeeded" else printed)
