"""The cluster that the other tests trust: real containers, counted GPUs, real tokens."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from functools import partial
from ssl import create_default_context

import pytest

from tests.cluster.box.boot import A100, T4, Box
from tests.cluster.box.cluster import Cluster, KubectlError
from tests.cluster.box.images import Images
from tests.cluster.box.wait import wait_for
from tests.cluster.scenes import until_worker_is_free
from tests.cluster.workloads import delete_jobs, job, phases, pods

AUDIENCE = "jupyter-to-job"
pytestmark = pytest.mark.side_by_side


def test_a_job_is_told_its_gpu_and_runs_as_an_ordinary_user(
    cluster: Cluster, images: Images
) -> None:
    script = (
        "echo $NVIDIA_VISIBLE_DEVICES $(id -u) $HOME; touch $HOME/mine; jupyter kernelspec list"
    )
    cluster.apply(job("one", images.notebook, script, gpus=1))

    wait_for("the job succeeds", lambda: phases(cluster, "one") == ["Succeeded"])

    first, *rest = cluster.kubectl("logs", "job/one").splitlines()
    device, *user = first.split()
    assert device.startswith("GPU-")
    assert user == ["1000", "/home/jovyan"]
    assert "python3" in "\n".join(rest)


@pytest.mark.side_by_side(2)
def test_each_kind_of_gpu_is_on_its_node(box: Box, images: Images) -> None:
    until_worker_is_free(box)
    kinds = {"t4": T4, "a100": A100}
    for name, kind in kinds.items():
        box.apply(job(name, images.notebook, "exec sleep 600", on=kind, gpus=1))

    wait_for("both run", lambda: phases(box, *kinds) == ["Running", "Running"])

    for name, kind in kinds.items():
        (pod,) = pods(box, name)
        assert pod["spec"]["nodeName"] == kind.name
        # The kubelets of both nodes answer.
        assert "main" in box.kubectl("exec", pod["metadata"]["name"], "--", "echo", "main")
    delete_jobs(box, *kinds)


def test_the_third_gpu_job_waits_for_one_of_two_gpus(box: Box, images: Images) -> None:
    names = ("first", "second", "third")
    sleep = "exec sleep 600"
    box.apply(*(job(name, images.notebook, sleep, on=T4, gpus=1) for name in names))

    wait_for(
        "two jobs run, one waits",
        lambda: phases(box, *names) == ["Pending", "Running", "Running"],
    )
    running = [pod for pod in pods(box, *names) if pod["status"]["phase"] == "Running"]
    delete_jobs(box, running[0]["metadata"]["labels"]["job-name"])
    wait_for(
        "the third job has the free GPU",
        lambda: phases(box, *names) == ["Running", "Running"],
    )
    delete_jobs(box, *names)


def test_a_token_of_our_audience_is_known_and_opens_nothing_else(box: Box) -> None:
    token = box.kubectl("create", "token", "default", f"--audience={AUDIENCE}").strip()

    review = {
        "apiVersion": "authentication.k8s.io/v1",
        "kind": "TokenReview",
        "spec": {"token": token, "audiences": [AUDIENCE]},
    }
    answer = box.kubectl("create", "-f", "-", "-o=json", stdin=json.dumps(review))
    status = json.loads(answer)["status"]
    assert status["authenticated"]
    assert status["user"]["username"] == "system:serviceaccount:default:default"

    request = urllib.request.Request(
        f"{box.api_url}/api", headers={"Authorization": f"Bearer {token}"}
    )
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(request, context=create_default_context(cafile=str(box.ca_file)))
    assert refused.value.code == 401


@pytest.mark.side_by_side(2)
def test_a_service_is_reached_by_name_from_both_nodes_and_from_the_host(
    box: Box, images: Images
) -> None:
    until_worker_is_free(box)
    container = {
        "name": "web",
        "image": images.notebook,
        "command": ["python3", "-m", "http.server", "8000"],
        "readinessProbe": {"tcpSocket": {"port": 8000}, "periodSeconds": 1},
    }
    service = {"selector": {"app": "web"}, "ports": [{"port": 80, "targetPort": 8000}]}
    box.apply(
        *(
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {"name": name, "namespace": "default", "labels": {"app": app}},
                "spec": {
                    "containers": [container],
                    "nodeName": node.name,
                    "terminationGracePeriodSeconds": 0,
                },
            }
            for name, app, node in (("web", "web", T4), ("client", "client", A100))
        ),
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": "web", "namespace": "default"},
            "spec": service,
        },
    )
    for name in ("web", "client"):
        box.until_ready(name, timeout=90)
    address = box.get("service", "web")["spec"]["clusterIP"]

    def host_reaches_it() -> bool:
        try:
            with urllib.request.urlopen(f"http://{address}", timeout=2) as response:
                return bool(response.status == 200)
        except OSError:
            return False

    wait_for("the host reaches the Service", host_reaches_it)
    fetch = (
        "import urllib.request as u; print(u.urlopen('http://web.default.svc', timeout=9).status)"
    )

    def reaches_it(pod: str) -> bool:
        try:
            return box.kubectl("exec", pod, "--", "python3", "-c", fetch).strip() == "200"
        except KubectlError:
            return False

    # To itself is the hardest case: there and back over the same bridge port. Each node learns of
    # the Service in its own time.
    for pod in ("web", "client"):
        wait_for(f"{pod} reaches the Service", partial(reaches_it, pod))
    box.kubectl("delete", "pod/web", "pod/client", "service/web")
