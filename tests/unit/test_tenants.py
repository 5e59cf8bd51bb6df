"""The administrator's rules: whose a dev pod is, and where its paths lead."""

from __future__ import annotations

from typing import Any

import pytest

from jupyter_to_job.controller.callers.origin import notebook_container, origin_of
from jupyter_to_job.controller.callers.tenants import OwnerRule, Tenants, parse_namespaces
from jupyter_to_job.controller.callers.volumes import VolumePath, volume_path
from jupyter_to_job.controller.cluster.cluster import Review
from jupyter_to_job.domain.errors import BadInput, Refused
from jupyter_to_job.wiring import Settings

from ..pretend_cluster import tenants

REVIEW = Review("team", "hub", "jupyter-ada", "pod-uid")
CLAIMS = {
    "home-ada": {"metadata": {"uid": "ada-uid"}, "spec": {"accessModes": ["ReadWriteOnce"]}},
    "shared": {"metadata": {"uid": "shared-uid"}, "spec": {"accessModes": ["ReadWriteMany"]}},
}
MOUNTS: list[dict[str, Any]] = [
    {"name": "home", "mountPath": "/home/jovyan/"},
    {"name": "shared", "mountPath": "/home/jovyan/data", "subPath": "teams/a/", "readOnly": True},
    {"name": "users", "mountPath": "/users", "subPathExpr": "home/$(USER)"},
    {"name": "secret", "mountPath": "/etc/secret"},
    {"name": "late", "mountPath": "/late", "subPathExpr": "$(NODE)/x"},
    {"name": "lost", "mountPath": "/lost"},
]
VOLUMES: list[dict[str, Any]] = [
    {"name": "home", "persistentVolumeClaim": {"claimName": "home-ada"}},
    {"name": "shared", "persistentVolumeClaim": {"claimName": "shared"}},
    {"name": "users", "persistentVolumeClaim": {"claimName": "shared", "readOnly": True}},
    {"name": "secret", "secret": {"secretName": "s"}},
    {"name": "late", "persistentVolumeClaim": {"claimName": "shared"}},
    {"name": "lost", "persistentVolumeClaim": {"claimName": "never-made"}},
]


def dev_pod(mounts: list[dict[str, Any]] | None = None, **metadata: Any) -> dict[str, Any]:
    container = {
        "name": "notebook",
        "image": "notebook:1",
        "env": [
            {"name": "USER", "value": "ada"},
            {"name": "NODE", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}},
        ],
        "volumeMounts": MOUNTS if mounts is None else mounts,
    }
    return {"metadata": metadata, "spec": {"containers": [container], "volumes": VOLUMES}}


def origin(pod: dict[str, Any]) -> dict[str, Any]:
    return origin_of(pod, REVIEW, pod["spec"]["containers"][0], CLAIMS)


def owner(rule: str, pod: dict[str, Any], scope: str = "namespace") -> str:
    return tenants(rule, owner_scope=scope).owner(pod, origin(pod))


HOME, USERS = MOUNTS[0], MOUNTS[2]


@pytest.mark.parametrize(
    ("rule", "pod", "name"),
    [
        ("annotation=hub/user", dev_pod(annotations={"hub/user": "Ada L."}), "Ada L."),
        ("label=user", dev_pod(labels={"user": "ada"}), "ada"),
        (" label = user ", dev_pod(labels={"user": "ada"}), "ada"),
        ("serviceaccount", dev_pod(), "hub"),
        ("claim=/home/jovyan", dev_pod(), "home-ada"),
        ("claim=/home/jovyan/", dev_pod(), "home-ada"),
        ("claim=/home/jovyan/work", dev_pod(), "home-ada"),
        ("claim=/home/jovyan/data", dev_pod(), "shared/teams/a"),
        ("claim=/users", dev_pod(), "shared/home/ada"),
        ("claim", dev_pod([HOME, MOUNTS[3]]), "home-ada"),
        ("claim", dev_pod([USERS]), "shared/home/ada"),
    ],
)
def test_whose_a_pod_is(rule: str, pod: dict[str, Any], name: str) -> None:
    assert owner(rule, pod) == f"team/{name}"
    assert owner(rule, pod, "cluster") == name


@pytest.mark.parametrize(
    ("rule", "pod"),
    [
        ("annotation=hub/user", dev_pod()),
        ("annotation=hub/user", dev_pod(annotations={"hub/user": " "})),
        ("label=user", dev_pod(annotations={"user": "ada"})),
        ("claim=/etc", dev_pod()),
        ("claim=/etc/secret", dev_pod()),
        ("claim=/home", dev_pod()),
        ("claim=/late", dev_pod()),
        ("claim", dev_pod()),
        ("claim", dev_pod([])),
    ],
)
def test_a_pod_that_does_not_say_whose_it_is(rule: str, pod: dict[str, Any]) -> None:
    with pytest.raises(Refused, match="does not say whose it is") as caught:
        owner(rule, pod)
    assert "JUPYTER_TO_JOB_OWNER_RULE" in caught.value.hint


def test_the_default_account_of_every_namespace_is_not_one_owner() -> None:
    pod = dev_pod()
    here = origin(pod) | {"service_account": "default"}
    assert tenants("serviceaccount").owner(pod, here) == "team/default"
    with pytest.raises(Refused, match="names nobody"):
        tenants("serviceaccount", owner_scope="cluster").owner(pod, here)


@pytest.mark.parametrize(
    "text",
    ["", "hub", "annotation", "annotation=", "label= ", "serviceaccount=x", "claim=home", "claim=",
     "Annotation=x"],
)  # fmt: skip
def test_a_rule_that_does_not_exist(text: str) -> None:
    with pytest.raises(BadInput, match="is no rule") as caught:
        OwnerRule.parse(text)
    assert "annotation=KEY" in caught.value.hint


def test_namespaces() -> None:
    assert parse_namespaces(" team, other,,") == {"team", "other"}
    assert parse_namespaces("*") == {"*"}
    Tenants(parse_namespaces("*"), OwnerRule("serviceaccount")).require_namespace("any")
    with pytest.raises(Refused, match="elsewhere may not submit"):
        tenants().require_namespace("elsewhere")


@pytest.mark.parametrize("text", ["", " , ", "team,*", "Team", "a b", "-a", "a" * 64, "a.b"])
def test_no_list_of_namespaces(text: str) -> None:
    with pytest.raises(BadInput, match="JUPYTER_TO_JOB_NAMESPACES"):
        parse_namespaces(text)


def test_groups_are_those_of_the_annotation_that_the_admin_names() -> None:
    pod = dev_pod(annotations={"hub/groups": " research ,staff,", "groups": "admin"})
    assert tenants(groups_annotation="hub/groups").groups(pod) == {"research", "staff"}
    assert tenants().groups(pod) == frozenset()
    assert tenants(groups_annotation="hub/groups").groups(dev_pod()) == frozenset()


def test_the_rules_come_from_the_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    values = {
        "NAMESPACES": "a,b", "OWNER_RULE": "claim=/home", "OWNER_SCOPE": "cluster",
        "GROUPS_ANNOTATION": "groups", "CONTAINER": "jupyter", "UNPINNED_IMAGES": "true",
    }  # fmt: skip
    for name, value in values.items():
        monkeypatch.setenv(f"JUPYTER_TO_JOB_{name}", value)
    rule = OwnerRule("claim", "/home")
    expected = Tenants(frozenset("ab"), rule, "cluster", "groups", "jupyter", unpinned_images=True)
    assert Tenants.from_settings(Settings.load()) == expected


@pytest.mark.parametrize(
    ("names", "found"),
    [
        (["notebook"], "notebook"),
        (["sidecar", "notebook"], "notebook"),
        (["istio-proxy", "jupyter"], "jupyter"),
        (["jupyter", "oauth-proxy", "vault-agent"], "jupyter"),
        (["jupyter", "metrics"], None),
        (["istio-proxy"], None),
    ],
)
def test_the_container_with_the_notebooks(names: list[str], found: str | None) -> None:
    pod = {"spec": {"containers": [{"name": name} for name in names]}}
    if found is not None:
        assert notebook_container(pod, "notebook")["name"] == found
        return
    with pytest.raises(Refused, match=", ".join(names)) as caught:
        notebook_container(pod, "notebook")
    assert "JUPYTER_TO_JOB_CONTAINER" in caught.value.hint


def test_mounts_in_origin() -> None:
    mounts = {mount["path"]: mount for mount in origin(dev_pod())["mounts"]}
    assert mounts["/home/jovyan/data"] == {
        "path": "/home/jovyan/data",
        "sub_path": "teams/a",
        "read_only": True,
        "volume": "shared",
        "kind": "persistentVolumeClaim",
        "source": {"claimName": "shared"},
        "claim": "shared",
        "claim_uid": "shared-uid",
        "access_modes": ["ReadWriteMany"],
    }
    assert mounts["/etc/secret"]["source"] is None
    assert mounts["/users"]["sub_path"] == "home/ada"
    assert mounts["/users"]["read_only"] is True
    assert mounts["/home/jovyan"]["read_only"] is False
    assert (mounts["/etc/secret"]["kind"], mounts["/etc/secret"]["claim"]) == ("secret", None)
    assert mounts["/late"]["sub_path"] is None  # only the kubelet knows it
    assert (mounts["/lost"]["claim"], mounts["/lost"]["claim_uid"]) == ("never-made", None)


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/home/jovyan/a.ipynb", VolumePath("ada-uid", "/a.ipynb", is_claim=True)),
        ("home/jovyan", VolumePath("ada-uid", "/", is_claim=True)),
        ("/home/jovyan/data/x", VolumePath("shared-uid", "/teams/a/x", is_claim=True)),
        ("/home/jovyan/data/../x", VolumePath("ada-uid", "/x", is_claim=True)),
        ("/home/jovyan/database", VolumePath("ada-uid", "/database", is_claim=True)),
        ("/home/jovyanne/x", VolumePath("pod-uid", "/home/jovyanne/x", is_claim=False)),
        ("/users/x", VolumePath("shared-uid", "/home/ada/x", is_claim=True)),
        ("/late/x", VolumePath("pod-uid", "/late/x", is_claim=False)),
        ("/lost/x", VolumePath("pod-uid", "/lost/x", is_claim=False)),
        ("/etc/secret/x", VolumePath("pod-uid", "/etc/secret/x", is_claim=False)),
        ("/tmp/x", VolumePath("pod-uid", "/tmp/x", is_claim=False)),
    ],
)
def test_where_a_path_leads(path: str, expected: VolumePath) -> None:
    assert volume_path(origin(dev_pod()), path) == expected
