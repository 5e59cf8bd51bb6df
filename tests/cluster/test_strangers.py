"""A Job that the exchange does not know, and a second pod of a Job: neither disturbs a job."""

from __future__ import annotations

import contextlib
import copy
import json
from typing import Any

import pytest

from jupyter_to_job.domain.names import job_name
from tests.cluster.box.boot import Box
from tests.cluster.box.cluster import Cluster, KubectlError, until_taken
from tests.cluster.box.wait import wait_for
from tests.cluster.deliveries import exchange_of
from tests.cluster.product import DevPod
from tests.cluster.scenes import SubmittedJob
from tests.cluster.test_manifests import CONTROLLER, JOB_CONTROLLER

OF_KUBERNETES = ("controller-uid", "job-name", "batch.kubernetes.io/")
"""How the labels begin that Kubernetes gives to the pods of a Job."""


def as_account(cluster: Cluster, account: str, manifest: Any) -> Any:
    """Create an object in the name of a service account."""
    made = cluster.kubectl(
        "create", "-f", "-", "-o=json", f"--as={account}", stdin=json.dumps(manifest)
    )
    return json.loads(made)


def twin_of(job: SubmittedJob, name: str) -> Any:
    """Return the Job of a job under another name, as our controller would have made it."""
    found = job.dev_pod.cluster.get("job", job.name, job.dev_pod.namespace)
    twin = json.loads(json.dumps(found).replace(job.name, name))
    kept = ("labels", "annotations", "namespace", "name")
    twin["metadata"] = {key: twin["metadata"][key] for key in kept}
    del twin["status"], twin["spec"]["selector"]
    template = twin["spec"]["template"]["metadata"]
    template["labels"] = {
        key: value for key, value in template["labels"].items() if not key.startswith(OF_KUBERNETES)
    }
    return twin


@pytest.mark.side_by_side
def test_a_job_that_the_exchange_does_not_know(cluster: Cluster, dev_pod: DevPod) -> None:
    """As after a restored backup. It runs nothing, and waits for whoever deletes it."""
    known = SubmittedJob.counting(dev_pod, "known", "-f", "crowd")
    printed = known.until_printed()
    unknown = SubmittedJob(dev_pod, job_name("unknown.ipynb", owner="nobody"))
    as_account(cluster, CONTROLLER, twin_of(known, unknown.name))

    wait_for("there is its pod", lambda: len(unknown.pods()) == 1)
    until_refused(unknown, unknown.pod())
    answer = dev_pod.run("sh", "-c", f"jupyter-to-job show {unknown.name} 2>&1; echo code $?")
    assert "code 3" in answer
    assert unknown.name not in dev_pod.run("jupyter-to-job", "list", "--all")
    assert cluster.get("job", unknown.name, dev_pod.namespace)["status"]["active"] == 1

    selector = f"--selector=jupyter-to-job.io/job={unknown.name}"  # as docs/operations.md says
    cluster.kubectl("delete", "jobs", selector, "-n", dev_pod.namespace)
    wait_for("its pod is gone", lambda: not unknown.pods())
    known.until_printed(more_than=printed)
    known.let_end()
    known.check_counted(known.until_ended(), None, printed)


def test_two_pods_of_one_job(box: Box, dev_pod: DevPod) -> None:
    """Kubernetes says that it may happen. The second one runs nothing while there is the first."""
    job = SubmittedJob.counting(dev_pod, "twice", "-f", "crowd")
    printed = job.until_printed()
    (first,) = job.pods()
    second = copy.deepcopy(first)
    kept = ("generateName", "namespace", "labels", "annotations", "ownerReferences", "finalizers")
    second["metadata"] = {key: first["metadata"][key] for key in kept}
    second |= {"apiVersion": "v1", "kind": "Pod"}
    del second["status"], second["spec"]["nodeName"]
    with box.without_controller_manager():  # it would delete one of the two at once
        name = as_account(box, JOB_CONTROLLER, second)["metadata"]["name"]
        until_refused(job, name)
        job.let_end(first["metadata"]["name"])
        ended = job.until_ended()
    attempts = exchange_of(job).directory(job.name).glob("attempt-*")
    assert [attempt.name for attempt in attempts] == ["attempt-1"]
    job.check_counted(ended, None, printed)
    wait_for("the second pod has ended", lambda: has_ended(job, name))
    after = job.job()
    assert {**after, "events": None} == {**ended, "events": None}
    job.check_counted(after, None, printed)


def until_refused(job: SubmittedJob, pod: str) -> None:
    """Wait until the agent in a pod has started and is refused: the run does not begin there."""
    cluster, pods = job.dev_pod.cluster, ("-n", job.dev_pod.namespace, pod)

    def is_refused() -> bool:
        with contextlib.suppress(KubectlError):  # the container is not there yet
            return "not accepted" in cluster.kubectl("logs", *pods, "-c", "agent")
        return False

    wait_for("its agent is refused", is_refused)
    ls = ("exec", *pods, "-c", "notebook", "--", "ls", "-a", "/jupyter-to-job")
    assert job.name not in until_taken("its files are listed", lambda: cluster.kubectl(*ls))


def has_ended(job: SubmittedJob, name: str) -> bool:
    """Tell whether a pod of a job runs no more."""
    phases = {pod["metadata"]["name"]: pod["status"]["phase"] for pod in job.pods()}
    return phases.get(name) in (None, "Succeeded", "Failed")
