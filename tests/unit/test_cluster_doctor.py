"""What `doctor --cluster` finds, with a pretend API server; tests/cluster has the real one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from click.testing import CliRunner

from jupyter_to_job.cli.checks.cluster import gateway
from jupyter_to_job.cli.checks.cluster.api import ClusterApi
from jupyter_to_job.cli.checks.cluster.policies import NO_DEVICES, OWN_JOBS
from jupyter_to_job.cli.main import main

from ..pretend_api_server import (
    ACCOUNT,
    BINDINGS,
    CATALOG,
    CLAIM,
    GIB,
    K8S,
    NAMESPACE,
    OF_CONTROLLER,
    POLICIES,
    STATS,
    PretendApiServer,
    shipped,
)

AREAS = [
    "cluster", "controller", "versions", "namespaces", "rights", "policies", "catalog", "exchange",
    "clocks", "gateway",
]  # fmt: skip
Found = list[dict[str, str]]


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> PretendApiServer:
    """A cluster with a sound controller; the command line reaches it."""
    server = PretendApiServer()
    monkeypatch.setattr(ClusterApi, "connect", lambda _context=None: server)
    monkeypatch.setattr(gateway, "_INTERVAL", 0.01)
    return server


def doctor(*options: str) -> tuple[Found, int]:
    """Run it; return the findings, and the exit code."""
    import json

    ran = CliRunner().invoke(main, ["doctor", "--cluster", "--json", *options])
    assert ran.exception is None or isinstance(ran.exception, SystemExit), ran.exception
    return json.loads(ran.stdout), ran.exit_code


def faults(found: Found) -> dict[str, list[str]]:
    """Return the messages that are no ok, by area."""
    wrong: dict[str, list[str]] = {}
    for finding in found:
        if finding["level"] != "ok":
            assert finding["mend"], finding
            wrong.setdefault(finding["area"], []).append(finding["message"])
    wrong.get("policies", []).remove(f"There is no policy {NO_DEVICES.name}: {NO_DEVICES.without}.")
    return {area: messages for area, messages in wrong.items() if messages}


def test_a_sound_installation(server: PretendApiServer) -> None:
    found, code = doctor()
    assert faults(found) == {}
    assert code == 0
    assert list(dict.fromkeys(f["area"] for f in found)) == AREAS
    said = [f["message"] for f in found]
    assert "team: 1 dev pod, Pod Security restricted" in said
    assert "Device t4: 1 node, 2 nvidia.com/gpu" in said
    assert any(text.startswith("Device spot: no node now (") for text in said)
    assert "10 GiB of 20 GiB are free" in said
    assert "From team: It answers" in said
    assert server.created == {}


@pytest.mark.parametrize("numbers", [(0, 0), (4711, 2**64 - 1), (1000, 900)])
def test_enough_inodes(server: PretendApiServer, numbers: tuple[int, int]) -> None:
    """Some file systems have no number of them, and CephFS has -1 as free."""
    inodes, free = numbers
    server.set_free(10 * GIB, inodes=inodes, inodesFree=free)
    found, code = doctor()
    assert (faults(found), code) == ({}, 0)
    assert "10 GiB of 20 GiB are free" in [f["message"] for f in found]


def no_role(server: PretendApiServer) -> None:
    server.refuses = lambda a: (a["namespace"], a["resource"]) == ("team", "jobs")


def no_cluster_role(server: PretendApiServer) -> None:
    server.refuses = lambda a: a["resource"] == "nodes"


def no_counts(server: PretendApiServer) -> None:
    server.set_variable("JUPYTER_TO_JOB_DEVICE_COUNTS", "true")
    server.refuses = lambda a: (a["namespace"], a["resource"]) == ("", "pods")


def everywhere(server: PretendApiServer) -> None:
    server.set_variable("JUPYTER_TO_JOB_NAMESPACES", "*")
    server.refuses = lambda a: (a["namespace"], a["resource"], a["verb"]) == ("", "pods", "create")


def set_catalog(old: str, new: str) -> Callable[[PretendApiServer], None]:
    def spoil(server: PretendApiServer) -> None:
        assert old in CATALOG
        data = {"flavors.yaml": CATALOG.replace(old, new)}
        server.documents[f"{OF_CONTROLLER}/configmaps/flavors"] = {"data": data}

    return spoil


def tainted(server: PretendApiServer) -> None:
    taint = {"key": "kept", "effect": "NoSchedule"}
    server.documents["/api/v1/nodes/node-1"]["spec"] = {"taints": [taint]}
    set_catalog("devices: [t4, spot]", "devices: [t4, spot], queue: q")(server)


def reserving(server: PretendApiServer) -> None:
    """All cores of the node are the flavor's, and the node keeps some for the system."""
    status = server.documents["/api/v1/nodes/node-1"]["status"]
    status["allocatable"] = {**status["allocatable"], "cpu": "3920m"}
    set_catalog("small: {cpu: 1", "small: {cpu: 4")(server)


def test_a_queue_needs_kueue(server: PretendApiServer) -> None:
    set_catalog("devices: [cpu]", "devices: [cpu], queue: q")(server)
    (message,) = faults(doctor()[0])["catalog"]
    assert message.startswith("Kueue is not installed, and there is 1 flavor with a queue (small)")
    server.documents["/apis"]["groups"].append({"name": "kueue.x-k8s.io"})
    found, code = doctor()
    assert (faults(found), code) == ({}, 0)


def not_ready(server: PretendApiServer) -> None:
    waiting = {"reason": "ImagePullBackOff", "message": "no such image"}
    server.pod["status"] = {
        "phase": "Pending",
        "containerStatuses": [{"name": "controller", "state": {"waiting": waiting}}],
    }


def refused(server: PretendApiServer) -> None:
    message = "pods 'controller-6f' is forbidden: quota"
    condition = {"type": "ReplicaFailure", "status": "True", "message": message}
    server.deployment["status"] = {"conditions": [condition]}
    del server.documents[f"{OF_CONTROLLER}/pods/controller-1"]


def drop(path: str) -> Callable[[PretendApiServer], object]:
    return lambda server: server.documents.pop(path)


def claim(**changes: Any) -> Callable[[PretendApiServer], None]:
    def spoil(server: PretendApiServer) -> None:
        for part, values in changes.items():
            server.documents[CLAIM][part] = {**server.documents[CLAIM][part], **values}

    return spoil


def no_claim(server: PretendApiServer) -> None:
    volume = server.deployment["spec"]["template"]["spec"]["volumes"][0]
    volume.update(emptyDir={})
    del volume["persistentVolumeClaim"]


def says(level: str, message: str) -> Callable[[PretendApiServer], None]:
    def spoil(server: PretendApiServer) -> None:
        finding = {"area": "gateway", "level": level, "message": message, "mend": "Look."}
        server.says = [finding]

    return spoil


def clock(ahead: float) -> Callable[[PretendApiServer], None]:
    return lambda server: server.clocks.update({server.health: ahead})


OWN = f"jupyter-to-job-{'own-jobs'}"
NO_T4 = "No node has the device t4: "
CASES: dict[str, tuple[Callable[[PretendApiServer], object], str, str]] = {
    "a missing Role": (
        no_role, "rights", "In team the controller may not: get jobs, list jobs, watch jobs, ",
    ),
    "a missing ClusterRole": (
        no_cluster_role, "rights", "In the whole cluster the controller may not: list nodes, watch",
    ),
    "a right in all namespaces": (
        everywhere, "rights", "In all namespaces the controller may not: create pods.",
    ),
    "a right to count devices": (no_counts, "rights", "It may not list and watch all pods"),
    "a namespace that is not there": (
        drop("/api/v1/namespaces/team"), "namespaces", "There is no namespace team, which ",
    ),
    "a namespace that nobody serves": (
        lambda server: server.add_namespace("forgotten"), "namespaces",
        "The controller has rights in forgotten, and does not serve",
    ),
    "no Pod Security": (
        lambda server: server.add_namespace("team", level=""), "namespaces",
        "team (1 dev pod) enforces no Pod Security",
    ),
    "no policy": (drop(f"{POLICIES}/{OWN}"), "policies", f"There is no policy {OWN}: whoever"),
    "a policy without its binding": (
        drop(f"{BINDINGS}/{OWN}"), "policies", f"No binding makes {OWN} deny anything: whoever",
    ),
    "another label": (
        set_catalog("product: T4", "product: A100"), "catalog",
        f"{NO_T4}no such node has the label product=A100, but T4.",
    ),
    "a label that no node has": (
        set_catalog("product: T4", "card: T4"), "catalog",
        f"{NO_T4}no such node has the label card=T4 at all.",
    ),
    "a resource that no node has": (
        set_catalog("t4: {resource: nvidia.com/gpu,", "t4: {resource: amd.com/gpu,"), "catalog",
        f"{NO_T4}no node has amd.com/gpu.",
    ),
    "limits that nobody reports": (
        set_catalog("t4: {resource: nvidia.com/gpu,", "t4: {limits: {example.org/share: 1},"),
        "catalog", f"{NO_T4}no node reports any of example.org/share.",
    ),
    "a taint": (tainted, "catalog", f"{NO_T4}its nodes have taints that it does not tolerate"),
    "a flavor that is too large": (
        set_catalog("small: {cpu: 1", "small: {cpu: 64"), "catalog",
        "Flavor small fits no node: This flavor asks for 64 CPUs",
    ),
    "a flavor of all that a node has": (
        reserving, "catalog",
        "Flavor small fits no node: This flavor asks for 4 CPUs, and no node with CPU has over 3.9",
    ),
    "a flavor of more disk than a node has": (
        set_catalog("small: {cpu: 1", "small: {ephemeral_storage: 500Gi, cpu: 1"), "catalog",
        "Flavor small fits no node: This flavor asks for 500 GiB of ephemeral storage",
    ),
    "a fault of the catalog": (
        set_catalog("devices: [cpu]", "devices: [cpux]"), "catalog",
        "/etc/jupyter-to-job/flavors.yaml:5:42: There is no device `cpux`.",
    ),
    "a claim without a volume": (
        claim(status={"phase": "Pending"}), "exchange",
        "The claim exchange is Pending, of the storage class fast (disk.example).",
    ),
    "a storage class that is not there": (
        claim(status={"phase": "Pending"}, spec={"storageClassName": "slow"}), "exchange",
        "The claim exchange is Pending: there is no storage class slow.",
    ),
    "a shared volume": (
        claim(status={"accessModes": ["ReadWriteMany"]}), "exchange", "The claim exchange is bound",
    ),
    "no claim": (no_claim, "exchange", "The exchange is on no volume claim"),
    "no room": (lambda server: server.set_free(GIB // 2), "exchange", "Only 512 MiB of 20 GiB"),
    "little room": (lambda server: server.set_free(GIB + 1), "exchange", "Only 1 GiB of 20 GiB"),
    "hardly an inode": (
        lambda server: server.set_free(10 * GIB, inodes=1000, inodesFree=40), "exchange",
        "Only 10 GiB of 20 GiB and 40 of 1000 inodes are free: no job can be submitted.",
    ),
    "few inodes": (
        lambda server: server.set_free(10 * GIB, inodes=1000, inodesFree=60), "exchange",
        "Only 10 GiB of 20 GiB and 60 of 1000 inodes are free.",
    ),
    "a pod that waits": (
        not_ready, "controller", "controller-1 is not ready: ImagePullBackOff: no such image.",
    ),
    "a pod that is refused": (
        refused, "controller", "The controller has no pod: pods 'controller-6f' is forbidden: ",
    ),
    "another version": (
        lambda server: server.documents[server.health].update(version="9.9.0"), "versions",
        "The controller has version 9.9.0; here is ",
    ),
    "another image of agents": (
        lambda server: server.set_variable("JUPYTER_TO_JOB_AGENT_IMAGE", "agent:1"), "versions",
        "The agents' image is agent:1, and the controller's is ",
    ),
    "an old Kubernetes": (
        lambda server: server.documents["/version"].update(minor="29+"), "versions",
        "Kubernetes v1.34.4 has no ValidatingAdmissionPolicy",
    ),
    "a clock that is ahead": (clock(7), "clocks", "The controller is 7 s ahead of the API server."),
    "a clock that is behind": (clock(-99), "clocks", "The controller is 99 s behind the API "),
    "a node's clock": (
        lambda server: server.add_lease("node-1", 20), "clocks", "The node node-1 is 20 s ahead of",
    ),
    "a gateway that is not reached": (
        says("problem", "It cannot be reached."), "gateway", "From team: It cannot be reached.",
    ),
    "a pod that cannot ask": (
        lambda server: setattr(server, "says", "Traceback\nNo module named jupyter_to_job\n"),
        "gateway", "In team the pod that was to try the gateway failed. It said: No module named",
    ),
    "what the administrator may not ask": (
        lambda server: server.forbidden.add("/api/v1/nodes"), "catalog", "Not checked: Kubernetes",
    ),
    "free space that nobody tells": (
        lambda server: server.forbidden.add(STATS), "exchange",
        "How much of it is free is not known",
    ),
    "a pod that nobody may start": (
        lambda server: server.forbidden.add("/api/v1/namespaces/team/pods"), "gateway",
        "No pod could be started in team, so the gateway was not tried",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("spoil", "area", "message"), CASES.values(), ids=CASES)
def test_what_is_wrong_is_named_with_its_remedy(
    server: PretendApiServer, spoil: Callable[[PretendApiServer], object], area: str, message: str
) -> None:
    spoil(server)
    found, code = doctor()
    wrong = faults(found)
    assert any(text.startswith(message) for text in wrong.get(area, [])), wrong
    assert code == (1 if any(f["level"] == "problem" for f in found) else 0)
    assert server.created == {}  # no pod is left behind


def test_the_shipped_catalog_knows_the_usual_taint_of_gpu_nodes(server: PretendApiServer) -> None:
    text = (K8S / "site" / "flavors.yaml").read_text()
    server.documents[f"{OF_CONTROLLER}/configmaps/flavors"] = {"data": {"flavors.yaml": text}}
    has = {"cpu": "4", "memory": "16Gi"}
    gpus = {**has, "nvidia.com/gpu": "1"}
    taint = {"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}
    for name, amounts, taints in (("plain", has, []), ("node-1", gpus, [taint])):
        server.documents[f"/api/v1/nodes/{name}"] = {
            "metadata": {"name": name, "uid": name},
            "spec": {"taints": taints},
            "status": {"capacity": amounts, "allocatable": amounts},
        }
    found, _ = doctor()
    assert "catalog" not in faults(found)
    assert "Device nvidia: 1 node, 1 nvidia.com/gpu" in [f["message"] for f in found]


def test_labels_that_it_names_replace_other_values(server: PretendApiServer) -> None:
    server.add_namespace("team", level="privileged")
    of_policy = shipped("policies/no-devices.yaml")
    server.documents[f"{POLICIES}/{NO_DEVICES.name}"] = of_policy["ValidatingAdmissionPolicy"]
    binding = of_policy["ValidatingAdmissionPolicyBinding"]
    server.documents[f"{BINDINGS}/{NO_DEVICES.name}"] = binding
    mends = [f["mend"] for f in doctor()[0] if "kubectl label" in f["mend"]]
    labels = ["pod-security.kubernetes.io/enforce=baseline", "jupyter-to-job.io/dev-pods=true"]
    for mend, label in zip(mends, labels, strict=True):
        assert mend.startswith(f"kubectl label --overwrite namespace team {label}")


def test_where_all_namespaces_are_served(server: PretendApiServer) -> None:
    """Those with our label are for dev pods: the policy is for them, and so is Pod Security."""
    server.set_variable("JUPYTER_TO_JOB_NAMESPACES", "*")
    of_policy = shipped("policies/no-devices.yaml")
    server.documents[f"{POLICIES}/{NO_DEVICES.name}"] = of_policy["ValidatingAdmissionPolicy"]
    binding = of_policy["ValidatingAdmissionPolicyBinding"]
    server.documents[f"{BINDINGS}/{NO_DEVICES.name}"] = binding
    (fault,) = (f for f in doctor()[0] if f["level"] != "ok")
    assert fault["message"] == f"{NO_DEVICES.name} reaches no namespace: {NO_DEVICES.without}."
    assert "namespace NAME jupyter-to-job.io/dev-pods=true" in fault["mend"]
    labels = server.documents["/api/v1/namespaces/team"]["metadata"]["labels"]
    labels["jupyter-to-job.io/dev-pods"] = "true"
    found, code = doctor()
    assert ([f for f in found if f["level"] != "ok"], code) == ([], 0)
    said = [f["message"] for f in found]
    assert f"{NO_DEVICES.name} is in force" in said
    assert "team: 1 dev pod, Pod Security restricted" in said
    del labels["pod-security.kubernetes.io/enforce"]
    (fault,) = (f for f in doctor()[0] if f["level"] != "ok")
    assert fault["message"].startswith("team (1 dev pod) enforces no Pod Security")


def test_only_what_is_wrong_is_told(server: PretendApiServer) -> None:
    """Of one fault the other checks say nothing, where they do not depend on it."""
    no_role(server)
    assert set(faults(doctor()[0])) == {"rights"}


def test_the_controller_asks_for_itself(server: PretendApiServer) -> None:
    """In its own pod it may not ask for others, and does not have to."""
    server.user = ACCOUNT
    server.forbidden.add("/apis/authorization.k8s.io/v1/subjectaccessreviews")
    assert faults(doctor()[0]) == {}


def test_a_pod_that_does_not_start(
    server: PretendApiServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gateway, "SECONDS", 0.05)
    server.trial_phase = "Pending"
    (message,) = faults(doctor()[0])["gateway"]
    assert message.startswith("In team the pod that was to try the gateway did not run within")
    assert server.created == {}


def test_no_controller(server: PretendApiServer) -> None:
    del server.documents[f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments/controller"]
    found, code = doctor("-n", "jupyter-to-job")
    assert [f["area"] for f in found] == ["cluster"]
    assert (found[0]["level"], code) == ("problem", 1)
    assert "There is no controller in the namespace 'jupyter-to-job'." in found[0]["message"]


def test_without_the_client(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "kubernetes", None)
    (finding,), code = doctor()
    assert (finding["message"], code) == ("The Kubernetes client is not installed here.", 1)
    assert finding["mend"] == "python -m pip install 'jupyter-to-job[controller]'"


@pytest.mark.parametrize("options", [["--fix", "--cluster"], ["-n", "x"], ["--context", "x"]])
def test_options_of_one_side_only(options: list[str]) -> None:
    ran = CliRunner().invoke(main, ["doctor", *options])
    assert ran.exit_code == 2
    assert "--cluster" in ran.stderr


def test_every_policy_that_we_ship_is_checked() -> None:
    files = [path.name for path in (K8S / "policies").glob("*.yaml")]
    names = {
        shipped(f"policies/{file}")["ValidatingAdmissionPolicy"]["metadata"]["name"]
        for file in files
        if file != "kustomization.yaml"
    }
    assert OWN_JOBS.name in names
    assert names <= {OWN_JOBS.name, NO_DEVICES.name}
