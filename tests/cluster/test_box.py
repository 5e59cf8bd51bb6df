"""The cluster that the other tests trust: real containers, counted GPUs, real tokens."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from ssl import create_default_context
from typing import Any

import pytest

from tests.cluster.box.cluster import GPU, Cluster
from tests.cluster.box.images import Images
from tests.cluster.box.wait import wait_for

AUDIENCE = "jupyter-to-job"


def gpu_job(name: str, image: str, script: str) -> dict[str, Any]:
    container = {
        "name": "notebook",
        "image": image,
        "command": ["sh", "-c", script],
        "resources": {"limits": {GPU: 1}, "requests": {"cpu": "50m"}},
    }
    pod = {
        "restartPolicy": "Never",
        "terminationGracePeriodSeconds": 1,
        "containers": [container],
    }
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"backoffLimit": 0, "template": {"spec": pod}},
    }


def pods(cluster: Cluster, *jobs: str) -> list[Any]:
    selector = f"job-name in ({','.join(jobs)})"
    answer = cluster.kubectl("get", "pods", "--selector", selector, "-o=json")
    items: list[Any] = json.loads(answer)["items"]
    return items


def phases(cluster: Cluster, *jobs: str) -> list[str]:
    return sorted(pod["status"]["phase"] for pod in pods(cluster, *jobs))


def test_a_job_is_told_its_gpu_and_runs_as_an_ordinary_user(
    cluster: Cluster, images: Images
) -> None:
    script = (
        "echo $NVIDIA_VISIBLE_DEVICES $(id -u) $HOME; touch $HOME/mine; jupyter kernelspec list"
    )
    cluster.apply(gpu_job("one", images.notebook, script))

    wait_for("the job succeeds", lambda: phases(cluster, "one") == ["Succeeded"])

    first, *rest = cluster.kubectl("logs", "job/one").splitlines()
    device, *user = first.split()
    assert device.startswith("GPU-")
    assert user == ["1000", "/home/jovyan"]
    assert "python3" in "\n".join(rest)


def test_the_third_gpu_job_waits_for_one_of_two_gpus(cluster: Cluster, images: Images) -> None:
    names = ("first", "second", "third")
    cluster.apply(*(gpu_job(name, images.notebook, "exec sleep 600") for name in names))

    wait_for(
        "two jobs run, one waits",
        lambda: phases(cluster, *names) == ["Pending", "Running", "Running"],
    )
    running = [pod for pod in pods(cluster, *names) if pod["status"]["phase"] == "Running"]
    cluster.kubectl("delete", "job", running[0]["metadata"]["labels"]["job-name"])
    wait_for(
        "the third job has the free GPU",
        lambda: phases(cluster, *names) == ["Running", "Running"],
    )
    cluster.kubectl("delete", "job", "--ignore-not-found", *names)


def test_a_token_of_our_audience_is_known_and_opens_nothing_else(cluster: Cluster) -> None:
    token = cluster.kubectl("create", "token", "default", f"--audience={AUDIENCE}").strip()

    review = {
        "apiVersion": "authentication.k8s.io/v1",
        "kind": "TokenReview",
        "spec": {"token": token, "audiences": [AUDIENCE]},
    }
    answer = cluster.kubectl("create", "-f", "-", "-o=json", stdin=json.dumps(review))
    status = json.loads(answer)["status"]
    assert status["authenticated"]
    assert status["user"]["username"] == "system:serviceaccount:default:default"

    request = urllib.request.Request(
        f"{cluster.api_url}/api", headers={"Authorization": f"Bearer {token}"}
    )
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(request, context=create_default_context(cafile=str(cluster.ca_file)))
    assert refused.value.code == 401


def test_a_service_is_reached_from_pods_and_from_the_host(cluster: Cluster, images: Images) -> None:
    container = {
        "name": "web",
        "image": images.notebook,
        "command": ["python3", "-m", "http.server", "8000"],
        "readinessProbe": {"tcpSocket": {"port": 8000}, "periodSeconds": 1},
    }
    service = {"selector": {"app": "web"}, "ports": [{"port": 80, "targetPort": 8000}]}
    cluster.apply(
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "web", "namespace": "default", "labels": {"app": "web"}},
            "spec": {"containers": [container], "terminationGracePeriodSeconds": 0},
        },
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": "web", "namespace": "default"},
            "spec": service,
        },
    )
    cluster.kubectl("wait", "pod/web", "--for=condition=Ready", "--timeout=30s")
    address = cluster.get("service", "web")["spec"]["clusterIP"]

    def host_reaches_it() -> bool:
        try:
            with urllib.request.urlopen(f"http://{address}", timeout=2) as response:
                return bool(response.status == 200)
        except OSError:
            return False

    wait_for("the host reaches the Service", host_reaches_it)
    fetch = f"import urllib.request as u; print(u.urlopen('http://{address}', timeout=5).status)"
    # To itself, the hardest case: there and back over the same bridge port.
    assert cluster.kubectl("exec", "web", "--", "python3", "-c", fetch).strip() == "200"
    cluster.kubectl("delete", "pod/web", "service/web")
