"""Where the administrator does not allow it, no job runs an image of which only a tag is known."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from tests.cluster.box.cluster import Cluster
from tests.cluster.product import HOME, NAMESPACE, DevPod
from tests.cluster.scenes import notebook, until_served
from tests.cluster.test_volumes import preflight

VARIABLE = "JUPYTER_TO_JOB_UNPINNED_IMAGES"


@pytest.fixture
def strict_controller(dev_pod: DevPod) -> Iterator[Cluster]:
    """The cluster, while its controller has the default of the setting."""
    cluster = dev_pod.cluster

    def allow(value: str) -> None:
        deployment = ("deployment/controller", "-n", NAMESPACE)
        cluster.kubectl("set", "env", *deployment, f"{VARIABLE}={value}")
        cluster.kubectl("rollout", "status", *deployment, "--timeout=90s", timeout=100)
        until_served(dev_pod)

    allow("false")
    yield cluster
    allow("true")


def test_it_is_told_and_refused(dev_pod: DevPod, strict_controller: Cluster) -> None:
    """Our images come from no registry, so their digests are not known to the cluster."""
    path = f"{HOME}/unpinned.ipynb"
    dev_pod.write(path, notebook("print('never')"))
    told = {p["code"]: p for p in preflight(dev_pod, path, "any")["problems"]}
    assert told["image_unpinned"]["blocking"]
    assert "Which build of" in told["image_unpinned"]["message"]

    answer = dev_pod.run("sh", "-c", f"jupyter-to-job submit {path} 2>&1; echo code $?")

    assert "Which build of" in answer
    assert VARIABLE in answer
    assert "code 4" in answer
    jobs = json.loads(dev_pod.run("jupyter-to-job", "list", "--all", "--json"))
    assert not [job["name"] for job in jobs if job["name"].startswith("unpinned")]
    found = strict_controller.kubectl("get", "jobs", "-n", dev_pod.namespace, "-o=name")
    assert "/unpinned-" not in found
