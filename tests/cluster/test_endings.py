"""What a cluster does to a job that runs or waits: each ends as it was, and nothing is lost."""

from __future__ import annotations

import pytest

from tests.cluster.box.cluster import Cluster, until_taken
from tests.cluster.box.images import Images
from tests.cluster.box.wait import wait_for
from tests.cluster.product import HOME, LIMITED, TEAM, DevPod, start_dev_pod
from tests.cluster.scenes import SubmittedJob, delete_job, evict, notebook, submit

pytestmark = pytest.mark.side_by_side


def test_an_evicted_pod(dev_pod: DevPod, cluster: Cluster) -> None:
    job = SubmittedJob.counting(dev_pod, "evicted")
    printed = job.until_printed()
    evict(cluster, TEAM, job.pod())
    job.check_counted(job.until_ended(), "Evicted", printed)


def test_an_evicted_pod_of_a_flavor_with_retries(dev_pod: DevPod, cluster: Cluster) -> None:
    """It runs again from the beginning, and nothing of the first attempt is delivered."""
    job = SubmittedJob.counting(dev_pod, "patient", "-f", "patient")
    job.until_printed()
    first = job.pod()
    evict(cluster, TEAM, first)

    def second() -> str | None:
        names = [pod["metadata"]["name"] for pod in job.pods()]
        return next((name for name in names if name != first), None)

    wait_for("a second pod", second)
    job.until(lambda job: job["state"] == "running")
    name = second()
    assert name is not None
    touch = ("exec", "-n", TEAM, name, "-c", "notebook", "--", "touch", "/tmp/go")
    until_taken("the second pod is let go", lambda: cluster.kubectl(*touch))
    job.check_counted(job.until_ended(), None)


def test_a_job_that_was_deleted_by_hand(dev_pod: DevPod, cluster: Cluster) -> None:
    """Its pod has its grace, in which the rest is sent."""
    job = SubmittedJob.counting(dev_pod, "by-hand")
    printed = job.until_printed()
    delete_job(cluster, TEAM, job.name)
    job.check_counted(job.until_ended(), "Lost", printed)


@pytest.mark.parametrize(
    ("flavor", "reason", "said"),
    [
        ("no-image", "ImageUnavailable", "image"),
        ("without-us", "RunnerMissing", "job_runner"),
        ("without-python", "RunnerMissing", "job_runner"),
    ],
)
def test_an_image_that_does_not_do(dev_pod: DevPod, flavor: str, reason: str, said: str) -> None:
    dev_pod.write(f"{HOME}/{flavor}.ipynb", notebook("print('never')"))
    job = submit(dev_pod, f"{HOME}/{flavor}.ipynb", "-f", flavor)
    assert (job["state"], job["reason"]) == ("failed", reason), job
    assert said in job["message"] and job["delivery"]["state"] == "none", job


def test_cancel_of_a_job_that_is_starting(dev_pod: DevPod) -> None:
    """Its pod waits for an image; nothing ran, so nothing comes back."""
    job = SubmittedJob.submit(dev_pod, "starting", "-f", "no-image", cells=("print('never')",))
    job.until(lambda latest: latest["state"] == "starting")
    dev_pod.run("jupyter-to-job", "cancel", job.name)
    ended = job.until_ended()
    assert (ended["state"], ended["reason"]) == ("cancelled", None), ended
    assert ended["delivery"]["state"] == "none", ended
    wait_for("its pod is gone", lambda: not job.pods())


def test_a_quota_that_frees_up_later(cluster: Cluster, dev_pod: DevPod, images: Images) -> None:
    assert dev_pod.cluster is cluster  # the controller is there
    quota = {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "none", "namespace": LIMITED},
        "spec": {"hard": {"count/jobs.batch": "0"}},
    }
    cluster.apply(quota)
    limited = start_dev_pod(cluster, images, LIMITED)
    wait_for(
        "the quota holds",
        lambda: "hard" in cluster.get("resourcequota", "none", LIMITED).get("status", {}),
    )
    job = SubmittedJob.submit(limited, "quota", cells=("print('at last')",))
    waiting = job.until(lambda job: job["reason"] == "QuotaExceeded")
    assert waiting["state"] == "queued"
    # Now its Job is taken, and not its pod: the dev pod has the only place.
    cluster.apply({**quota, "spec": {"hard": {"pods": "1"}}})
    # Events and messages come by two watches.
    refused = job.until(
        lambda job: (
            "FailedCreate" in {e["reason"] for e in job["events"] or ()}
            and "the job asks for 1 pods" in (job["message"] or "")
        )
    )
    assert (refused["state"], refused["reason"]) == ("queued", "QuotaExceeded"), refused
    assert "has no room now: the job asks for 1 pods" in refused["message"], refused
    assert all(event["time"] for event in refused["events"])
    cluster.kubectl("delete", "resourcequota", "none", "-n", LIMITED)
    assert job.until_ended()["state"] == "succeeded"
