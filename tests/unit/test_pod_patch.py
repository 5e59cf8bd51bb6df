"""The administrator's pod patch: merged as Kubernetes merges, and checked after that."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from jupyter_to_job.backends.kubernetes import job_manifest
from jupyter_to_job.backends.kubernetes.manifest import pinned, sample_template
from jupyter_to_job.backends.kubernetes.pod_patch import PodPatchFile, patched, read_patch
from jupyter_to_job.controller import __main__ as controller
from jupyter_to_job.controller.cluster.cluster import require_pod_template
from jupyter_to_job.domain.errors import BadInput

from ..golden_manifests import PATCHES
from .test_manifest import ORIGIN, PODS, REQUEST

TOKEN = {"serviceAccountToken": {"audience": "jupyter-to-job", "path": "token"}}
OTHER_TOKEN = {"serviceAccountToken": {"audience": "sts.example.org", "path": "token"}}


def template() -> Any:
    return job_manifest(REQUEST, ORIGIN, PODS)["spec"]["template"]


def with_patch(text: str) -> Any:
    """Return the template of a pod with a patch."""
    return patched(template(), read_patch(text.encode(), "patch.yaml"))


def container(template: Any, kind: str = "containers") -> Any:
    return template["spec"][kind][0]


def test_containers_variables_and_volumes_are_merged_by_their_keys() -> None:
    result = with_patch("""
spec:
  containers:
    - name: notebook
      env: [{name: LANG, value: de_DE.UTF-8}, {name: EXTRA, value: "1"}]
      volumeMounts: [{name: data, mountPath: /data}]
  volumes: [{name: data, configMap: {name: data}}]
  imagePullSecrets: [{name: more}]
""")
    before = template()
    env = {e["name"]: e.get("value") for e in container(result)["env"]}
    assert env == {**{e["name"]: e["value"] for e in container(before)["env"]},
                   "LANG": "de_DE.UTF-8", "EXTRA": "1"}  # fmt: skip
    mounts = container(before)["volumeMounts"]
    assert container(result)["volumeMounts"] == [*mounts, {"name": "data", "mountPath": "/data"}]
    assert result["spec"]["volumes"][:-1] == before["spec"]["volumes"]
    assert result["spec"]["imagePullSecrets"] == [{"name": "pull"}, {"name": "more"}]
    assert container(result, "initContainers") == container(before, "initContainers")


def test_tolerations_are_added_and_null_takes_away() -> None:
    ours = {"key": "gpu", "operator": "Exists"}
    device = {**REQUEST.device_spec, "tolerations": [ours], "runtime_class": "nvidia"}
    before = job_manifest(replace(REQUEST, device_spec=device), ORIGIN, PODS)["spec"]["template"]
    theirs = {"key": "team", "operator": "Exists"}
    patch = {"spec": {"tolerations": [theirs, ours], "runtimeClassName": None}}
    spec = patched(before, patch)["spec"]
    assert spec["tolerations"] == [ours, theirs]
    assert "runtimeClassName" not in spec


def test_directives_delete_and_replace() -> None:
    base = {**template(), "spec": {**template()["spec"], "nodeSelector": {"a": "1"}}}
    result = patched(base, {"spec": {"nodeSelector": {"$patch": "replace", "b": "2"}}})
    assert result["spec"]["nodeSelector"] == {"b": "2"}
    dropped = {"containers": [{"name": "notebook", "env": [{"name": "LANG", "$patch": "delete"}]}]}
    assert "LANG" not in str(container(patched(base, {"spec": dropped}))["env"])


@pytest.mark.parametrize(
    ("patch", "what"),
    [
        ("spec: {securityContext: {runAsNonRoot: false}}", "securityContext"),
        ("spec: {securityContext: null}", "securityContext"),
        ("spec: {securityContext: {runAsUser: 0}}", "securityContext"),
        ("spec: {automountServiceAccountToken: true}", "automountServiceAccountToken"),
        ("spec: {restartPolicy: OnFailure}", "restartPolicy"),
        ("spec: {hostNetwork: true}", "hostNetwork"),
        ("spec: {shareProcessNamespace: true}", "shareProcessNamespace"),
        ("spec: {terminationGracePeriodSeconds: 1}", "terminationGracePeriodSeconds"),
        ("metadata: {labels: {jupyter-to-job.io/job: other}}", "labels of jupyter-to-job.io"),
        ("metadata: {labels: {jupyter-to-job.io/more: x}}", "labels of jupyter-to-job.io"),
        ("metadata: {labels: null}", "labels of jupyter-to-job.io"),
        ("metadata: {annotations: {$patch: replace, a: b}}", "annotations of jupyter-to-job.io"),
        ("metadata: {name: mine}", "metadata other than"),
        ("spec: {initContainers: [{name: agent, $patch: delete}]}", "agent must be first"),
        ("spec: {initContainers: null}", "agent must be first"),
        ("spec: {initContainers: [{name: agent, image: mine}]}", "image of the container agent"),
        ("spec: {containers: [{name: more, image: x}]}", "the job would not end"),
        ("spec: {containers: [{name: notebook, command: [sh]}]}", "command of the container"),
        ("spec: {containers: [{name: notebook, resources: {limits: {nvidia.com/gpu: 8}}}]}",
         "resources of the container notebook"),
        ("spec: {containers: [{name: notebook, securityContext: {privileged: true}}]}",
         "securityContext of the container notebook"),
        ("spec: {containers: [{name: notebook, volumeMounts: "
         "[{mountPath: /jupyter-to-job, name: other}]}]}", "volumeMounts of the container"),
        ("spec: {containers: [{name: notebook, volumeMounts: "
         "[{mountPath: /t, name: token}]}]}", "the token of the agent"),
        ("spec: {volumes: [{name: token, emptyDir: {}}]}", "the volume token"),
        ("spec: {volumes: [{name: exchange, $patch: delete}]}", "the volume exchange"),
        ("spec: {volumes: [{name: exchange, hostPath: {path: /}}]}", "the volume exchange"),
    ],
)  # fmt: skip
def test_what_a_patch_must_not_touch(patch: str, what: str) -> None:
    with pytest.raises(BadInput, match=what):
        with_patch(patch)


def test_a_second_token_of_ours_is_for_the_agent_alone() -> None:
    def patch(source: Any) -> Any:
        volume = {"name": "mine", "projected": {"sources": [source]}}
        mounts = [{"name": "mine", "mountPath": "/mine"}]
        return {"volumes": [volume], "containers": [{"name": "notebook", "volumeMounts": mounts}]}

    with pytest.raises(BadInput, match="token of the agent"):
        patched(template(), {"spec": patch(TOKEN)})
    assert patched(template(), {"spec": patch(OTHER_TOKEN)})["spec"]["volumes"][-1]["projected"]


def test_a_sidecar_comes_after_the_agent() -> None:
    sidecar = {"name": "proxy", "image": "proxy:1", "restartPolicy": "Always"}
    result = patched(template(), {"spec": {"initContainers": [sidecar]}})
    assert [c["name"] for c in result["spec"]["initContainers"]] == ["agent", "proxy"]


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("a: [", "no YAML"),
        ("metadata: {annotations: {since: 2026-02-30}}", "no YAML"),
        ("- spec", "no pod patch"),
        ("kind: Pod\nspec: {}", "no pod patch"),
        ("spec: {containers: [{image: x}]}", "each entry needs 'name'"),
        ("spec: {containers: {name: notebook}}", "it is no mapping"),
        ("spec: {securityContext: []}", "it is a mapping"),
        ("spec: {volumes: [{name: x, projected: text}]}", "does not have the form"),
        ("spec: {$patch: merge}", r"\$patch may be"),
        ("spec: {$retainKeys: [a]}", "not known"),
    ],
)
def test_what_is_no_patch(text: str, what: str) -> None:
    with pytest.raises(BadInput, match=what):
        with_patch(text)


def test_a_claim_of_one_node_keeps_its_node_whatever_the_patch_says() -> None:
    spec = yaml.safe_load((PATCHES / "affinity.yaml").read_text())["spec"]
    required = pinned(spec, "node-1")["affinity"]["nodeAffinity"][
        "requiredDuringSchedulingIgnoredDuringExecution"
    ]
    (term,) = required["nodeSelectorTerms"]
    assert term["matchExpressions"][0]["key"] == "example.org/spot"
    assert term["matchFields"] == [{"key": "metadata.name", "operator": "In", "values": ["node-1"]}]
    assert "matchFields" not in str(spec)


def test_the_file_is_followed_and_the_last_good_patch_stays(tmp_path: Path) -> None:
    path = tmp_path / "patch.yaml"
    file = PodPatchFile(str(path), sample_template(PODS), require_pod_template)
    with pytest.raises(BadInput, match="cannot be read"):
        file.current()
    path.write_text("spec: {hostPID: true}")
    with pytest.raises(BadInput, match="hostPID"):
        file.current()
    path.write_text("spec: {priority: 1}")
    assert file.current() == {"spec": {"priority": 1}}
    path.write_text("spec: {hostPID: true}")
    assert file.current() == {"spec": {"priority": 1}}
    assert "hostPID" in str(file.problem)
    path.write_text("metadata: {annotations: {since: 2026-02-30}}")
    assert file.current() == {"spec": {"priority": 1}}
    path.write_text("spec: {dnsConfg: {}}")
    assert file.current() == {"spec": {"priority": 1}}
    assert "dnsConfg" in str(file.problem)
    path.write_text("")
    assert file.current() == {}
    assert file.problem is None


@pytest.mark.parametrize("file", sorted(PATCHES.iterdir()), ids=lambda file: file.stem)
def test_the_examples_may_be_used(file: Path) -> None:
    PodPatchFile(str(file), sample_template(PODS), require_pod_template).current()


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("spec: {dnsConfg: {searches: [example.org]}}", "spec.dnsConfg"),
        ("spec: {priority: high}", "spec.priority"),
        ("metadata: {annotations: {since: 2026-02-03}}", "metadata.annotations.since"),
        ("metadata: {annotations: {since: 2026-02-30}}", "no YAML"),
        ("spec: {hostPID: true}", "hostPID"),
    ],
)
def test_the_controller_does_not_start_with_a_wrong_patch(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    text: str,
    what: str,
) -> None:
    path = tmp_path / "patch.yaml"
    path.write_text(text)
    monkeypatch.setattr(sys, "argv", ["controller", "--kubeconfig", str(tmp_path / "none")])
    for name, value in {"AGENT_IMAGE": "agent:1", "GATEWAY_URL": "http://gateway",
                        "NAMESPACES": "team", "POD_PATCH": str(path)}.items():  # fmt: skip
        monkeypatch.setenv(f"JUPYTER_TO_JOB_{name}", value)
    with pytest.raises(SystemExit):
        controller.main()
    assert what in capsys.readouterr().err
