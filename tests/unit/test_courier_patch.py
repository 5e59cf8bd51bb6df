"""What a courier has of the administrator's pod patch."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from kubernetes.aio import client

from jupyter_to_job.backends.kubernetes.agent_patch import with_agent_patch
from jupyter_to_job.backends.kubernetes.pod_patch import read_patch
from jupyter_to_job.controller.couriers.manifest import CourierPods
from jupyter_to_job.wiring import Settings

from ..golden_couriers import HOME, PODS, courier
from ..golden_manifests import ROOT

EXAMPLES = ROOT / "k8s" / "pod-patches"


def template_with(path: Path) -> Any:
    """Return the template of a courier of a controller with a patch in a file."""
    settings = Settings(agent_image=PODS.image, gateway_url=PODS.gateway_url)
    manifest = courier(
        {}, pods=CourierPods.of(settings, lambda: read_patch(path.read_bytes(), path.name), 600)
    )
    client.V1Job.model_validate(manifest)
    return manifest["spec"]["template"]


def test_it_trusts_the_certificates_that_the_agent_trusts() -> None:
    spec = template_with(EXAMPLES / "ca-bundle.yaml")["spec"]
    (container,) = spec["containers"]
    assert {"name": "SSL_CERT_FILE", "value": "/etc/ca-bundle/ca.crt"} in container["env"]
    paths = {mount["mountPath"]: mount["name"] for mount in container["volumeMounts"]}
    assert paths["/etc/ca-bundle"] == "ca-bundle"
    assert {"name": "ca-bundle", "configMap": {"name": "ca-bundle"}} in spec["volumes"]
    assert "initContainers" not in spec


def test_it_trusts_the_authority_of_the_gateway() -> None:
    pods = CourierPods(PODS.image, PODS.gateway_url, gateway_ca=lambda: "certificate")
    (container,) = courier({}, pods=pods)["spec"]["template"]["spec"]["containers"]
    trust = {"name": "JUPYTER_TO_JOB_GATEWAY_CA_DATA", "value": "certificate"}
    assert trust in container["env"]


def test_it_finds_names_and_images_as_job_pods_do(tmp_path: Path) -> None:
    patch: Any = {
        "metadata": {
            "labels": {"team": "ml", "app.kubernetes.io/component": "job"},
            "annotations": {"sidecar.istio.io/inject": "false"},
        },
        "spec": {
            "dnsConfig": {"searches": ["corp.example.org"]},
            "hostAliases": [{"ip": "10.0.0.1", "hostnames": ["gateway"]}],
            "imagePullSecrets": [{"name": "more"}],
        },
    }
    path = tmp_path / "patch.yaml"
    path.write_text(yaml.safe_dump(patch))
    template = template_with(path)
    assert template["metadata"]["labels"]["team"] == "ml"
    assert template["metadata"]["labels"]["app.kubernetes.io/component"] == "courier"
    assert template["metadata"]["annotations"] == patch["metadata"]["annotations"]
    spec = template["spec"]
    assert {key: spec[key] for key in ("dnsConfig", "hostAliases")} == {
        key: patch["spec"][key] for key in ("dnsConfig", "hostAliases")
    }
    assert spec["imagePullSecrets"] == [{"name": "pull"}, {"name": "more"}]


@pytest.mark.parametrize("name", ["affinity.yaml", "mount.yaml"])
def test_where_it_runs_and_what_notebooks_mount_is_not_its_business(name: str) -> None:
    plain = courier({})["spec"]["template"]
    assert template_with(EXAMPLES / name)["spec"] == plain["spec"]


def test_it_has_the_resources_of_a_patched_agent(tmp_path: Path) -> None:
    """Rules of a namespace that want others of the agent want them of the courier, too."""
    (container,) = template_with(EXAMPLES / "agent-resources.yaml")["spec"]["containers"]
    assert container["resources"] == {
        "requests": {"cpu": "100m", "memory": "256Mi", "ephemeral-storage": "100Mi"},
        "limits": {"cpu": "500m", "memory": "256Mi"},
    }
    path = tmp_path / "patch.yaml"
    agent = {"name": "agent", "resources": {"limits": {"cpu": "200m"}}}
    path.write_text(yaml.safe_dump({"spec": {"initContainers": [agent]}}))
    (container,) = template_with(path)["spec"]["containers"]
    assert container["resources"] == {
        "requests": {"cpu": "20m", "memory": "64Mi"},  # as the agent has them
        "limits": {"cpu": "200m", "memory": "256Mi"},
    }


def test_nothing_is_mounted_in_the_place_of_the_result() -> None:
    template = courier({})["spec"]["template"]
    mounts = [{"name": "a", "mountPath": HOME}, {"name": "b", "mountPath": f"{HOME}/course"}]
    agent = {"name": "agent", "volumeMounts": mounts}
    volumes: list[Any] = [{"name": name, "emptyDir": {}} for name in ("a", "b")]
    patch = {"spec": {"initContainers": [agent], "volumes": volumes}}
    assert with_agent_patch(template, patch, HOME) == template
