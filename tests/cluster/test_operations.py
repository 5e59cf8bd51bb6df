"""What an administrator sees of the controller on a real cluster: probes, metrics, events, logs."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from typing import Any

import pytest

from tests.cluster.box.cluster import Cluster, until_taken
from tests.cluster.box.wait import wait_for
from tests.cluster.controllers import controller_pods
from tests.cluster.product import HOME, NAMESPACE, TEAM, DevPod
from tests.cluster.scenes import SubmittedJob, notebook, submit

pytestmark = pytest.mark.side_by_side
SECRET = "hunter2-of-the-user"
PORT = 9090


def controller(cluster: Cluster) -> str:
    """Return the name of the controller's pod."""
    return min(controller_pods(cluster))


def ask(cluster: Cluster, path: str) -> str:
    """Ask the controller's port for operations, by the API server's proxy."""
    pod = f"{controller(cluster)}:{PORT}"
    return cluster.kubectl("get", "--raw", f"/api/v1/namespaces/{NAMESPACE}/pods/{pod}/proxy{path}")


def lines(cluster: Cluster, *log: str) -> list[dict[str, Any]]:
    """Return the lines of a container's log, each of which is JSON."""
    return [json.loads(line) for line in cluster.kubectl("logs", *log).splitlines()]


def events(cluster: Cluster, job: str) -> dict[str, str]:
    """Return the notes of our events on a Job by their reasons."""
    return {
        event["reason"]: event["message"]
        for event in cluster.items("events", TEAM)
        if event["involvedObject"]["name"] == job
        and event["reportingComponent"] == "jupyter-to-job.io/controller"
    }


def sample(text: str, name: str, **labels: str) -> float:
    """Return the value of a sample in a scrape, 0 where there is none."""
    for line in text.splitlines():
        found = re.match(rf"{name}(?:{{(.*)}})? (\S+)$", line)
        if found and labels.items() <= dict(re.findall(r'(\w+)="([^"]*)"', found[1] or "")).items():
            return float(found[2])
    return 0.0


def test_one_id_from_the_command_to_the_container(dev_pod: DevPod, cluster: Cluster) -> None:
    dev_pod.write(f"{HOME}/traced.ipynb", notebook("print('here')"))
    job = submit(dev_pod, f"{HOME}/traced.ipynb", "-e", f"PASSWORD={SECRET}")
    assert job["state"] == "succeeded"

    name = job["name"]
    found = json.loads(cluster.kubectl("get", "job", name, "-n", TEAM, "-o=json"))
    request_id = found["metadata"]["annotations"]["jupyter-to-job.io/request-id"]
    (pod,) = SubmittedJob(dev_pod, name).pods()
    assert pod["metadata"]["annotations"]["jupyter-to-job.io/request-id"] == request_id

    of_controller = lines(cluster, controller(cluster), "-n", NAMESPACE, "--tail=-1")
    messages = [line["message"] for line in of_controller if line.get("request_id") == request_id]
    assert any(re.match(r"20\d PUT /api/blobs/", message) for message in messages)
    assert any(message.startswith("201 POST /api/jobs ") for message in messages)
    assert f"{name}: Job created" in messages
    created = next(m for m in of_controller if m["message"] == f"{name}: Job created")
    assert created["job"] == name

    def said_by_agent() -> list[Any]:
        said = lines(cluster, pod["metadata"]["name"], "-n", TEAM, "-c", "agent")
        return said if any("all sent" in line["message"] for line in said) else []

    of_agent = wait_for("all is sent", said_by_agent)
    assert {(line["request_id"], line["job"]) for line in of_agent} == {(request_id, name)}

    of_runner = cluster.kubectl("logs", pod["metadata"]["name"], "-n", TEAM, "-c", "notebook")
    assert f"request_id={request_id}" in of_runner

    token = dev_pod.run("cat", "/var/run/secrets/jupyter-to-job/token").strip()
    everything = json.dumps([of_controller, of_agent, of_runner])
    assert SECRET not in everything
    assert token not in everything


def test_a_refusal_can_be_quoted(dev_pod: DevPod, cluster: Cluster) -> None:
    """The user sees the id by which the administrator finds the line."""
    script = "JUPYTER_TO_JOB_GATEWAY_TOKEN_FILE=/etc/hostname jupyter-to-job list 2>&1"
    answer = dev_pod.run("sh", "-c", script, check=False)
    quoted = re.search(r"Request ([0-9a-f]{16}):", answer)
    assert quoted is not None, answer

    def logged() -> list[Any]:
        found = lines(cluster, controller(cluster), "-n", NAMESPACE, "--tail=-1")
        return [line for line in found if line.get("request_id") == quoted[1]]

    (line,) = wait_for("it is logged", logged)
    assert (line["status"], line["level"]) == (403, "warning")


def test_events_on_the_job(dev_pod: DevPod, cluster: Cluster) -> None:
    dev_pod.write(f"{HOME}/told.ipynb", notebook(f"raise KeyError('{SECRET}')"))
    failed = submit(dev_pod, f"{HOME}/told.ipynb")["name"]
    wait_for(
        "its end is told", lambda: {"JobFailed", "Delivered"} <= events(cluster, failed).keys()
    )
    told = events(cluster, failed)
    assert told["JobFailed"].startswith("CellError: ")
    assert SECRET not in json.dumps(told)
    assert failed in cluster.kubectl("describe", "job", failed, "-n", TEAM)

    cancelled = SubmittedJob.counting(dev_pod, "told-cancelled")
    cancelled.until_printed()
    dev_pod.run("jupyter-to-job", "cancel", cancelled.name)
    cancelled.until_ended()
    wait_for("the cancel is told", lambda: "Cancelled" in events(cluster, cancelled.name))
    assert "JobFailed" not in events(cluster, cancelled.name)


def test_probes_and_metrics(dev_pod: DevPod, cluster: Cluster) -> None:
    # A disk that is slow for a moment is not ready.
    checks = json.loads(until_taken("it is ready", lambda: ask(cluster, "/readyz")))["checks"]
    assert checks == dict.fromkeys(("lock", "exchange", "watches", "gateway"), "ok")
    assert json.loads(ask(cluster, "/healthz")) == {"status": "ok"}

    ended = {"state": "succeeded", "device": "cpu", "flavor": "small"}
    before = sample(ask(cluster, "/metrics"), "jupyter_to_job_jobs_ended_total", **ended)
    dev_pod.write(f"{HOME}/counted.ipynb", notebook("print('here')"))
    assert submit(dev_pod, f"{HOME}/counted.ipynb")["state"] == "succeeded"

    def is_counted() -> bool:
        after = sample(ask(cluster, "/metrics"), "jupyter_to_job_jobs_ended_total", **ended)
        return after > before

    wait_for("the job is counted", is_counted)
    scraped = ask(cluster, "/metrics")
    of_job = {"verb": "create", "resource": "jobs", "code": "201"}
    for name, labels in (
        ("jupyter_to_job_job_waiting_seconds_count", {"device": "cpu"}),
        ("jupyter_to_job_job_running_seconds_count", {"device": "cpu"}),
        ("jupyter_to_job_job_delivery_seconds_count", {}),
        ("jupyter_to_job_kubernetes_request_seconds_count", of_job),
        ("jupyter_to_job_exchange_size_bytes", {}),
        ("jupyter_to_job_ready", {"check": "exchange"}),
    ):
        assert sample(scraped, name, **labels) > 0, name
    assert sample(scraped, "jupyter_to_job_failing_watches", resource="pods") == 0
    assert f"{TEAM}/ada" not in scraped
    if promtool := shutil.which("promtool"):
        ours = "\n".join(line for line in scraped.splitlines() if "jupyter_to_job" in line)
        checked = subprocess.run(
            [promtool, "check", "metrics"], input=f"{ours}\n", capture_output=True, text=True
        )
        assert (checked.returncode, checked.stderr) == (0, "")


def test_dev_pods_get_no_metrics_by_the_service(dev_pod: DevPod) -> None:
    script = (
        "import os, httpx\n"
        "gateway = os.environ['JUPYTER_TO_JOB_GATEWAY']\n"
        "for path in ('/metrics', '/readyz', '/healthz'):\n"
        "    print(httpx.get(gateway + path, timeout=60).status_code)\n"
    )
    assert dev_pod.run("python3", "-c", script).split() == ["404", "200", "200"]
