"""What makes a dev pod is said alike in the guide, in the example, and in a Hub's values."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from jupyter_to_job.backends.kubernetes.manifest import AUDIENCE, TOKEN_FOLDER
from jupyter_to_job.wiring import Settings

from ..docs.pages import page

K8S = Path(__file__).parents[2] / "k8s"


def guide() -> Any:
    """Return the manifest in docs/install.md."""
    section = page("docs/install.md").text.partition("\n## Dev pods\n")[2]
    return yaml.safe_load(section.split("```")[1].removeprefix("yaml"))


def example() -> Any:
    """Return the pod of k8s/dev-pod.yaml."""
    documents = yaml.safe_load_all((K8S / "dev-pod.yaml").read_text())
    return next(document for document in documents if document["kind"] == "Pod")


def of_hub() -> Any:
    """Return the pod that KubeSpawner makes with our values, as far as they say."""
    user = yaml.safe_load((K8S / "overlays" / "jupyterhub" / "values.yaml").read_text())
    single = user["singleuser"]
    container = {
        "name": "notebook",
        "env": [{"name": n, "value": v} for n, v in single["extraEnv"].items()],
        "volumeMounts": single["storage"]["extraVolumeMounts"],
    }
    spec = {"containers": [container], "volumes": single["storage"]["extraVolumes"]}
    return {"metadata": {"annotations": {"hub.jupyter.org/username": "ada"}}, "spec": spec}


@pytest.mark.parametrize("pod", [guide(), example(), of_hub()], ids=["guide", "example", "hub"])
def test_a_dev_pod(pod: Any) -> None:
    (container,) = pod["spec"]["containers"]
    settings = Settings()
    assert container["name"] == settings.container
    rule, _, key = settings.owner_rule.partition("=")
    assert (rule, pod["metadata"]["annotations"][key]) == ("annotation", "ada")
    variables = {e["name"]: e["value"] for e in container["env"]}
    assert variables == {"JUPYTER_TO_JOB_GATEWAY": "http://gateway.jupyter-to-job.svc"}
    mount = {"name": "jupyter-to-job", "mountPath": TOKEN_FOLDER, "readOnly": True}
    assert mount in container["volumeMounts"]
    assert settings.gateway_token_file == f"{TOKEN_FOLDER}/token"
    token = {"audience": AUDIENCE, "expirationSeconds": 3600, "path": "token"}
    projected = {"sources": [{"serviceAccountToken": token}]}
    assert {"name": "jupyter-to-job", "projected": projected} in pod["spec"]["volumes"]


def test_a_hubs_users_reach_the_gateway() -> None:
    values = yaml.safe_load((K8S / "overlays" / "jupyterhub" / "values.yaml").read_text())
    (rule,) = values["singleuser"]["networkPolicy"]["egress"]
    (peer,) = rule["to"]
    deployment = yaml.safe_load((K8S / "base" / "controller.yaml").read_text())
    template = deployment["spec"]["template"]
    labels = peer["podSelector"]["matchLabels"]
    assert labels.items() <= template["metadata"]["labels"].items()
    namespace = yaml.safe_load((K8S / "base" / "kustomization.yaml").read_text())["namespace"]
    selected = peer["namespaceSelector"]["matchLabels"]
    assert selected == {"kubernetes.io/metadata.name": namespace}
    (container,) = template["spec"]["containers"]
    ports = [port["containerPort"] for port in container["ports"] if port["name"] == "http"]
    assert [port["port"] for port in rule["ports"]] == ports
