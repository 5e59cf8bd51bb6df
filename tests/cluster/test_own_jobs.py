"""Our Jobs and their pods are ours, whatever others may do in a namespace (k8s/policies)."""

from __future__ import annotations

import copy
import json
from functools import partial
from typing import Any

import pytest

from tests.cluster import eve
from tests.cluster.box.cluster import Cluster
from tests.cluster.box.images import Images
from tests.cluster.box.wait import wait_for
from tests.cluster.eve import EVE, allow_eve, as_user
from tests.cluster.product import HOME, TEAM, DevPod, dev_pod_manifest
from tests.cluster.scenes import SubmittedJob, notebook, submit, text_of
from tests.cluster.test_attackers import OUTCOME, ask

pytestmark = pytest.mark.side_by_side
POLICY = "jupyter-to-job-own-jobs"
LABEL = "jupyter-to-job.io/job"
CONTROLLER_MANAGER = "system:kube-controller-manager"
"""Who the Job controller is, and the ReplicaSet controller, where they have no accounts."""
MASTERS = "--as-group=system:masters"
refusal = partial(eve.refusal, by=POLICY)
refusal_to_create = partial(eve.refusal_to_create, by=POLICY)


def forged_pod(images: Images, name: str, **metadata: Any) -> dict[str, Any]:
    """Return a pod that runs a process of the attacker's, with a token for the gateway."""
    pod = dev_pod_manifest(images, TEAM, name, "eve")
    pod["metadata"].update(annotations={}, **metadata)
    return pod


def test_the_policy_has_no_type_errors(cluster: Cluster, dev_pod: DevPod) -> None:
    assert dev_pod.cluster is cluster  # the product is installed

    eve.check_types(cluster, POLICY)


def test_a_running_job_is_out_of_reach(cluster: Cluster, images: Images, dev_pod: DevPod) -> None:
    """It goes on, and ends as if nobody had been there."""
    allow_eve(cluster)
    running = SubmittedJob.counting(dev_pod, "undisturbed", "-f", "crowd")
    printed = running.until_printed()
    check_pod_with_copied_owner_reference(cluster, images, running)
    check_pod_without_label(cluster, images, running)
    check_job_with_our_label(cluster, images, running)
    check_what_it_runs_stays(cluster, running)
    running.let_end()
    running.check_counted(running.until_ended(), None, printed)


def check_pod_with_copied_owner_reference(
    cluster: Cluster, images: Images, running: SubmittedJob
) -> None:
    """This pod would be taken for an agent of the job, and could write its result."""
    real = running.pods()[0]["metadata"]
    copied = {"labels": real["labels"], "ownerReferences": real["ownerReferences"]}
    forged = forged_pod(images, f"{running.name}-zzzzz", **copied)
    for user in (EVE, "system:admin"):  # nobody else's rights change that
        flags = [MASTERS] if user != EVE else []
        said = refusal(cluster, "create", "-f", "-", *flags, stdin=forged, user=user)
        assert "Only Kubernetes' Job controller creates pods" in said

    del forged["metadata"]["ownerReferences"]
    refusal_to_create(cluster, forged)
    for owner in ({"kind": "ReplicaSet", "apiVersion": "apps/v1"}, {"controller": False}):
        forged["metadata"]["ownerReferences"] = [{**real["ownerReferences"][0], **owner}]
        refusal(cluster, "create", "-f", "-", MASTERS, stdin=forged, user=CONTROLLER_MANAGER)


def check_pod_without_label(cluster: Cluster, images: Images, running: SubmittedJob) -> None:
    """It may have the name and the owner reference: the gateway knows it as no pod of the job."""
    real = running.pods()[0]["metadata"]
    name = f"{running.name}-yyyyy"
    forged = forged_pod(images, name, ownerReferences=real["ownerReferences"])
    eve.create(cluster, forged)
    cluster.until_ready(name, TEAM, timeout=90)
    check_label_cannot_be_added(cluster, "pod", name, running)
    check_no_agent(DevPod(cluster, TEAM, name), running.name)
    cluster.kubectl("delete", "pod", name, "-n", TEAM, "--wait=false")


def check_no_agent(pod: DevPod, job: str) -> None:
    """Whatever a pod sends for a job is refused, and it reads nothing of it."""
    folder = f"exchange/{job}"
    claim = {"v": 1, "pod": pod.cluster.get("pod", pod.name, TEAM)["metadata"]["uid"]}
    answers = ask(
        pod,
        [
            ("GET", f"{folder}/request.json", ""),
            ("GET", f"{folder}/snapshot.ipynb", ""),
            ("PUT", f"{folder}/attempt-1/outcome.json", json.dumps(OUTCOME)),
            ("PUT", f"{folder}/attempt-2/runner.json", json.dumps(claim)),
            ("POST", f"{folder}/attempt-1/journal/00000001.jsonl?offset=0", "forged"),
            ("GET", f"jobs/{job}", ""),
            ("POST", f"jobs/{job}/cancel", ""),
        ],
    )
    assert {status for status, _ in answers} == {403}, answers


def forged_job(cluster: Cluster, images: Images, name: str) -> dict[str, Any]:
    pod = forged_pod(images, "x")["spec"]
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "namespace": TEAM},
        "spec": {"template": {"spec": {**pod, "restartPolicy": "Never"}}},
    }


def check_job_with_our_label(cluster: Cluster, images: Images, running: SubmittedJob) -> None:
    plain = forged_job(cluster, images, "forged")
    labels = {"labels": {LABEL: running.name}}
    on_job, on_its_pods = copy.deepcopy(plain), copy.deepcopy(plain)
    on_job["metadata"].update(labels)
    on_its_pods["spec"]["template"]["metadata"] = labels
    for forged in (on_job, on_its_pods):
        said = refusal_to_create(cluster, forged)
        assert "Only the controller of Jupyter to Job creates Jobs" in said

    eve.create(cluster, plain)
    check_label_cannot_be_added(cluster, "job", "forged", running)
    as_user(cluster, EVE, "delete", "job", "forged", "--wait=false")


def check_label_cannot_be_added(
    cluster: Cluster, kind: str, name: str, running: SubmittedJob
) -> None:
    """Neither by an update nor by one of the status, which may change labels, too."""
    refusal(cluster, "label", kind, name, f"{LABEL}={running.name}")
    labels = json.dumps({"metadata": {"labels": {LABEL: running.name}}})
    refusal(cluster, "patch", kind, name, "--subresource=status", f"--patch={labels}")


def check_what_it_runs_stays(cluster: Cluster, running: SubmittedJob) -> None:
    pod = running.pod()
    for thing, name in (("pod", pod), ("job", running.name)):
        refusal(cluster, "label", thing, name, f"{LABEL}-")
        refusal(cluster, "label", thing, name, f"{LABEL}=other", "--overwrite")
        refusal(cluster, "label", thing, name, "jupyter-to-job.io/owner=eve", "--overwrite")
        as_user(cluster, EVE, "label", thing, name, "example.org/cost-centre=7")
        check_share_stays(cluster, thing, name)
    refusal(cluster, "set", "image", f"pod/{pod}", "agent=example.org/evil:1")
    refusal(cluster, "set", "image", f"pod/{pod}", "notebook=example.org/evil:1")
    orphan = json.dumps({"metadata": {"ownerReferences": None}})
    refusal(cluster, "patch", "pod", pod, f"--patch={orphan}")
    refusal(cluster, "patch", "job", running.name, '--patch={"spec": {"parallelism": 2}}')
    one = {"cpu": "1"}
    more = {"name": "notebook", "resources": {"requests": one, "limits": one}}
    resized = json.dumps({"spec": {"containers": [more]}})
    refusal(cluster, "patch", "pod", pod, "--subresource=resize", f"--patch={resized}")
    refusal(
        cluster, "debug", pod, "--image=example.org/evil:1", "--profile=restricted", "--", "env"
    )


def check_share_stays(cluster: Cluster, thing: str, name: str) -> None:
    """KAI and Kueue read these of a pod that waits, and of a suspended Job, at any time."""
    for label in ("kai.scheduler/queue=urgent", "kueue.x-k8s.io/queue-name=urgent"):
        said = refusal(cluster, "label", thing, name, label)
        assert "The queue of a Job of Jupyter to Job, and its share of a GPU" in said
    for annotation in ("gpu-fraction=0.9", "gpu-memory=40000"):
        refusal(cluster, "annotate", thing, name, annotation)
    annotations = json.dumps({"metadata": {"annotations": {"gpu-fraction": "0.9"}}})
    refusal(cluster, "patch", thing, name, "--subresource=status", f"--patch={annotations}")
    as_user(cluster, EVE, "annotate", thing, name, "example.org/note=7")


def test_a_job_of_the_same_name_after_ours_is_gone(
    cluster: Cluster, images: Images, dev_pod: DevPod
) -> None:
    allow_eve(cluster)
    dev_pod.write(f"{HOME}/gone.ipynb", notebook("print('hers')"))
    name = submit(dev_pod, f"{HOME}/gone.ipynb")["name"]
    cluster.kubectl("delete", "job", name, "-n", TEAM, "--cascade=foreground")
    eve.create(cluster, forged_job(cluster, images, name))

    def pod_name() -> str | None:
        pods = cluster.items("pods", TEAM, f"batch.kubernetes.io/job-name={name}")
        return next((pod["metadata"]["name"] for pod in pods), None)

    wait_for("it has a pod", pod_name)
    forged = pod_name()
    assert forged is not None and forged.startswith(f"{name}-")
    cluster.until_ready(forged, TEAM, timeout=90)
    check_no_agent(DevPod(cluster, TEAM, forged), name)
    job = dev_pod.job(name)
    assert (job["state"], job["delivery"]["state"]) == ("succeeded", "delivered")
    assert text_of(dev_pod.read_json(f"{HOME}/{name}.ipynb")) == "hers\n"
    as_user(cluster, EVE, "delete", "job", name, "--wait=false")


def test_kubernetes_own_work_goes_on(cluster: Cluster, dev_pod: DevPod) -> None:
    """A Job is deleted with its pods, in the foreground and by hand, while it runs."""
    job = SubmittedJob.counting(dev_pod, "foreground")
    job.until_printed()
    cluster.kubectl("delete", "job", job.name, "-n", TEAM, "--cascade=foreground", timeout=120)
    assert job.until_ended()["reason"] == "Lost"
