"""What `doctor --cluster` learns of the gateway by a pod that is like a dev pod, and none."""

from __future__ import annotations

import base64
from typing import Any

import pytest
import yaml

from jupyter_to_job.backends.kubernetes.manifest import JobPods, sample_template
from jupyter_to_job.cli.checks.cluster import gateway
from jupyter_to_job.cli.checks.cluster.api import ClusterApi
from jupyter_to_job.cli.checks.cluster.installation import Installation
from jupyter_to_job.cli.checks.cluster.trial_pod import TOKEN_FOLDER, trial_pod
from jupyter_to_job.controller.callers.tenants import OwnerRule, Tenants
from jupyter_to_job.domain.errors import Refused

from ..pretend_api_server import K8S, NAMESPACE, OF_CONTROLLER, PretendApiServer, shipped
from .test_cluster_doctor import Found, doctor

SECRET = f"{OF_CONTROLLER}/secrets/gateway-tls"
PEM = "-----BEGIN CERTIFICATE-----\nx\n-----END CERTIFICATE-----\n"
DISTRUSTED = "https://gateway: The gateway cannot be reached: [SSL: CERTIFICATE_VERIFY_FAILED] x."


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> PretendApiServer:
    server = PretendApiServer()
    monkeypatch.setattr(ClusterApi, "connect", lambda _context=None: server)
    monkeypatch.setattr(gateway, "_INTERVAL", 0.01)
    return server


def add_tls(server: PretendApiServer) -> None:
    """Patch the Deployment as k8s/tls does, and add the secret."""
    patch = shipped("tls/controller.yaml")["Deployment"]["spec"]["template"]["spec"]
    spec = server.deployment["spec"]["template"]["spec"]
    spec["volumes"] += patch["volumes"]
    spec["containers"][0]["volumeMounts"] += patch["containers"][0]["volumeMounts"]
    for variable in patch["containers"][0]["env"]:
        server.set_variable(variable["name"], variable["value"])
    server.documents[SECRET] = {"data": {"ca.crt": base64.b64encode(PEM.encode()).decode()}}
    health = server.documents[server.health]
    server.documents[server.health.replace("controller-1", "https:controller-1")] = health


def says(server: PretendApiServer, message: str) -> None:
    server.says = [{"area": "gateway", "level": "problem", "message": message, "mend": "Look."}]


def found_of_gateway() -> Found:
    found, _ = doctor()
    return [f for f in found if f["area"] == "gateway"]


def the_pod(server: PretendApiServer) -> Any:
    installation = Installation.find(server, NAMESPACE)  # type: ignore[arg-type]
    return trial_pod(installation, "team")


def test_it_trusts_whom_agents_trust(server: PretendApiServer) -> None:
    (plain,) = the_pod(server)["spec"]["volumes"][0]["projected"]["sources"]
    assert set(plain) == {"serviceAccountToken"}
    add_tls(server)
    pod = the_pod(server)
    (container,) = pod["spec"]["containers"]
    path = f"{TOKEN_FOLDER}/ca.crt"
    assert {"name": "JUPYTER_TO_JOB_GATEWAY_CA", "value": path} in container["env"]
    _, source = pod["spec"]["volumes"][0]["projected"]["sources"]
    annotations = pod["metadata"]["annotations"]
    (name,) = (name for name, text in annotations.items() if text == PEM)
    field = {"fieldPath": f"metadata.annotations['{name}']"}
    assert source == {"downwardAPI": {"items": [{"path": "ca.crt", "fieldRef": field}]}}
    assert annotations["hub.jupyter.org/username"] == "doctor"
    (finding,) = found_of_gateway()
    assert finding["level"] == "ok"


def test_it_is_refused_where_agents_are(server: PretendApiServer) -> None:
    """A limit range may refuse their few requests, or the ratio of limits to them."""
    folder = "/etc/jupyter-to-job"
    server.set_variable("JUPYTER_TO_JOB_POD_PATCH", f"{folder}/pod-patch.yaml")
    data = server.documents[f"{OF_CONTROLLER}/configmaps/flavors"]["data"]
    (container,) = the_pod(server)["spec"]["containers"]
    (agent,) = sample_template(JobPods("agent", "http://gateway"))["spec"]["initContainers"]
    assert container["resources"] == agent["resources"]
    data["pod-patch.yaml"] = (K8S / "pod-patches" / "agent-resources.yaml").read_text()
    patch = yaml.safe_load(data["pod-patch.yaml"])
    pods = JobPods("agent", "http://gateway", patch=patch)
    (container,) = the_pod(server)["spec"]["containers"]
    (patched,) = sample_template(pods)["spec"]["initContainers"]
    assert container["resources"] == patched["resources"] != agent["resources"]


def test_it_has_of_the_pod_patch_what_agents_have(server: PretendApiServer) -> None:
    """Else it is refused, finds no name and pulls no image where agents do, or the other way."""
    plain = the_pod(server)
    server.deployment["spec"]["template"]["spec"]["imagePullSecrets"] = [{"name": "pull"}]
    server.set_variable("JUPYTER_TO_JOB_POD_PATCH", "/etc/jupyter-to-job/pod-patch.yaml")
    patch = yaml.safe_load((K8S / "pod-patches" / "ca-bundle.yaml").read_text())
    ours = "app.kubernetes.io/name"
    patch["metadata"] = {"labels": {"team": "ml", ours: "x"}, "annotations": {"inject": "false"}}
    patch["spec"] |= {
        "dnsConfig": {"searches": ["corp.example.org"]},
        "imagePullSecrets": [{"name": "more"}],
        "nodeSelector": {"pool": "jobs"},
    }
    data = server.documents[f"{OF_CONTROLLER}/configmaps/flavors"]["data"]
    data["pod-patch.yaml"] = yaml.safe_dump(patch)
    pod = the_pod(server)
    metadata, spec = pod["metadata"], pod["spec"]
    assert metadata["labels"] == {**plain["metadata"]["labels"], "team": "ml"}
    assert metadata["annotations"] == {**plain["metadata"]["annotations"], "inject": "false"}
    assert spec["dnsConfig"] == patch["spec"]["dnsConfig"]
    assert spec["imagePullSecrets"] == [{"name": "pull"}, {"name": "more"}]
    assert "nodeSelector" not in spec
    (container,), (before,) = spec["containers"], plain["spec"]["containers"]
    (agent,) = patch["spec"]["initContainers"]
    for field in ("env", "volumeMounts"):
        assert container[field] == [*before[field], *agent[field]]
    assert spec["volumes"] == [*plain["spec"]["volumes"], *patch["spec"]["volumes"]]


@pytest.mark.parametrize(
    "content", ["a: [", "spec: [a]", "metadata: 2024-13-45", "spec: {initContainers: {a: 1}}"]
)
def test_a_wrong_pod_patch_is_a_problem_once(server: PretendApiServer, content: str) -> None:
    server.set_variable("JUPYTER_TO_JOB_POD_PATCH", "/etc/jupyter-to-job/pod-patch.yaml")
    data = server.documents[f"{OF_CONTROLLER}/configmaps/flavors"]["data"]
    (container,) = the_pod(server)["spec"]["containers"]
    data["pod-patch.yaml"] = content
    assert the_pod(server)["spec"]["containers"] == [container]
    found, code = doctor()
    told = [f for f in found if "patch" in f["message"]]
    assert [(f["area"], f["level"]) for f in told] == [("catalog", "problem")]
    assert {"gateway", "policies"} <= {f["area"] for f in found}
    assert code == 1


def test_a_distrusted_gateway_is_a_problem(server: PretendApiServer) -> None:
    add_tls(server)
    says(server, DISTRUSTED)
    (finding,) = found_of_gateway()
    assert finding["level"] == "problem"


def test_an_authority_that_the_administrator_may_not_read(server: PretendApiServer) -> None:
    add_tls(server)
    server.forbidden.add(SECRET)
    says(server, DISTRUSTED)
    (finding,) = found_of_gateway()
    assert finding["level"] == "warning"
    assert "The certificate of its authority could not be read here" in finding["message"]
    says(server, "https://gateway: The gateway cannot be reached: timed out.")
    (finding,) = found_of_gateway()
    assert finding["level"] == "problem"


@pytest.mark.parametrize("rule", ["claim", "claim=/home/jovyan", " serviceaccount "])
def test_an_owner_rule_that_it_cannot_satisfy(server: PretendApiServer, rule: str) -> None:
    """What the gateway says of such a pod tells that it is reached, and took the token."""
    server.set_variable("JUPYTER_TO_JOB_OWNER_RULE", rule)
    server.set_variable("JUPYTER_TO_JOB_OWNER_SCOPE", "cluster")
    tenants = Tenants(frozenset(["team"]), OwnerRule.parse(rule), owner_scope="cluster")
    origin = {"namespace": "team", "pod": "p", "service_account": "default", "mounts": []}
    with pytest.raises(Refused) as refused:
        tenants.owner({"metadata": {}}, origin)
    says(server, f"It does not take our token: {refused.value.message}")
    (finding,) = found_of_gateway()
    assert finding["level"] == "ok"
    assert "It knows the pod by its token." in finding["message"]
    says(server, "It does not take our token: This token is not accepted.")
    (finding,) = found_of_gateway()
    assert finding["level"] == "problem"


def test_where_it_runs_if_all_namespaces_are_served(server: PretendApiServer) -> None:
    """k8s/network/gateway lets pods of namespaces with the label through, and no others."""
    server.set_variable("JUPYTER_TO_JOB_NAMESPACES", "*")
    assert found_of_gateway()[0]["message"] == f"From {NAMESPACE}: It answers"
    server.add_namespace("zoe")
    labels = server.documents["/api/v1/namespaces/zoe"]["metadata"]["labels"]
    labels["jupyter-to-job.io/dev-pods"] = "true"
    assert found_of_gateway()[0]["message"] == "From zoe: It answers"


def test_an_annotation_that_did_not_count(server: PretendApiServer) -> None:
    says(server, "It does not take our token: The pod p does not say whose it is: it has none.")
    (finding,) = found_of_gateway()
    assert finding["level"] == "problem"


def test_in_a_namespace_that_denies_everything_a_policy_has_it(server: PretendApiServer) -> None:
    policy = shipped("network/doctor/policy.yaml")["NetworkPolicy"]["spec"]
    selector = policy["podSelector"]
    assert list(selector) == ["matchLabels"]
    assert selector["matchLabels"].items() <= the_pod(server)["metadata"]["labels"].items()
    couriers = shipped("network/couriers/policy.yaml")["NetworkPolicy"]["spec"]
    assert policy == {**couriers, "podSelector": selector}


def test_an_injected_proxy_that_runs_on(
    server: PretendApiServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those of Istio and Linkerd do, where they are no native sidecars: the pod never ends."""
    monkeypatch.setattr(gateway, "SECONDS", 1)
    server.trial_phase = "Running"
    proxy = {"name": "istio-proxy", "state": {"running": {}}}
    ended = {"name": "notebook", "state": {"terminated": {"exitCode": 0}}}
    server.trial_containers = [proxy, ended]
    (finding,) = found_of_gateway()
    assert finding["message"] == "From team: It answers"
    assert server.created == {}
