"""The Job that is made of a request and its origin: what a cluster and its admin rely on."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from jupyter_to_job.backends.kubernetes import JobPods, job_manifest
from jupyter_to_job.controller.callers.origin import notebook_container, origin_of
from jupyter_to_job.controller.cluster.cluster import Review
from jupyter_to_job.exchange import Request

PODS = JobPods("registry/agent:1", "http://gateway")
DEV_POD: Any = {
    "metadata": {"name": "jupyter-ada", "uid": "u-1", "annotations": {}},
    "spec": {
        "nodeName": "node-1",
        "imagePullSecrets": [{"name": "pull"}],
        "securityContext": {"runAsUser": 1000, "fsGroup": 100},
        "containers": [
            {
                "name": "notebook",
                "image": "registry/notebook:1",
                "env": [
                    {"name": "LANG", "value": "C.UTF-8"},
                    {"name": "JUPYTERHUB_API_TOKEN", "value": "hub-secret"},
                    {"name": "JPY_API_TOKEN", "value": "jpy-secret"},
                    {"name": "AWS_SECRET_ACCESS_KEY", "value": "cloud-secret"},
                    {"name": "PATH", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}},
                ],
                "securityContext": {"runAsGroup": 100, "privileged": True},
                "volumeMounts": [{"name": "secret", "mountPath": "/secret"}],
            },
            {"name": "sidecar", "image": "registry/sidecar:1"},
        ],
        "volumes": [{"name": "secret", "secret": {"secretName": "deep-secret"}}],
    },
}
REVIEW = Review("team", "default", "jupyter-ada", "u-1")
ORIGIN = origin_of(DEV_POD, REVIEW, notebook_container(DEV_POD, "notebook"), {})
REQUEST = Request(
    name="train-abcdefgh",
    owner="Ada Lovelace@example.org",
    notebook="home/ada/train.ipynb",
    source="/home/ada/train.ipynb",
    workspace="/",
    flavor="gpu-1",
    device="t4",
    flavor_spec={"cpu": "500m", "memory": "2Gi", "gpus": 1, "shm": "1Gi"},
    device_spec={"resource": "nvidia.com/gpu"},
    demand={"cpu": "0.5", "memory": "2147483648", "nvidia.com/gpu": "1"},
    snapshot_sha256="0" * 64,
    submitted="2026-01-01T00:00:00.000Z",
    backend="kubernetes",
    digest="d" * 64,
    env={"API_KEY": "user-secret"},
    max_runtime=600,
)


def manifest(**changes: Any) -> Any:
    return job_manifest(replace(REQUEST, **changes), ORIGIN, PODS)


def pod_of(document: Any) -> Any:
    return document["spec"]["template"]["spec"]


def notebook_of(document: Any) -> Any:
    (container,) = pod_of(document)["containers"]
    return container


def agent_of(document: Any) -> Any:
    (container,) = pod_of(document)["initContainers"]
    return container


def test_nothing_secret_is_taken_over() -> None:
    text = json.dumps(manifest())
    for secret in ("hub-secret", "jpy-secret", "cloud-secret", "deep-secret", "user-secret"):
        assert secret not in text
    assert "sidecar" not in text
    assert "API_KEY" not in text


def test_only_the_agent_holds_a_token() -> None:
    document = manifest()
    pod = pod_of(document)
    assert pod["automountServiceAccountToken"] is False
    token = next(v for v in pod["volumes"] if v["name"] == "token")
    (source,) = token["projected"]["sources"]
    assert source["serviceAccountToken"]["audience"] == "jupyter-to-job"
    assert "token" in [m["name"] for m in agent_of(document)["volumeMounts"]]
    assert "token" not in [m["name"] for m in notebook_of(document)["volumeMounts"]]


def test_a_notebook_has_the_gateways_address_unless_it_is_set() -> None:
    name = "JUPYTER_TO_JOB_GATEWAY"
    assert {"name": name, "value": PODS.gateway_url} in notebook_of(manifest())["env"]
    origin = {**ORIGIN, "env": {name: "https://other"}}
    variables = notebook_of(job_manifest(REQUEST, origin, PODS))["env"]
    assert [v["value"] for v in variables if v["name"] == name] == ["https://other"]
    source = {"configMapKeyRef": {"name": "gateway", "key": "url"}}
    origin = {**ORIGIN, "env_sources": {name: source}}
    assert {"name": name, "valueFrom": source} in notebook_of(job_manifest(REQUEST, origin, PODS))[
        "env"
    ]


def test_the_agent_alone_is_told_what_to_trust() -> None:
    pods = replace(PODS, gateway_ca=lambda: "-----BEGIN CERTIFICATE-----")
    document = job_manifest(REQUEST, ORIGIN, pods)
    trust = {"name": "JUPYTER_TO_JOB_GATEWAY_CA_DATA", "value": "-----BEGIN CERTIFICATE-----"}
    assert trust in agent_of(document)["env"]
    assert trust not in notebook_of(document)["env"]
    assert trust["name"] not in [v["name"] for v in agent_of(manifest())["env"]]


def test_it_passes_pod_security_restricted() -> None:
    document = manifest()
    pod = pod_of(document)
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert not {"hostNetwork", "hostPID", "hostIPC"} & pod.keys()
    for container in (agent_of(document), notebook_of(document)):
        context = container["securityContext"]
        assert context["allowPrivilegeEscalation"] is False
        assert context["capabilities"] == {"drop": ["ALL"]}
        assert "privileged" not in context
    for volume in pod["volumes"]:
        assert volume.keys() - {"name"} <= {"emptyDir", "projected"}


def test_it_runs_as_the_dev_pods_user_in_its_image() -> None:
    document = manifest()
    context = pod_of(document)["securityContext"]
    assert {k: context[k] for k in ("runAsUser", "runAsGroup", "fsGroup")} == {
        "runAsUser": 1000,
        "runAsGroup": 100,
        "fsGroup": 100,
    }
    assert notebook_of(document)["image"] == "registry/notebook:1"
    assert pod_of(document)["imagePullSecrets"] == [{"name": "pull"}]
    assert {"name": "LANG", "value": "C.UTF-8"} in notebook_of(document)["env"]


def test_the_runner_starts_beside_its_agent_and_waits_for_the_files() -> None:
    agent, notebook = agent_of(manifest()), notebook_of(manifest())
    assert agent["restartPolicy"] == "Always"  # it starts first, and survives the notebook
    assert "startupProbe" not in agent
    waits = ["run", "/jupyter-to-job/train-abcdefgh", "--attempt", "1", "--wait", "600"]
    assert notebook["args"] == waits
    patient = job_manifest(REQUEST, ORIGIN, replace(PODS, files_timeout=0))
    assert notebook_of(patient)["args"][-1] == "0"


def test_the_runner_is_not_started_in_a_folder_of_the_user() -> None:
    assert notebook_of(manifest())["workingDir"] == "/"


def test_requests_are_limits_and_the_agent_has_no_gpu() -> None:
    document = manifest()
    resources = notebook_of(document)["resources"]
    assert resources["requests"] == resources["limits"]
    assert resources["limits"] == {"cpu": "500m", "memory": "2Gi", "nvidia.com/gpu": "1"}
    assert "/" not in "".join(agent_of(document)["resources"]["limits"])
    shm = next(v for v in pod_of(document)["volumes"] if v["name"] == "shm")
    assert shm["emptyDir"] == {"medium": "Memory", "sizeLimit": "1Gi"}


def test_it_is_never_run_twice_by_itself_and_ends_in_time() -> None:
    document = manifest()
    assert document["spec"]["backoffLimit"] == 0
    assert pod_of(document)["restartPolicy"] == "Never"
    assert pod_of(document)["activeDeadlineSeconds"] > 600
    assert "activeDeadlineSeconds" not in document["spec"]  # it would count the time in line
    assert "activeDeadlineSeconds" not in pod_of(manifest(max_runtime=None))


def test_a_container_that_fails_is_not_started_again_whichever_it_is() -> None:
    """Kubernetes starts again what no rule is for. A rule without a name is for init containers."""
    disruption, failure = manifest()["spec"]["podFailurePolicy"]["rules"]
    assert disruption["action"] == "Count"
    assert failure == {"action": "FailJob", "onExitCodes": {"operator": "NotIn", "values": [0]}}


def test_a_catalog_cannot_forge_our_labels() -> None:
    labels = {"jupyter-to-job.io/job": "another", "team": "research"}
    document = manifest(flavor_spec={**REQUEST.flavor_spec, "labels": labels})
    shown = document["spec"]["template"]["metadata"]["labels"]
    assert shown["jupyter-to-job.io/job"] == "train-abcdefgh"
    assert shown["team"] == "research"


def test_no_autoscaler_evicts_a_pod_unless_the_catalog_lets_it() -> None:
    evict, disrupt = (
        "cluster-autoscaler.kubernetes.io/safe-to-evict",
        "karpenter.sh/do-not-disrupt",
    )
    annotations = manifest()["spec"]["template"]["metadata"]["annotations"]
    assert (annotations[evict], annotations[disrupt]) == ("false", "true")
    flavor = {**REQUEST.flavor_spec, "annotations": {evict: "true"}}
    annotations = manifest(flavor_spec=flavor)["spec"]["template"]["metadata"]["annotations"]
    assert (annotations[evict], annotations[disrupt]) == ("true", "true")


@pytest.mark.parametrize("owner", ["ada", "Ada", "ada@example.org", "x" * 300, "ns/account", "ä"])
def test_any_owner_is_a_label(owner: str) -> None:
    value = manifest(owner=owner)["metadata"]["labels"]["jupyter-to-job.io/owner"]
    assert 0 < len(value) <= 63
    assert value.replace("-", "").isalnum()
    assert value.isascii()


def test_what_the_device_says_places_the_pod() -> None:
    tolerations = [{"key": "gpu", "operator": "Exists"}]
    device = {
        **REQUEST.device_spec,
        "node_selector": {"product": "t4"},
        "tolerations": tolerations,
        "runtime_class": "nvidia",
    }
    pod = pod_of(manifest(device_spec=device))
    assert pod["nodeSelector"] == {"product": "t4"}
    assert pod["tolerations"] == tolerations
    assert pod["runtimeClassName"] == "nvidia"


def test_a_queue_suspends_the_job() -> None:
    assert manifest()["spec"]["suspend"] is False
    document = manifest(flavor_spec={**REQUEST.flavor_spec, "queue": "gpu"})
    assert document["spec"]["suspend"] is True
    assert document["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] == "gpu"
