"""What comes and goes: a job whose key is used again, a namespace whose jobs run, a new one."""

from __future__ import annotations

import time

import pytest

from tests.cluster.box.cluster import Cluster, KubectlError
from tests.cluster.box.images import Images
from tests.cluster.box.wait import wait_for
from tests.cluster.product import HOME, LATER, LEAVING, DevPod, add_namespace, start_dev_pod
from tests.cluster.scenes import SubmittedJob, notebook, submit

pytestmark = pytest.mark.side_by_side


@pytest.mark.parametrize("state", ["ended", "ran"])
def test_the_same_key_again_after_delete(dev_pod: DevPod, state: str) -> None:
    """Of a job that had ended, or of one that ran: it becomes a new run under the old name."""

    def submit() -> SubmittedJob:
        key = ("--idempotency-key", f"key-{state}")
        return SubmittedJob.counting(dev_pod, state, "-f", "crowd", *key)

    again: list[SubmittedJob] = []

    def is_accepted() -> bool:
        try:
            again.append(submit())
        except KubectlError as error:
            assert "just being deleted" in str(error)
            return False
        return True

    job = submit()
    job.until_printed()
    if state == "ended":
        job.let_end()
        job.check_counted(job.until_ended(), None)

    dev_pod.run("jupyter-to-job", "delete", job.name)
    wait_for("the key is free", is_accepted)
    assert again == [job]
    job.until_printed()
    job.let_end()
    copies = 2 if state == "ended" else 1  # the first result stays where it is
    job.check_counted(job.until_ended(), None, copies=copies)


def test_a_namespace_is_deleted_while_a_job_runs(
    cluster: Cluster, dev_pod: DevPod, images: Images
) -> None:
    """Within a minute it is gone, the job has ended, and its owner reads what it printed."""
    assert dev_pod.cluster is cluster  # the controller is there
    job = SubmittedJob.counting(start_dev_pod(cluster, images, LEAVING), "leaving", "-f", "crowd")
    printed = job.until_printed()
    begun = time.monotonic()
    cluster.kubectl("delete", "namespace", LEAVING, "--timeout=60s", timeout=70)

    add_namespace(cluster, LEAVING)
    returned = SubmittedJob(start_dev_pod(cluster, images, LEAVING), job.name)
    remaining = max(1.0, begun + 60 - time.monotonic())
    wait_for("it has ended", lambda: returned.job()["state"] == "failed", timeout=remaining)
    ended = returned.until_ended()
    # Whether its Job or its pod is deleted first is up to Kubernetes.
    assert ended["reason"] in ("Lost", "Terminated"), ended
    assert ended["delivery"]["state"] == "held"
    assert returned.printed() >= printed


def test_a_namespace_is_made_after_the_controller_began(
    cluster: Cluster, dev_pod: DevPod, images: Images
) -> None:
    """It was listed, and refused nobody else; now its dev pods submit."""
    assert dev_pod.cluster is cluster  # the controller is there
    add_namespace(cluster, LATER)
    late = start_dev_pod(cluster, images, LATER)
    late.write(f"{HOME}/late.ipynb", notebook("print(1)"))
    job = submit(late, f"{HOME}/late.ipynb", "-f", "crowd")
    assert (job["state"], job["delivery"]["state"]) == ("succeeded", "delivered")
