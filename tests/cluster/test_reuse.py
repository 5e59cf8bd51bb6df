"""What was deleted: a job whose key is used again, and a namespace whose jobs run."""

from __future__ import annotations

import time

from tests.cluster.box.cluster import Cluster, KubectlError
from tests.cluster.box.images import Images
from tests.cluster.box.wait import wait_for
from tests.cluster.product import LEAVING, DevPod, add_namespace, start_dev_pod
from tests.cluster.scenes import SubmittedJob


def test_the_same_key_again_after_delete(dev_pod: DevPod) -> None:
    """Of a job that had ended, and of one that ran: each becomes a new run under the old name."""
    stems = ("ended", "ran")

    def submit(stem: str) -> SubmittedJob:
        return SubmittedJob.counting(
            dev_pod, stem, "-f", "crowd", "--idempotency-key", f"key-{stem}"
        )

    def submit_when_deleted(stem: str) -> SubmittedJob:
        submitted: list[SubmittedJob] = []

        def is_accepted() -> bool:
            try:
                submitted.append(submit(stem))
            except KubectlError as error:
                assert "just being deleted" in str(error)
                return False
            return True

        wait_for("the key is free", is_accepted, timeout=60)
        return submitted[0]

    before = [submit(stem) for stem in stems]
    for job in before:
        job.until_printed()
    before[0].let_end()
    before[0].check_counted(before[0].until_ended(), None)

    dev_pod.run("jupyter-to-job", "delete", *(job.name for job in before))
    again = [submit_when_deleted(stem) for stem in stems]
    assert again == before
    for job, copies in zip(again, (2, 1), strict=True):  # the first result stays where it is
        job.until_printed()
        job.let_end()
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
