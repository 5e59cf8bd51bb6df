"""What the cluster would refuse is told before a job is sent, and in time."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.cluster.box.boot import Box
from tests.cluster.box.cluster import Cluster
from tests.cluster.box.wait import wait_for
from tests.cluster.product import HOME, NAMESPACE, NOWHERE, TEAM, DevPod
from tests.cluster.scenes import SubmittedJob, notebook, submit

ROUNDS = 6
LIMIT = 0.5
"""Seconds that preflight may take in whole, when nothing else is going on."""
OF_EVERY_DEV_POD = ("image_unpinned",)
"""The box's images come from no registry."""
SCRIPT = f"""
import json, sys, time
from pathlib import Path
from jupyter_to_job.domain.job import Submission
from jupyter_to_job.wiring import Settings, connect
asked = json.loads(sys.argv[1])
rounds = asked.pop("rounds", 1)
jobs = connect(Settings.load(), Path({HOME!r}))
seconds = []
for number in range(rounds):
    # Another time limit is another Job: no answer is remembered.
    changed = {{"max_runtime": 300 + number}} if rounds > 1 else {{}}
    begin = time.perf_counter()
    found = jobs.preflight(Submission(**{{"notebook": "asked.ipynb", **asked, **changed}}))
    seconds.append(time.perf_counter() - begin)
print(json.dumps({{"seconds": seconds, **found.to_json()}}, default=vars))
"""
"""What the server extension does for the dialog, in the dev pod."""
Add = Callable[[str, dict[str, Any]], None]


@pytest.fixture(scope="module", autouse=True)
def asked(dev_pod: DevPod) -> None:
    dev_pod.write(f"{HOME}/asked.ipynb", notebook("import helpers", "print(1)"))
    dev_pod.write(f"{HOME}/helpers.py", "")


@pytest.fixture
def add(cluster: Cluster) -> Iterator[Add]:
    """Adds a quota or a limit range to the dev pods' namespace."""
    added: list[str] = []

    def apply(kind: str, spec: dict[str, Any]) -> None:
        metadata = {"name": "preflight", "namespace": TEAM}
        cluster.apply({"apiVersion": "v1", "kind": kind, "metadata": metadata, "spec": spec})
        added.append(kind)
        if kind == "ResourceQuota":
            wait_for(
                "the quota holds",
                lambda: "hard" in cluster.get("resourcequota", "preflight", TEAM).get("status", {}),
            )

    yield apply
    for kind in added:
        cluster.kubectl("delete", kind, "preflight", "-n", TEAM, "--ignore-not-found")


def preflight(dev_pod: DevPod, **asked: Any) -> Any:
    """Return what preflight answers in a dev pod."""
    return json.loads(dev_pod.run("python3", "-c", SCRIPT, json.dumps(asked)))


def until_told(dev_pod: DevPod, code: str, **asked: Any) -> Any:
    """Wait until preflight tells of a problem: a new rule holds for the API server in a moment."""

    found: list[Any] = []

    def look() -> bool:
        found[:] = [p for p in preflight(dev_pod, **asked)["problems"] if p["code"] == code]
        return bool(found)

    wait_for(f"preflight says {code}", look, timeout=30)
    (problem,) = found
    return problem


def told(found: Any) -> list[Any]:
    """Return the problems, but for what is said of every dev pod of the box."""
    return [p for p in found["problems"] if p["code"] not in OF_EVERY_DEV_POD]


def codes(found: Any) -> dict[str, bool]:
    return {problem["code"]: problem["blocking"] for problem in told(found)}


def test_nothing_is_in_the_way_and_it_is_told_in_time(dev_pod: DevPod, cluster: Cluster) -> None:
    found = preflight(dev_pod, rounds=ROUNDS)
    first, *others = found["seconds"]
    times = ", ".join(f"{seconds:.3f}" for seconds in others)
    print(f"preflight: {first:.3f} s with the connection, then {times} s")  # noqa: T201
    assert codes(found) == {}
    assert (found["isolated"], found["mounts"]) == (True, [])
    assert found["image"]["is_own"]
    assert [s["path"] for s in found["suggested"]] == ["helpers.py"]
    assert min(others) < LIMIT
    made = cluster.kubectl("get", "jobs,pods", "-n", TEAM, "-o=name")
    assert "preflight" not in made


def test_job_and_pod_are_both_tried(dev_pod: DevPod, box: Box) -> None:
    """The policy that keeps pods with our label ours lets the controller try one."""
    controller = f"system:serviceaccount:{NAMESPACE}:controller"
    before = len([r for r in box.audit.requests(controller) if r.is_dry_run])
    preflight(dev_pod, max_runtime=77)
    dry_runs = [r for r in box.audit.requests(controller) if r.is_dry_run]
    tried = {(r.resource, r.code) for r in dry_runs[before:]}
    assert tried == {("jobs", 201), ("pods", 201)}


def test_a_device_that_no_node_has(dev_pod: DevPod) -> None:
    found = preflight(dev_pod, **NOWHERE)
    assert codes(found) == {"no_node": False}
    (problem,) = told(found)
    assert problem["message"] == "No node has the device A GPU that no node has now."


def test_more_of_a_device_than_any_node_has(dev_pod: DevPod) -> None:
    assert codes(preflight(dev_pod, flavor="crowd-gpus", device="any")) == {}
    assert codes(preflight(dev_pod, flavor="crowd-many", device="any")) == {"no_node": False}


def test_pod_security_refuses(dev_pod: DevPod) -> None:
    (problem,) = told(preflight(dev_pod, flavor="unconfined"))
    assert (problem["code"], problem["blocking"]) == ("cluster_refuses", True)
    assert "Pod Security (restricted) refuses the pod: forbidden AppArmor" in problem["message"]


def test_a_quota_that_is_too_small(dev_pod: DevPod, add: Add) -> None:
    """The job that is sent all the same waits with the same sentence."""
    add("ResourceQuota", {"hard": {"count/jobs.batch": "0"}})
    problem = until_told(dev_pod, "over_quota")
    assert problem["blocking"]
    assert problem["message"] == (
        "The namespace's quota 'preflight' is too small: the job asks for 1 Jobs of 0 allowed."
    )
    job = SubmittedJob.submit(dev_pod, "refused", cells=("1",))
    wait_for("it says why it waits", lambda: job.job()["reason"] == "QuotaExceeded", timeout=60)
    assert job.job()["message"] == f"{problem['message']} {problem['hint']}"
    dev_pod.run("jupyter-to-job", "delete", job.name)


def test_a_quota_without_room_now(dev_pod: DevPod, add: Add) -> None:
    add("ResourceQuota", {"hard": {"pods": "1"}})  # the dev pod is one
    # Another time limit is another Job: the answer to the one before is remembered for a moment.
    problem = until_told(dev_pod, "over_quota", max_runtime=301)
    assert not problem["blocking"]
    assert "has no room now: the job asks for 1 pods, and " in problem["message"]


def test_a_limit_range(dev_pod: DevPod, add: Add) -> None:
    add("LimitRange", {"limits": [{"type": "Container", "max": {"memory": "256Mi"}}]})
    problem = until_told(dev_pod, "cluster_refuses")
    assert problem["blocking"]
    assert "maximum memory usage per Container is 256Mi, but limit is 512Mi" in problem["message"]


def test_kernels_that_earlier_jobs_found_and_did_not_find(dev_pod: DevPod) -> None:
    """The image is the dev pod's own, so what is missing here blocks; jobs had to find it out."""
    plain = f"{HOME}/plain.ipynb"
    dev_pod.write(plain, notebook("1"))
    found = submit(dev_pod, plain)
    assert found["state"] == "succeeded", found
    path = f"{HOME}/alien.ipynb"
    dev_pod.write(path, notebook("1").replace('"python3"', '"klingon"'))
    missing = submit(dev_pod, path)
    assert missing["reason"] == "NoKernel", missing

    def learned() -> bool:
        image = preflight(dev_pod)["image"]
        return "python3" in image["kernels"] and image["missing_kernels"] == ["klingon"]

    wait_for("both are known", learned)
    assert codes(preflight(dev_pod, notebook="alien.ipynb")) == {"no_kernel": True}


def test_submit_says_it(dev_pod: DevPod) -> None:
    options = ("-f", NOWHERE["flavor"], "-d", NOWHERE["device"])
    command = ("jupyter-to-job", "submit", f"{HOME}/asked.ipynb", *options)
    lines = dev_pod.run("sh", "-c", '"$@" 2>&1', "sh", *command).splitlines()
    assert "Isolated: it works in a scratch folder, with the files that are sent." in lines
    assert any(line.startswith("Warning: No node has the device") for line in lines)
    assert any("seems to need helpers.py" in line for line in lines)
    (name,) = (line for line in lines if line.startswith("asked-") and " " not in line)
    dev_pod.run("jupyter-to-job", "delete", name)
