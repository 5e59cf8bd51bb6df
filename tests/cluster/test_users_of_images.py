"""Dev pods that are less simple: which container is the notebook's, and which user it has."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from tests.cluster.box.boot import Box
from tests.cluster.box.cluster import Cluster, until_taken
from tests.cluster.box.images import Images
from tests.cluster.box.inside import DEFAULT_CONTAINER
from tests.cluster.product import HUB, TEAM, DevPod, dev_pod_manifest
from tests.cluster.scenes import SubmittedJob, notebook, submit, text_of
from tests.cluster.test_volumes import preflight

pytestmark = pytest.mark.side_by_side
CELL = "import os; print(os.getuid(), os.environ.get('OF_THE_PROXY'), os.environ.get('LANG'))"


def start(cluster: Cluster, pod: dict[str, Any]) -> DevPod:
    """Start a dev pod whose commands run in the notebook's container."""
    pod["metadata"]["annotations"][DEFAULT_CONTAINER] = "notebook"
    cluster.apply(pod)
    name, namespace = pod["metadata"]["name"], pod["metadata"]["namespace"]
    cluster.until_ready(name, namespace, timeout=60)
    return DevPod(cluster, namespace, name)


def run(dev_pod: DevPod) -> tuple[str, Any]:
    """Run a notebook; return what it printed, and the container that ran it."""
    path = "/tmp/whose.ipynb"
    dev_pod.write(path, notebook(CELL))
    job = submit(dev_pod, path)
    assert job["state"] == "succeeded", job
    (pod,) = SubmittedJob(dev_pod, job["name"]).pods()
    (container,) = pod["spec"]["containers"]
    return text_of(dev_pod.read_json(f"/tmp/{job['name']}.ipynb")), container


def test_a_proxy_comes_before_the_notebook(
    cluster: Cluster, images: Images, dev_pod: DevPod
) -> None:
    assert dev_pod.cluster is cluster
    pod = dev_pod_manifest(images, TEAM, "ada-behind-a-proxy", "ada")
    (container,) = pod["spec"]["containers"]
    container["env"].append({"name": "LANG", "value": "C.UTF-8"})
    proxy = {
        "name": "istio-proxy",
        "image": images.controller,
        "command": ["sleep", "3600"],
        "env": [{"name": "LANG", "value": "POSIX"}, {"name": "OF_THE_PROXY", "value": "yes"}],
        "securityContext": container["securityContext"],
    }
    pod["spec"]["containers"].insert(0, proxy)

    behind_a_proxy = start(cluster, pod)
    text, ran = run(behind_a_proxy)

    assert text == "1000 None C.UTF-8\n"
    assert images.notebook in ran["image"]
    clean = "cd /tmp && jupyter-to-job clean 'whose-*' --older-than 0 --keep 0 --yes --json"
    (removal,) = json.loads(behind_a_proxy.run("sh", "-c", clean))
    assert removal["removed"] == [f"{removal['job']}.ipynb"]


def test_the_notebooks_container_has_another_user_than_its_image(
    cluster: Cluster, images: Images, dev_pod: DevPod
) -> None:
    assert dev_pod.cluster is cluster
    pod = dev_pod_manifest(images, TEAM, "ada-of-another-user", "ada")
    pod["spec"]["containers"][0]["securityContext"]["runAsUser"] = 2345

    text, _ = run(start(cluster, pod))

    assert text.startswith("2345 ")


def test_the_job_has_the_dev_pods_service_account(
    cluster: Cluster, images: Images, dev_pod: DevPod
) -> None:
    """Clouds bind identities to its name. No token of it is mounted."""
    assert dev_pod.cluster is cluster
    metadata = {"name": "trainer", "namespace": TEAM}
    cluster.apply({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata})
    pod = dev_pod_manifest(images, TEAM, "ada-of-an-account", "ada")
    pod["spec"]["serviceAccountName"] = "trainer"
    mine = start(cluster, pod)
    mine.write(
        "/tmp/account.ipynb", notebook("import os; print(os.path.exists('/var/run/secrets'))")
    )

    job = submit(mine, "/tmp/account.ipynb")

    assert job["state"] == "succeeded", job
    assert text_of(mine.read_json(f"/tmp/{job['name']}.ipynb")) == "False\n"
    (ran,) = SubmittedJob(mine, job["name"]).pods()
    assert ran["spec"]["serviceAccountName"] == "trainer"


def test_only_the_image_says_which_user_it_is(
    cluster: Cluster, images: Images, dev_pod: DevPod
) -> None:
    """Who submits is told: an image without a user, or with one by name, would not start."""
    assert dev_pod.cluster is cluster
    pod = dev_pod_manifest(images, TEAM, "ada-of-the-image", "ada")
    del pod["spec"]["securityContext"]["runAsUser"]
    mine = start(cluster, pod)

    text, _ = run(mine)

    assert text.startswith("1000 ")
    told = {p["code"]: p for p in preflight(mine, "/tmp/whose.ipynb", "any")["problems"]}
    (status,) = cluster.get("pod", mine.name, mine.namespace)["status"]["containerStatuses"]
    if "user" in status:  # as containerd tells it from 2.0 on; the box has an older one
        assert "user_unknown" not in told
        return
    assert not told["user_unknown"]["blocking"]
    assert "runAsUser" in told["user_unknown"]["hint"]


def test_the_image_has_another_user_than_the_agents(
    box: Box, images: Images, dev_pod: DevPod
) -> None:
    """The container runtime of the box does not tell the cluster which one."""
    assert dev_pod.cluster is box
    pod = dev_pod_manifest(replace(images, notebook=images.other_user), TEAM, "ada-of-1001", "ada")
    del pod["spec"]["securityContext"]["runAsUser"]
    mine = start(box, pod)
    path = "/tmp/whose.ipynb"
    mine.write(path, notebook(CELL))

    job = submit(mine, path)

    assert (job["state"], job["reason"]) == ("failed", "BackendError"), job
    assert "belong to user 1000," in job["message"]
    assert "container runs as user 1001, who may not read them" in job["message"]


@contextlib.contextmanager
def pod_security(
    cluster: Cluster, namespace: str, level: str, pod: dict[str, Any]
) -> Iterator[None]:
    """Have a namespace enforce another level of Pod Security for a moment: one that takes a pod."""
    label = "pod-security.kubernetes.io/enforce"

    def enforce(value: str) -> None:
        cluster.kubectl("label", "namespace", namespace, f"{label}={value}", "--overwrite")

    enforce(level)
    try:
        until_taken("it holds", lambda: cluster.create(pod, trial=True))
        yield
    finally:
        enforce("restricted")


def test_a_dev_pod_of_root_is_told_and_refused(
    cluster: Cluster, images: Images, dev_pod: DevPod
) -> None:
    assert dev_pod.cluster is cluster
    pod = dev_pod_manifest(images, HUB, "zoe-of-root", "zoe-of-root")
    pod["spec"]["securityContext"] |= {"runAsUser": 0, "runAsNonRoot": False}
    with pod_security(cluster, HUB, "baseline", pod):
        mine = start(cluster, pod)
    try:
        path = "/tmp/whose.ipynb"
        mine.write(path, notebook(CELL))
        told = {p["code"]: p for p in preflight(mine, path, "any")["problems"]}
        assert told["runs_as_root"]["blocking"]
        assert "runAsUser" in told["runs_as_root"]["hint"]

        answer = mine.run("sh", "-c", f"jupyter-to-job submit {path} 2>&1; echo code $?")

        assert "Your pod runs as root (runAsUser 0), and jobs never do." in answer
        assert "code 4" in answer
        assert json.loads(mine.run("jupyter-to-job", "list", "--json")) == []
    finally:
        cluster.kubectl("delete", "pod", mine.name, "-n", HUB, "--wait=false")
