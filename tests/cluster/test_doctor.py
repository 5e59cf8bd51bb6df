"""What administrators and users are told of a real cluster: doctor, free devices, events of jobs.

Each test mends what it has spoiled.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.cluster.box.cluster import Cluster, KubectlError
from tests.cluster.box.wait import wait_for
from tests.cluster.product import (
    DEVICE_COUNTS,
    LATER,
    LEAVING,
    LISTED,
    NOWHERE,
    RIVALS,
    ROOT,
    TEAM,
    DevPod,
    add_namespace,
)
from tests.cluster.scenes import SubmittedJob

POLICY = "jupyter-to-job-own-jobs"
ROLE = "jupyter-to-job-controller"
OF_THIS_CATALOG = {
    "No node has the device nowhere: no such node has the label nvidia.com/gpu.product=none, but "
    "NVIDIA-A100-SXM4-40GB, Tesla-T4.",
    "No node has the device h100: no such node has the label "
    "nvidia.com/gpu.product=NVIDIA-H100-80GB-HBM3, but NVIDIA-A100-SXM4-40GB, Tesla-T4.",
    "Kueue is not installed, and there is 1 flavor with a queue (queued): such jobs are refused.",
    "Flavor crowd-many fits no node: This flavor asks for 8 nvidia.com/gpu, and no node with Any "
    "GPU has over 2 nvidia.com/gpu.",
}
"""What is wrong with the tests' own catalog, on purpose."""
COMMAND = Path(sys.executable).with_name("jupyter-to-job")
Found = list[dict[str, str]]


def doctor(cluster: Cluster) -> Found:
    """Run it on this machine, with the administrator's kubeconfig."""
    ran = subprocess.run(
        [COMMAND, "doctor", "--cluster", "--json"],
        env={**os.environ, "KUBECONFIG": str(cluster.kubeconfig)},
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    assert ran.stdout, ran.stderr
    found: Found = json.loads(ran.stdout)
    assert ran.returncode == (1 if problems(found, with_catalog=True) else 0)
    return found


def problems(found: Found, *, with_catalog: bool = False) -> dict[str, str]:
    """Return the remedies of problems by their messages.

    Left out is what is wrong on purpose, and the namespaces that other tests make and delete.
    """
    return {
        f["message"]: f["mend"]
        for f in found
        if f["level"] == "problem"
        and (with_catalog or f["message"] not in OF_THIS_CATALOG)
        and (with_catalog or not any(name in f["message"] for name in (LATER, LEAVING)))
    }


@pytest.fixture
def missing_role(cluster: Cluster) -> Iterator[None]:
    """The controller lost its rights in a namespace."""
    cluster.kubectl("delete", "rolebinding", ROLE, "-n", RIVALS)
    yield
    add_namespace(cluster, RIVALS)


@pytest.fixture
def missing_policy(cluster: Cluster) -> Iterator[None]:
    """Somebody deleted the policy that keeps jobs apart."""
    cluster.kubectl("delete", "validatingadmissionpolicy", POLICY)
    yield
    cluster.kubectl("apply", "-k", str(ROOT / "k8s" / "policies"))
    wait_for("the policy is in force again", lambda: is_refused(cluster))


def is_refused(cluster: Cluster) -> bool:
    """Tell whether the policy refuses a Job that somebody has forged."""
    container = {"name": "forged", "image": "forged"}
    pod = {"restartPolicy": "Never", "containers": [container]}
    job = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "forged", "namespace": TEAM, "labels": {"jupyter-to-job.io/job": "x"}},
        "spec": {"template": {"spec": pod}},
    }
    try:
        cluster.create(job, trial=True)
    except KubectlError as error:
        return POLICY in str(error)
    return False


def test_a_sound_installation(dev_pod: DevPod, cluster: Cluster) -> None:
    found = doctor(cluster)
    assert problems(found) == {}
    said = {f["message"] for f in found if f["level"] == "ok"}
    assert {f["message"] for f in found} >= OF_THIS_CATALOG
    assert {f"In {name}: all 14 that it needs" for name in LISTED if name != LEAVING} <= said
    assert f"A forged job's pod is refused in {TEAM}" in said
    assert "Device a100: 1 node, 2 nvidia.com/gpu" in said
    assert any(text.startswith("The claim exchange is bound: ") for text in said)
    assert any(text.startswith(f"From {TEAM}: It takes the token in") for text in said)
    assert any(text.startswith(f"From {TEAM}: http://gateway.") for text in said)
    assert any("nodes and the API server agree on the time" in text for text in said)
    assert "The controller and the API server agree on the time, within 3 s" in said
    left = cluster.kubectl("get", "pods", "-n", dev_pod.namespace, "-o=name")
    assert "doctor" not in left


@pytest.mark.usefixtures("dev_pod", "missing_role")
def test_a_missing_role(cluster: Cluster) -> None:
    ((message, remedy),) = problems(doctor(cluster)).items()
    assert message.startswith(f"In {RIVALS} the controller may not: get pods, create pods, ")
    assert message.endswith(" create jobs, delete jobs.")
    assert "k8s/dev-namespace" in remedy and f"namespace: {RIVALS}" in remedy


@pytest.mark.usefixtures("dev_pod", "missing_policy")
def test_a_missing_policy(cluster: Cluster) -> None:
    ((message, remedy),) = problems(doctor(cluster)).items()
    assert message.startswith(f"There is no policy {POLICY}: whoever may create pods can write")
    assert remedy == "kubectl apply -k k8s/policies"


@pytest.mark.side_by_side
def test_a_controller_that_is_elsewhere(cluster: Cluster) -> None:
    ran = subprocess.run(
        [COMMAND, "doctor", "--cluster", "-n", "kube-system"],
        env={**os.environ, "KUBECONFIG": str(cluster.kubeconfig)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ran.returncode == 1
    assert "There is no controller in the namespace 'kube-system'." in ran.stdout


def devices(dev_pod: DevPod) -> Any:
    """Return the devices as the dialog gets them."""
    return json.loads(dev_pod.run("jupyter-to-job", "flavors", "--json"))["devices"]


def until_free(dev_pod: DevPod, device: str, count: int) -> None:
    wait_for(
        f"{count} of {device} are free",
        lambda: devices(dev_pod)[device]["free"] == count,
        timeout=60,
    )


def test_free_devices_follow_the_jobs_that_hold_them(dev_pod: DevPod) -> None:
    until_free(dev_pod, "any", 4)
    found = devices(dev_pod)
    counts = {name: (found[name]["free"], found[name]["total"]) for name in found}
    assert counts["any"] == (4, 4)
    assert counts["a100"] == counts["steadfast"] == (2, 2)
    assert counts["nowhere"] == (0, 0)
    assert counts["cpu"] == (None, None)

    job = SubmittedJob.counting(dev_pod, "holds", "-f", "gpu-1", "-d", "t4")
    job.until_printed()
    until_free(dev_pod, "t4", 1)
    assert devices(dev_pod)["any"]["free"] == 3
    assert devices(dev_pod)["a100"]["free"] == 2
    assert "1 of 2" in dev_pod.run("jupyter-to-job", "flavors")
    job.let_end()
    job.until_ended()
    until_free(dev_pod, "t4", 2)


@pytest.mark.side_by_side
def test_the_events_of_a_job_that_waits(dev_pod: DevPod) -> None:
    options = ("-f", NOWHERE["flavor"], "-d", NOWHERE["device"])
    job = SubmittedJob.submit(dev_pod, "waits", *options, cells=("1",))
    try:
        reasons = {"SuccessfulCreate", "FailedScheduling"}
        told = job.until(  # events and reasons come by two ways
            lambda told: (
                reasons <= {e["reason"] for e in told["events"] or ()}
                and told["reason"] == "Unschedulable"
            )
        )
        times = [event["time"] for event in told["events"]]
        assert times == sorted(times)
        last = next(e for e in told["events"] if e["reason"] == "FailedScheduling")
        assert "0/2 nodes are available" in last["message"]
        assert told["submitted"] <= last["time"]
        assert (told["state"], told["reason"]) == ("queued", "Unschedulable")

        def says_why() -> str:
            """Look once: a cluster that is slow to tell of events has none for a moment."""
            lines = dev_pod.run("jupyter-to-job", "show", job.name)
            return lines if "FailedScheduling: 0/2 nodes are available" in lines else ""

        lines = wait_for("it is shown why", says_why)
        assert "What the cluster says" in lines and "waits for" in lines
        listed = json.loads(dev_pod.run("jupyter-to-job", "list", "--json"))
        assert [j["events"] for j in listed if j["name"] == job.name] == [None]
    finally:
        dev_pod.run("jupyter-to-job", "delete", job.name)


def test_the_component_that_counts_devices(cluster: Cluster, tmp_path: Path) -> None:
    overlay = ROOT / "k8s" / "overlays" / "one-namespace"
    paths = {
        "resources": [os.path.relpath(overlay, tmp_path)],
        "components": [os.path.relpath(DEVICE_COUNTS, tmp_path)],
    }
    (tmp_path / "kustomization.yaml").write_text(yaml.safe_dump(paths))
    made = list(yaml.safe_load_all(cluster.kubectl("kustomize", str(tmp_path))))
    (deployment,) = (m for m in made if m["kind"] == "Deployment")
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    variables = {v["name"]: v.get("value") for v in container["env"]}
    assert variables["JUPYTER_TO_JOB_DEVICE_COUNTS"] == "true"
    assert variables["JUPYTER_TO_JOB_EXCHANGE"] == "/exchange"
    roles = [m["metadata"]["name"] for m in made if m["kind"] == "ClusterRole"]
    assert "jupyter-to-job-device-counts" in roles
