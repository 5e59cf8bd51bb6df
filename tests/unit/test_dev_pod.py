"""What a job takes over of its dev pod: image, user and variables; and what its user is told."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from jupyter_to_job.backends.kubernetes import job_manifest
from jupyter_to_job.backends.kubernetes.mounts import LeftMount, MountPlan
from jupyter_to_job.controller.callers.dev_pod_problems import dev_pod_problems
from jupyter_to_job.controller.callers.identity import DevPod
from jupyter_to_job.controller.callers.origin import is_image_known, notebook_container, origin_of
from jupyter_to_job.controller.callers.variables import Variables
from jupyter_to_job.domain.errors import BadInput
from jupyter_to_job.flavors import SHIPPED, parse_catalog

from .test_manifest import DEV_POD, ORIGIN, PODS, REQUEST, REVIEW, notebook_of, pod_of

DIGEST = f"registry/notebook@sha256:{'a' * 64}"
KEY = {"name": "settings", "key": "region"}
ENV = [
    {"name": "LANG", "value": "C.UTF-8"},
    {"name": "LC_TIME", "value": "de_DE"},
    {"name": "CONDA_PREFIX", "value": "/opt/conda"},
    {"name": "https_proxy", "value": "http://proxy"},
    {"name": "REGION", "valueFrom": {"configMapKeyRef": KEY}},
    {"name": "TEAM", "valueFrom": {"configMapKeyRef": {"name": "other", "key": "team"}}},
    {"name": "DATA_ROOT", "value": "/data"},
    {"name": "DATA_KEY", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}},
    {"name": "JUPYTERHUB_USER", "value": "ada"},
    {"name": "JPY_API_TOKEN", "value": "secret"},
    {"name": "NODE", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}},
]
ENV_FROM = [
    {"configMapRef": {"name": "settings"}},
    {"configMapRef": {"name": "other"}},
    {"secretRef": {"name": "keys"}},
]


def taken(rules: str) -> Any:
    return Variables.parse(rules).of({"env": ENV, "envFrom": ENV_FROM})


def test_a_short_list_of_variables_comes_along() -> None:
    found = taken("")
    assert found["env"].keys() == {"LANG", "LC_TIME", "CONDA_PREFIX", "https_proxy"}
    assert (found["env_sources"], found["env_from"]) == ({}, [])
    assert found["env_dropped"] == [
        "REGION", "TEAM", "DATA_ROOT", "DATA_KEY", "NODE",
        "all of the ConfigMap settings", "all of the ConfigMap other", "all of the secret keys",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("value", "taken"),
    [
        ("/home/$(NB_USER)", "/home/ada"),
        ("$(NB_USER)-$(GREETING)", "ada-hello ada"),  # of a reference in a reference
        ("$$(NB_USER)", "$$(NB_USER)"),  # as the API has it: the kernel sees $(NB_USER)
        ("$(OPENING)NB_USER)", "$$(NB_USER)"),
        ("costs $5 (NB_USER)", "costs $$5 (NB_USER)"),
        ("$(NB_USER", "$$(NB_USER"),
        ("$(JUPYTERHUB_API_TOKEN)", None),
        ("$(COPY_OF_TOKEN)", None),
        ("$(DATA_KEY)", None),  # of a secret
        ("$(COMES_LATER)", None),
        ("$(NOWHERE)", None),
    ],
)
def test_a_variable_with_references_comes_along_as_it_was(value: str, taken: str | None) -> None:
    env = [
        {"name": "HOME", "value": "of an image"},
        {"name": "NB_USER", "value": "ada"},
        {"name": "GREETING", "value": "hello $(NB_USER)"},
        {"name": "OPENING", "value": "$$("},
        {"name": "JUPYTERHUB_API_TOKEN", "value": "secret"},
        {"name": "COPY_OF_TOKEN", "value": "$(JUPYTERHUB_API_TOKEN)"},
        {"name": "DATA_KEY", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}},
        {"name": "HOME", "value": value},
        {"name": "COMES_LATER", "value": "too late"},
    ]
    found = Variables.parse("HOME").of({"env": env})
    assert found["env"] == ({} if taken is None else {"HOME": taken})
    assert ("HOME" in found["env_dropped"]) == (taken is None)


def test_the_administrator_adds_to_it_but_no_secret() -> None:
    found = taken("DATA_*, TEAM, configmap/settings")
    assert found["env"]["DATA_ROOT"] == "/data"
    assert found["env_sources"] == {
        "REGION": {"configMapKeyRef": KEY},
        "TEAM": {"configMapKeyRef": {"name": "other", "key": "team"}},
    }
    assert found["env_from"] == [{"configMapRef": {"name": "settings"}}]
    assert found["env_dropped"] == [
        "DATA_KEY", "NODE", "all of the ConfigMap other", "all of the secret keys",
    ]  # fmt: skip


@pytest.mark.parametrize(
    "text", ["JUPYTERHUB_USER", "JPY_*", "J*", "*", "JUPYTERHUB*", "a b", "configmap/", "1x"]
)
def test_rules_that_are_refused(text: str) -> None:
    with pytest.raises(BadInput, match="JUPYTER_TO_JOB_VARIABLES"):
        Variables.parse(text)


def test_values_of_config_maps_are_references_in_the_job() -> None:
    origin = {**ORIGIN, **taken("DATA_*,configmap/settings")}
    notebook = notebook_of(job_manifest(REQUEST, origin, PODS))
    env = {entry.pop("name"): entry for entry in notebook["env"]}
    assert env["REGION"] == {"valueFrom": {"configMapKeyRef": KEY}}
    assert env["DATA_ROOT"] == {"value": "/data"}
    assert notebook["envFrom"] == [{"configMapRef": {"name": "settings"}}]


def origin(container: dict[str, Any] | None = None, **more: Any) -> Any:
    (first, sidecar) = DEV_POD["spec"]["containers"]
    spec = {**DEV_POD["spec"], "containers": [sidecar, {**first, **(container or {})}]}
    pod = {**DEV_POD, "spec": spec, **more}
    return origin_of(pod, REVIEW, notebook_container(pod, "notebook"), {})


@pytest.mark.parametrize(
    ("running", "image", "is_pinned"),
    [
        (DIGEST, DIGEST, True),
        (f"docker-pullable://{DIGEST}", DIGEST, True),
        (f"sha256:{'b' * 64}", "registry/notebook:1", False),  # no registry knows it
        ("", "registry/notebook:1", False),
    ],
)
def test_the_image_is_the_one_that_runs(running: str, image: str, is_pinned: bool) -> None:
    """A proxy may come first, and the tag may have moved."""
    statuses = [
        {"name": "sidecar", "imageID": f"other@sha256:{'c' * 64}"},
        {"name": "notebook", "imageID": running},
    ]
    found = origin(status={"containerStatuses": statuses})
    assert (found["image"], found["image_pinned"]) == (image, is_pinned)
    assert notebook_of(job_manifest(REQUEST, found, PODS))["image"] == image


def test_a_pod_that_just_began_is_asked_again_for_what_it_does_not_name() -> None:
    def is_known(image: str, context: dict[str, int], status: Any = None) -> bool:
        container = {"name": "notebook", "image": image}
        spec = {"nodeName": "here", "securityContext": context}
        return is_image_known({"spec": spec, "status": {"containerStatuses": status}}, container)

    assert not is_known("registry/notebook:1", {"runAsUser": 1001})
    assert not is_known(DIGEST, {"fsGroup": 100})
    assert is_known(DIGEST, {"runAsUser": 1001})
    assert is_known(DIGEST, {}, [{"name": "notebook", "state": {"running": {}}}])


@pytest.mark.parametrize(
    ("user", "context", "expected"),
    [
        ({"linux": {"uid": 1001, "gid": 50}}, {}, (1001, 50)),
        ({"linux": {"uid": 1001, "gid": 50}}, {"runAsGroup": 100}, (1001, 100)),
        ({"linux": {"uid": 1001, "gid": 50}}, {"runAsUser": 1000}, (1000, None)),
        ({"linux": {"uid": 1001, "gid": 0}}, {}, (1001, 0)),
        ({"linux": {"uid": 0, "gid": 0}}, {}, (None, None)),
        ({}, {}, (None, None)),  # of Windows
        (None, {}, (None, None)),  # of containerd before 2.0
    ],
)
def test_the_user_is_the_one_that_the_dev_pod_has(
    user: Any, context: dict[str, int], expected: tuple[int | None, int | None]
) -> None:
    """The image may have chosen it, and the agent's image another one."""
    status = {"name": "notebook", **({} if user is None else {"user": user})}
    pod = {**DEV_POD, "status": {"containerStatuses": [status]}}
    pod["spec"] = {**DEV_POD["spec"], "securityContext": {"fsGroup": 100}}
    container = {**notebook_container(pod, "notebook"), "securityContext": context}
    found = pod_of(job_manifest(REQUEST, origin_of(pod, REVIEW, container, {}), PODS))
    of_job = found["securityContext"]
    assert (of_job.get("runAsUser"), of_job.get("runAsGroup")) == expected


def test_an_image_that_is_named_by_its_digest_stays() -> None:
    assert origin({"image": DIGEST})["image"] == DIGEST
    assert origin({"image": DIGEST})["image_pinned"]


def test_the_architecture_is_that_of_the_dev_pods_node() -> None:
    found = {**ORIGIN, "architecture": "arm64"}
    assert pod_of(job_manifest(REQUEST, found, PODS))["nodeSelector"] == {
        "kubernetes.io/arch": "arm64"
    }
    assert "nodeSelector" not in pod_of(job_manifest(REQUEST, ORIGIN, PODS))


def test_selinux_options_are_taken_over() -> None:
    options = {"level": "s0:c1,c2"}
    found = origin({"securityContext": {"seLinuxOptions": options, "privileged": True}})
    context = pod_of(job_manifest(REQUEST, found, PODS))["securityContext"]
    assert context["seLinuxOptions"] == options
    assert "privileged" not in context


CHOICE = parse_catalog(SHIPPED.read_bytes(), "the shipped catalog").choose(None, None)


@pytest.mark.parametrize(
    ("changes", "codes"),
    [
        ({"image_pinned": True, "env_dropped": []}, []),
        ({"image_pinned": False, "env_dropped": []}, ["image_unpinned"]),
        ({"image_pinned": True}, ["variables_dropped"]),
        (
            {"image_pinned": True, "env_dropped": [], "security_context": {"runAsUser": 0}},
            ["runs_as_root"],
        ),
        (
            {"image_pinned": True, "env_dropped": [], "security_context": {}},
            ["user_unknown"],
        ),
    ],
)
def test_what_a_user_is_told_before_a_submission(changes: dict[str, Any], codes: list[str]) -> None:
    found = {**ORIGIN, "env_dropped": ["DATA_ROOT"], **changes}
    problems = list(dev_pod_problems(DevPod("ada", found), CHOICE, MountPlan()))
    assert [problem.code for problem in problems] == codes
    blocking = [c for c in codes if c in ("runs_as_root", "image_unpinned")]
    assert [p.code for p in problems if p.blocking] == blocking
    assert all(problem.hint for problem in problems)
    told = " ".join(f"{problem.message} {problem.hint}" for problem in problems)
    assert "`-" not in told, "the dialog shows it, too, which has no options"


def test_volumes_that_a_user_may_miss_are_told() -> None:
    left = (LeftMount("/home", "its claim is gone."), LeftMount("/tmp", "x.", is_told=False))
    origin = {**ORIGIN, "image_pinned": True, "env_dropped": []}
    (problem,) = dev_pod_problems(DevPod("ada", origin), CHOICE, MountPlan(left_behind=left))
    assert (problem.code, problem.blocking) == ("volume_left", False)
    assert problem.message == "/home stays behind: its claim is gone."


def test_workload_identity_goes_by_service_account_and_labels() -> None:
    """Clouds bind an identity to the account's name, and Azure asks for a label on the pod."""
    label = {"azure.workload.identity/use": "true"}
    review = replace(REVIEW, service_account="trainer")
    container = notebook_container(DEV_POD, "notebook")
    request = replace(REQUEST, flavor_spec={**REQUEST.flavor_spec, "labels": label})
    job = job_manifest(request, origin_of(DEV_POD, review, container, {}), PODS)
    assert pod_of(job)["serviceAccountName"] == "trainer"
    assert pod_of(job)["automountServiceAccountToken"] is False  # the cloud's webhook adds its own
    assert label.items() <= job["spec"]["template"]["metadata"]["labels"].items()
