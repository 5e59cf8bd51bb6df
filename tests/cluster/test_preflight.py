"""What the cluster would refuse is told before a job is sent, and in time."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tests.cluster.box.boot import Box
from tests.cluster.box.cluster import Cluster
from tests.cluster.box.images import Images
from tests.cluster.box.wait import wait_for
from tests.cluster.controllers import own_controller
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
BESIDE = pytest.mark.side_by_side


def write_asked(dev_pod: DevPod) -> None:
    """Write the notebook that preflight is asked about, and what it needs."""
    dev_pod.write(f"{HOME}/asked.ipynb", notebook("import helpers", "print(1)"))
    dev_pod.write(f"{HOME}/helpers.py", "")


@contextmanager
def rule(dev_pod: DevPod, kind: str, spec: dict[str, Any]) -> Iterator[None]:
    """Have a quota or a limit range in a dev pod's namespace for as long as the context lasts."""
    cluster, metadata = dev_pod.cluster, {"name": "preflight", "namespace": dev_pod.namespace}
    cluster.apply({"apiVersion": "v1", "kind": kind, "metadata": metadata, "spec": spec})
    if kind == "ResourceQuota":
        name = ("resourcequota", "preflight", dev_pod.namespace)
        wait_for("the quota holds", lambda: "hard" in cluster.get(*name).get("status", {}))
    yield
    cluster.kubectl("delete", kind, "preflight", "-n", dev_pod.namespace)


def preflight(dev_pod: DevPod, **asked: Any) -> Any:
    """Return what preflight answers in a dev pod, once the API server has its word in it."""

    def checked() -> Any:
        found = json.loads(dev_pod.run("python3", "-c", SCRIPT, json.dumps(asked)))
        return None if "not_checked" in {p["code"] for p in found["problems"]} else found

    return wait_for("the cluster has checked it", checked)


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
    write_asked(dev_pod)
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


@BESIDE
def test_what_no_node_has(dev_pod: DevPod) -> None:
    """A device, or as much of one."""
    write_asked(dev_pod)
    found = preflight(dev_pod, **NOWHERE)
    assert codes(found) == {"no_node": False}
    (problem,) = told(found)
    assert problem["message"] == "No node has the device A GPU that no node has now."
    assert codes(preflight(dev_pod, flavor="crowd-gpus", device="any")) == {}
    assert codes(preflight(dev_pod, flavor="crowd-many", device="any")) == {"no_node": False}


@BESIDE
def test_a_queue_where_kueue_is_not_installed(dev_pod: DevPod) -> None:
    """Its jobs would wait for ever, so the dialog blocks them, and SEND is refused."""
    write_asked(dev_pod)
    words = (
        "Jobs of the flavor queued wait in the queue 'of-gpus' of Kueue, and this cluster has no "
        "Kueue."
    )
    (problem,) = told(preflight(dev_pod, flavor="queued"))
    assert (problem["code"], problem["blocking"]) == ("no_kueue", True)
    assert problem["message"] == words
    assert "Choose another flavor" in problem["hint"]
    command = (
        f"jupyter-to-job submit {HOME}/asked.ipynb --name unqueued -f queued 2>&1; echo code $?"
    )
    answer = dev_pod.run("sh", "-c", command)
    assert words in answer
    assert "code 4" in answer
    assert "unqueued-" not in dev_pod.run("jupyter-to-job", "list", "--all")


@BESIDE
def test_pod_security_refuses(dev_pod: DevPod) -> None:
    write_asked(dev_pod)
    (problem,) = told(preflight(dev_pod, flavor="unconfined"))
    assert (problem["code"], problem["blocking"]) == ("cluster_refuses", True)
    assert "Pod Security (restricted) refuses the pod: forbidden AppArmor" in problem["message"]


@BESIDE
def test_rules_of_the_namespace(box: Box, images: Images, dev_pod: DevPod) -> None:
    """In one of its own, as they would be in the way of others."""
    assert dev_pod.cluster is box  # the first controller is there
    with own_controller(box, images, "ruled") as mine:
        write_asked(mine)
        check_what_is_tried(box, mine)
        check_quota_that_is_too_small(mine)
        check_quota_without_room(mine)
        check_limit_range(mine)


def check_what_is_tried(box: Box, mine: DevPod) -> None:
    """Check that both Job and pod are: a policy lets only the controller try a pod of ours."""
    assert codes(preflight(mine)) == {}
    controller = f"system:serviceaccount:{NAMESPACE}:controller"
    dry_runs = [r for r in box.audit.requests(controller) if r.is_dry_run]
    tried = {(r.resource, r.code) for r in dry_runs if r.namespace == mine.namespace}
    assert tried == {("jobs", 201), ("pods", 201)}


def check_quota_that_is_too_small(mine: DevPod) -> None:
    """Check that the job that is sent all the same waits with the same sentence."""
    with rule(mine, "ResourceQuota", {"hard": {"count/jobs.batch": "0"}}):
        problem = until_told(mine, "over_quota", max_runtime=301)
        assert problem["blocking"]
        assert problem["message"] == (
            "The namespace's quota 'preflight' is too small: the job asks for 1 Jobs of 0 allowed."
        )
        job = SubmittedJob.submit(mine, "refused", cells=("1",))
        waits = job.until(lambda job: job["reason"] == "QuotaExceeded")
        assert waits["message"] == f"{problem['message']} {problem['hint']}"
        mine.run("jupyter-to-job", "delete", job.name)


def check_quota_without_room(mine: DevPod) -> None:
    """Check what is said of a quota that the dev pod fills."""
    with rule(mine, "ResourceQuota", {"hard": {"pods": "1"}}):
        # Another time limit is another Job: the answer to one before is remembered for a moment.
        problem = until_told(mine, "over_quota", max_runtime=302)
        assert not problem["blocking"]
        assert "has no room now: the job asks for 1 pods, and " in problem["message"]


def check_limit_range(mine: DevPod) -> None:
    """Check that it is named with what it allows."""
    limits = {"limits": [{"type": "Container", "max": {"memory": "256Mi"}}]}
    with rule(mine, "LimitRange", limits):
        problem = until_told(mine, "cluster_refuses", max_runtime=303)
        assert problem["blocking"]
        said = "maximum memory usage per Container is 256Mi, but limit is 512Mi"
        assert said in problem["message"]


@BESIDE
def test_kernels_that_earlier_jobs_found_and_did_not_find(dev_pod: DevPod) -> None:
    """The image is the dev pod's own, so what is missing here blocks; jobs had to find it out."""
    write_asked(dev_pod)
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


@BESIDE
def test_submit_says_it(dev_pod: DevPod) -> None:
    write_asked(dev_pod)
    options = ("-f", NOWHERE["flavor"], "-d", NOWHERE["device"])
    command = ("jupyter-to-job", "submit", f"{HOME}/asked.ipynb", *options)
    lines = dev_pod.run("sh", "-c", '"$@" 2>&1', "sh", *command).splitlines()
    assert "Isolated: it works in a scratch folder, with the files that are sent." in lines
    assert any(line.startswith("Warning: No node has the device") for line in lines)
    assert any("seems to need helpers.py" in line for line in lines)
    (name,) = (line for line in lines if line.startswith("asked-") and " " not in line)
    dev_pod.run("jupyter-to-job", "delete", name)
