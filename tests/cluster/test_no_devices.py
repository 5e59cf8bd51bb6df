"""In a namespace of dev pods, nothing but a job gets a device (k8s/policies).

The other tests show that jobs do: all of them run in such namespaces.
"""

from __future__ import annotations

import copy
import json
from functools import partial

import pytest
import yaml

from tests.cluster import eve
from tests.cluster.box.cluster import Cluster, KubectlError
from tests.cluster.box.images import Images
from tests.cluster.box.node import GPU
from tests.cluster.box.wait import wait_for
from tests.cluster.device_seekers import (
    OF_PODS,
    ONE,
    RUNTIME_CLASS,
    SEEKERS,
    UNKNOWN_TO_KUBERNETES,
    maker_of_pods,
    plain_pod,
    pod_with,
)
from tests.cluster.eve import EVE, allow_eve, as_user
from tests.cluster.product import DEV_PODS, ROOT, TEAM, DevPod, has_account
from tests.cluster.scenes import SubmittedJob
from tests.cluster.side_by_side import once
from tests.cluster.test_own_jobs import LABEL
from tests.cluster.test_own_jobs import POLICY as OWN_JOBS

pytestmark = pytest.mark.side_by_side
POLICY = "jupyter-to-job-no-devices"
FUSE = "example.org/fuse"
JOB_CONTROLLER = "system:serviceaccount:kube-system:job-controller"
refusal = partial(eve.refusal, by=POLICY)
refusal_to_create = partial(eve.refusal_to_create, by=POLICY)


def said(kind: str, *names: str) -> str:
    """Return the policy's words to somebody who asked for devices."""
    return (
        f"This {kind} asks for {', '.join(names)}, and only jobs have devices in this namespace. "
        "Take that out, and run the notebook on a device with SUBMIT JOB, or with "
        "jupyter-to-job submit."
    )


@once
def prepare(cluster: Cluster) -> None:
    """Give Eve her rights, and the cluster a RuntimeClass that comes with a GPU."""
    allow_eve(cluster)
    cluster.apply(RUNTIME_CLASS)


def test_the_policy_has_no_type_errors(cluster: Cluster, dev_pod: DevPod) -> None:
    assert dev_pod.cluster is cluster  # the product is installed
    eve.check_types(cluster, POLICY)


@pytest.mark.parametrize("way", SEEKERS)
def test_a_pod_is_refused(cluster: Cluster, images: Images, dev_pod: DevPod, way: str) -> None:
    """And created where there are no dev pods: nothing else is wrong with it."""
    prepare(cluster)
    name, make = SEEKERS[way]
    pod = make(images)
    assert dev_pod.namespace == TEAM
    assert said("Pod", name) in refusal_to_create(cluster, pod)
    elsewhere = {**pod, "metadata": {**pod["metadata"], "namespace": "default"}}
    cluster.create(elsewhere, trial=True)


@pytest.mark.parametrize("way", UNKNOWN_TO_KUBERNETES)
def test_a_pod_that_kubernetes_itself_refuses(
    cluster: Cluster, images: Images, dev_pod: DevPod, way: str
) -> None:
    prepare(cluster)
    assert dev_pod.namespace == TEAM
    words, make = UNKNOWN_TO_KUBERNETES[way]
    eve.refusal_to_create(cluster, make(images), by=words)


@pytest.mark.parametrize("kind", OF_PODS)
def test_what_makes_pods_is_refused(
    cluster: Cluster, images: Images, dev_pod: DevPod, kind: str
) -> None:
    """When it is created, and when it is changed."""
    prepare(cluster)
    assert dev_pod.namespace == TEAM
    asking = maker_of_pods(kind, pod_with(images, resources=ONE))
    assert said(kind, GPU) in refusal_to_create(cluster, asking)
    plain = maker_of_pods(kind, plain_pod(images))
    plain["metadata"]["name"] = f"plain-{kind.lower()}"
    eve.create(cluster, plain, trial=True)
    if kind == "Job":
        return  # its template does not change
    if kind not in ("CronJob", "DaemonSet"):
        plain["spec"]["replicas"] = 0
    if kind == "DaemonSet":
        plain["spec"]["template"]["spec"]["nodeSelector"] = {"example.org/none": "here"}
    eve.create(cluster, plain)
    name = plain["metadata"]["name"]
    change = json.dumps({"spec": asking["spec"]})  # patched: a controller may write its status now
    patch = ("patch", kind, name, "--type=merge", f"--patch={change}")
    assert said(kind, GPU) in refusal(cluster, *patch)
    as_user(cluster, EVE, "delete", kind, name, "--wait=false")


def test_all_that_is_asked_for_is_named(cluster: Cluster, images: Images, dev_pod: DevPod) -> None:
    """Each once, whatever the number of containers, and nothing that is no device."""
    prepare(cluster)
    assert dev_pod.namespace == TEAM
    amounts = {"cpu": 1, "memory": "1Gi", "ephemeral-storage": "1Gi", "hugepages-2Mi": "2Mi"}
    pod = pod_with(images, resources={"limits": amounts})
    eve.create(cluster, pod, trial=True)
    first = pod["spec"]["containers"][0]
    second = {**copy.deepcopy(first), "name": "second"}
    first["resources"]["limits"][GPU] = second["resources"]["limits"][GPU] = 1
    second["resources"]["limits"]["example.org/fpga"] = 2
    pod["spec"]["containers"].append(second)
    pod["metadata"]["annotations"] = {"gpu-memory": "2000"}
    answer = refusal_to_create(cluster, pod)
    (words,) = (line for line in answer.splitlines() if "This Pod asks for" in line)
    names = words.partition("asks for ")[2].partition(", and only")[0].split(", ")
    assert sorted(names) == ["annotations/gpu-memory", "example.org/fpga", GPU]


def test_a_pod_gets_none_later(cluster: Cluster, images: Images, dev_pod: DevPod) -> None:
    """By no update of the pod, and by none of its subresources."""
    prepare(cluster)
    assert dev_pod.namespace == TEAM
    name = "patient"
    pod = plain_pod(images, name)
    pod["spec"]["schedulingGates"] = [{"name": "example.org/never"}]
    eve.create(cluster, pod)
    patch = json.dumps({"spec": {"containers": [{"name": "notebook", "resources": ONE}]}})
    asked = ("patch", "pod", name, f"--patch={patch}")
    eve.refusal(cluster, *asked, by="pod updates may not change fields")
    eve.refusal(cluster, *asked, "--subresource=resize", by="only cpu and memory resources")
    fraction = refusal(cluster, "annotate", "pod", name, "gpu-fraction=0.5")
    assert said("Pod", "annotations/gpu-fraction") in fraction

    stored = cluster.get("pod", name, TEAM)
    del stored["metadata"]["resourceVersion"]  # the scheduler may write the pod's status now
    debugger = {"name": "debugger", "image": images.notebook, "resources": ONE}
    stored["spec"]["ephemeralContainers"] = [debugger]
    path = f"/api/v1/namespaces/{TEAM}/pods/{name}/ephemeralcontainers"
    by = "cannot be set for an Ephemeral Container"
    eve.refusal(cluster, "replace", "--raw", path, "-f", "-", stdin=stored, by=by)
    as_user(cluster, EVE, "delete", "pod", name, "--wait=false")


def test_nothing_passes_for_a_job_of_ours(
    cluster: Cluster, images: Images, dev_pod: DevPod
) -> None:
    """Neither its label nor its pod's owner opens the door to anybody else."""
    prepare(cluster)
    running = SubmittedJob.counting(dev_pod, "with-gpu", "-f", "crowd-gpu", "-d", "any")
    running.until_printed()
    real = running.pods()[0]["metadata"]
    label = {LABEL: running.name}

    pod = pod_with(images, resources=ONE)
    pod["metadata"]["ownerReferences"] = real["ownerReferences"]
    for user in (EVE, JOB_CONTROLLER):  # of a Job that is none of ours
        assert said("Pod", GPU) in refusal_to_create(cluster, pod, user=user)
    pod["metadata"]["labels"] = real["labels"]
    eve.refusal_to_create(cluster, pod, by=OWN_JOBS)

    job = maker_of_pods("Job", pod)
    job["spec"]["template"]["metadata"]["labels"] = label
    eve.refusal_to_create(cluster, job, by=OWN_JOBS)
    job["metadata"]["labels"] = label
    eve.refusal_to_create(cluster, job, by=OWN_JOBS)

    deployment = maker_of_pods("Deployment", pod)
    deployment["metadata"]["labels"] = label
    deployment["spec"]["template"]["metadata"]["labels"].update(label)
    assert said("Deployment", GPU) in refusal_to_create(cluster, deployment)
    running.let_end()
    running.check_counted(running.until_ended(), None)


def test_an_administrator_lets_a_device_pass(
    cluster: Cluster, images: Images, dev_pod: DevPod
) -> None:
    """By its name in a variable of the policy."""
    prepare(cluster)
    assert dev_pod.namespace == TEAM
    shipped = yaml.safe_load_all(cluster.kubectl("kustomize", str(ROOT / "k8s" / "policies")))
    (policy,) = (m for m in shipped if m["metadata"]["name"] == POLICY and "variables" in m["spec"])
    (allowed,) = (v for v in policy["spec"]["variables"] if v["name"] == "allowed")
    pod = pod_with(images, resources={"limits": {FUSE: 1}})
    assert said("Pod", FUSE) in refusal_to_create(cluster, pod, trial=True)

    def passes() -> bool:
        try:
            eve.create(cluster, pod, trial=True)
        except KubectlError:
            return False
        return True

    def apply() -> None:  # as `kubectl apply -k` has applied it
        cluster.kubectl("apply", "-f", "-", stdin=json.dumps(policy))

    allowed["expression"] = f"['{FUSE}']"
    apply()
    wait_for("the policy has changed", passes)
    pod["spec"]["containers"][0]["resources"]["limits"][GPU] = 1
    assert said("Pod", GPU) in refusal_to_create(cluster, pod, trial=True)
    allowed["expression"] = "[]"
    apply()


def test_a_namespace_that_gets_the_label_later(cluster: Cluster, images: Images) -> None:
    """What runs there runs on and can be deleted, and what makes pods makes no more of them."""
    namespace = "labelled-later"
    cluster.kubectl("create", "namespace", namespace)
    kept = pod_with(images, resources=ONE)
    kept["metadata"].update(name="kept", namespace=namespace, finalizers=["example.org/kept"])
    kept["spec"]["schedulingGates"] = [{"name": "example.org/never"}]
    maker = maker_of_pods("Deployment", kept)
    maker["metadata"]["namespace"] = namespace
    maker["spec"]["replicas"] = 0
    wait_for("its service account is there", partial(has_account, cluster, namespace))
    cluster.apply(kept, maker)

    def is_labelled() -> bool:
        try:
            cluster.create(pod, trial=True)
        except KubectlError as error:
            return said("Pod", GPU) in str(error)
        return False

    pod = {**kept, "metadata": {"name": "new", "namespace": namespace}}
    cluster.kubectl("label", "namespace", namespace, f"{DEV_PODS}=true")
    wait_for("the policy holds there", is_labelled)
    flags = ("-n", namespace)
    cluster.kubectl("annotate", "pod", "kept", "example.org/note=1", *flags)
    cluster.kubectl("delete", "pod", "kept", "--wait=false", *flags)
    finalizers = '--patch={"metadata": {"finalizers": null}}'
    cluster.kubectl("patch", "pod", "kept", finalizers, *flags)
    cluster.kubectl("wait", "pod/kept", "--for=delete", "--timeout=30s", *flags)

    cluster.kubectl("scale", "deployment/seeker", "--replicas=1", *flags)
    wait_for("its owner is told", lambda: said("Pod", GPU) in events(cluster, namespace))
    assert cluster.kubectl("get", "pods", "-o=name", *flags) == ""
    cluster.kubectl("delete", "namespace", namespace, "--wait=false")


def events(cluster: Cluster, namespace: str) -> str:
    """Return what the events of a namespace say."""
    return "\n".join(event["message"] for event in cluster.items("events", namespace))
