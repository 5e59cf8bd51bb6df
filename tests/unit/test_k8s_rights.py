"""The manifests of k8s/: the controller's rights are those that it uses, where it uses them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from jupyter_to_job.backends.kubernetes.records import JOB_LABEL
from jupyter_to_job.backends.kubernetes.rights import (
    FOR_DEVICE_COUNTS,
    IN_CLUSTER,
    IN_NAMESPACES,
    Right,
)
from jupyter_to_job.controller.callers.tenants import parse_namespaces

K8S = Path(__file__).parents[2] / "k8s"
DEV_PODS = "jupyter-to-job.io/dev-pods"
"""The label of namespaces of dev pods."""
OVERLAYS = sorted((K8S / "overlays").iterdir())
Rules = set[Right]


def documents(folder: Path) -> list[dict[str, Any]]:
    """Return the documents of a kustomization, without what the bases of an overlay have."""
    listed = yaml.safe_load((folder / "kustomization.yaml").read_text())
    names = [n for n in listed.get("resources", []) if n.endswith(".yaml")]
    names += [patch["path"] for patch in listed.get("patches", []) if "path" in patch]
    return [d for name in names for d in yaml.safe_load_all((folder / name).read_text())]


def rules(folder: Path) -> dict[str, Rules]:
    """Return what each role of a folder allows, by its kind."""
    found: dict[str, Rules] = {}
    for role in documents(folder):
        if role["kind"] in ("Role", "ClusterRole"):
            found[role["kind"]] = {
                Right(group, resource, verb)
                for rule in role["rules"]
                for group in rule["apiGroups"]
                for resource in rule["resources"]
                for verb in rule["verbs"]
            }
    return found


def test_everywhere_it_only_reviews_tokens_and_knows_namespaces_and_nodes() -> None:
    """`doctor --cluster` asks the API server for the same rights."""
    assert rules(K8S / "base") == {"ClusterRole": set(IN_CLUSTER)}


def test_pods_and_jobs_are_a_matter_of_listed_namespaces() -> None:
    assert rules(K8S / "dev-namespace") == {"Role": set(IN_NAMESPACES)}
    assert rules(K8S / "overlays" / "whole-cluster") == {"ClusterRole": set(IN_NAMESPACES)}
    for overlay in OVERLAYS:
        if overlay.name != "whole-cluster":
            assert rules(overlay) == {}


def test_counting_devices_is_a_right_of_its_own() -> None:
    folder = K8S / "components" / "device-counts"
    assert rules(folder) == {"ClusterRole": set(FOR_DEVICE_COUNTS)}
    variables = variables_of(folder)
    assert variables == {"JUPYTER_TO_JOB_DEVICE_COUNTS": "true"}
    assert not variables.keys() & variables_of(K8S / "base").keys()


@pytest.mark.parametrize(
    "folder", ["base", "dev-namespace", "overlays/whole-cluster", "components/device-counts"]
)
def test_each_role_is_bound_to_the_controller_alone(folder: str) -> None:
    found = documents(K8S / folder)
    roles = {(d["kind"], d["metadata"]["name"]) for d in found if d["kind"].endswith("Role")}
    bindings = [d for d in found if d["kind"].endswith("RoleBinding")]
    assert {(b["roleRef"]["kind"], b["roleRef"]["name"]) for b in bindings} == roles
    controller = {"kind": "ServiceAccount", "name": "controller", "namespace": "jupyter-to-job"}
    assert [b["subjects"] for b in bindings] == [[controller]] * len(bindings)


def variables_of(folder: Path) -> dict[str, str]:
    """Return the variables in the Deployment of a folder, or in its patch."""
    (deployment,) = (d for d in documents(folder) if d["kind"] == "Deployment")
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    return {e["name"]: e["value"] for e in container.get("env", [])}


def namespaces_of(folder: Path) -> str | None:
    """Return the setting that names the namespaces."""
    return variables_of(folder).get("JUPYTER_TO_JOB_NAMESPACES")


def test_an_overlay_names_the_namespaces_that_it_gives_rights_in() -> None:
    assert namespaces_of(K8S / "base") is None  # alone it refuses to start
    for overlay in OVERLAYS:
        folders = [file.parent for file in overlay.glob("*/kustomization.yaml")]
        listed = [yaml.safe_load((f / "kustomization.yaml").read_text()) for f in folders]
        for folder, kustomization in zip(folders, listed, strict=True):
            (rights,) = kustomization["resources"]
            assert (folder / rights).resolve() == K8S / "dev-namespace"
        namespaces = {kustomization["namespace"] for kustomization in listed} or {"*"}
        assert parse_namespaces(namespaces_of(overlay) or "") == namespaces


def test_paths_of_the_overlays_exist() -> None:
    for file in K8S.rglob("kustomization.yaml"):
        listed = yaml.safe_load(file.read_text())
        names = listed.get("resources", []) + listed.get("components", [])
        assert [n for n in names if not (file.parent / n).exists()] == []


@pytest.mark.parametrize("overlay", OVERLAYS, ids=lambda folder: folder.name)
def test_every_overlay_has_the_policies_and_what_is_of_the_site(overlay: Path) -> None:
    listed = yaml.safe_load((overlay / "kustomization.yaml").read_text())
    assert "../../policies" in listed["resources"]
    assert listed["components"] == ["../../site"]


def policies() -> dict[str, tuple[dict[str, Any], dict[str, Any]]]:
    """Return each policy and its binding, by the policy's short name."""
    found = documents(K8S / "policies")
    bindings = {d["spec"]["policyName"]: d for d in found if d["kind"].endswith("Binding")}
    return {
        d["metadata"]["name"].removeprefix("jupyter-to-job-"): (d, bindings[d["metadata"]["name"]])
        for d in found
        if d["kind"] == "ValidatingAdmissionPolicy"
    }


def test_our_jobs_are_the_ones_that_the_policy_keeps() -> None:
    """It says in its own words who we are, and by what label our Jobs are known."""
    policy, binding = policies()["own-jobs"]
    variables = {v["name"]: v["expression"] for v in policy["spec"]["variables"]}
    (account,) = (d for d in documents(K8S / "base") if d["kind"] == "ServiceAccount")
    namespace = yaml.safe_load((K8S / "base" / "kustomization.yaml").read_text())["namespace"]
    name = f"system:serviceaccount:{namespace}:{account['metadata']['name']}"
    assert variables["controllers"] == f"['{name}']"
    (condition,) = policy["spec"]["matchConditions"]
    assert condition["expression"].count(f"'{JOB_LABEL}'") == 2
    assert "matchResources" not in binding["spec"]  # it holds in every namespace


def test_devices_are_for_the_pods_that_the_other_policy_keeps_ours() -> None:
    policy, binding = policies()["no-devices"]
    (condition,) = policy["spec"]["matchConditions"]
    assert f"'{JOB_LABEL}' in object.metadata" in condition["expression"]
    selector = binding["spec"]["matchResources"]["namespaceSelector"]
    assert selector == {"matchLabels": {DEV_PODS: "true"}}


@pytest.mark.parametrize("name", policies())
def test_a_policy_refuses(name: str) -> None:
    policy, binding = policies()[name]
    assert policy["spec"]["failurePolicy"] == "Fail"
    assert binding["spec"]["validationActions"] == ["Deny"]
