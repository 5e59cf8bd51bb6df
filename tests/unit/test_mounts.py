"""Which of a dev pod's volumes its jobs mount: one row of the table is one pod."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from jupyter_to_job.backends.kubernetes.mounts import job_volumes, node_of, plan_mounts
from jupyter_to_job.backends.kubernetes.nodes import NodeNeeds, NodeRecord, node_record
from jupyter_to_job.flavors import parse_catalog

from ..volume_cases import CASES, CLAIM, HERE, HOME, THERE, VolumeCase


@pytest.mark.parametrize("name", CASES)
def test_a_volume_comes_along_or_stays_behind_with_a_reason(name: str) -> None:
    case = CASES[name]
    plan = case.plan()

    assert (HOME in plan.paths, plan.isolated) == (case.mounted, case.isolated)
    reasons = {left.path: left for left in plan.left_behind}
    assert (HOME in reasons) != case.mounted
    if not case.mounted:
        assert case.why in reasons[HOME].why
        assert str(reasons[HOME]).startswith(f"{HOME} stays behind: ")
        assert reasons[HOME].why.endswith(".")
        assert "`-" not in reasons[HOME].why, "the dialog shows it, too, which has no options"
        assert reasons[HOME].is_told == case.told
    assert "/secret" in reasons  # the dev pod's, whatever else it has


def test_paths_sub_paths_and_read_only_are_as_there() -> None:
    volumes, mounts = job_volumes(CASES["rwx-sub-path"].origin(), [HOME])
    assert volumes == [{"name": "dev-pod-1", **CLAIM}]
    assert mounts == [{"name": "dev-pod-1", "mountPath": HOME, "subPath": "users/ada"}]
    for name in ("rox", "rwx-read-only"):
        assert job_volumes(CASES[name].origin(), [HOME])[1][0]["readOnly"] is True
    assert "readOnly" not in job_volumes(CASES["rwx"].origin(), [HOME])[1][0]


def test_a_claim_that_can_only_be_read_is_mounted_to_be_read() -> None:
    case = VolumeCase(CLAIM, ("ReadOnlyMany",), mounted=True)
    assert case.plan().paths == (HOME,)
    assert job_volumes(case.origin(), [HOME])[1][0]["readOnly"] is True


def test_only_what_is_mounted_decides_on_the_node() -> None:
    origin = CASES["rwo-device-on-its-node"].origin()
    assert node_of(origin, [HOME]) == HERE.name
    assert node_of(origin, []) is None
    assert node_of(CASES["rwx"].origin(), [HOME]) is None


def mount(path: str, modes: tuple[str, ...], **more: Any) -> dict[str, Any]:
    return {
        "path": path,
        "sub_path": "",
        "read_only": False,
        "volume": path.strip("/"),
        "kind": "persistentVolumeClaim",
        "source": {"claimName": path.strip("/")},
        "claim": path.strip("/"),
        "claim_uid": f"{path}-uid",
        "access_modes": list(modes),
        **more,
    }


@pytest.mark.parametrize(
    ("folder", "isolated"),
    [
        ("/home", True),
        ("/home/private", True),
        ("/home/shared", False),
        ("/home/shared/deep", False),
        ("/home/shared2", True),
        ("/opt", True),
    ],
)
def test_the_deepest_mount_of_the_folder_decides(folder: str, isolated: bool) -> None:
    origin = {
        "node": "node-1",
        "mounts": [mount("/home", ("ReadWriteOnce",)), mount("/home/shared", ("ReadWriteMany",))],
    }
    plan = plan_mounts(origin, folder, [HERE, THERE])
    assert plan.isolated is isolated
    assert plan.paths == ("/home/shared",)  # data comes along in both cases


@pytest.mark.parametrize("path", ["/jupyter-to-job", "/jupyter-to-job/x", "/dev/shm"])
def test_nothing_hides_the_jobs_own_files(path: str) -> None:
    origin = {"node": None, "mounts": [mount(path, ("ReadWriteMany",))]}
    plan = plan_mounts(origin, "/home", None, has_shared_memory=True)
    assert plan.paths == ()
    assert "files of its own" in plan.left_behind[0].why


def test_a_pod_without_a_node_has_no_claim_of_one() -> None:
    origin = {"node": None, "mounts": [mount("/home", ("ReadWriteOnce",))]}
    assert plan_mounts(origin, "/home", []).isolated


CATALOG = parse_catalog(
    b"""
apiVersion: jupyter-to-job.io/v1
default: {flavor: small, device: cpu}
flavors:
  small: {devices: [cpu]}
  gpu: {gpus: 2, devices: [t4, tainted]}
  other: {gpus: 1, image: "own:1", devices: [t4]}
devices:
  cpu: {title: CPU}
  t4: {resource: nvidia.com/gpu, node_selector: {product: T4}}
  tainted:
    resource: nvidia.com/gpu
    tolerations: [{key: gpu, operator: Exists, effect: NoSchedule}, {key: team, value: a}]
""",
    "test",
)


def node(name: str, gpus: int = 0, *taints: dict[str, str], **labels: str) -> NodeRecord:
    return node_record(
        {
            "metadata": {"name": name, "uid": name, "labels": labels},
            "spec": {"taints": list(taints)},
            "status": {"capacity": {"nvidia.com/gpu": str(gpus), "odd": "?"}},
        }
    )


NO_GPU = node("no-gpu")
GPU = {"key": "gpu", "effect": "NoSchedule"}
NODES = [
    NO_GPU,
    node("one", 1, product="T4"),
    node("two", 2, product="T4"),
    node("four", 4, GPU, product="A100"),
    node("team", 4, GPU, {"key": "team", "value": "a", "effect": "NoExecute"}),
    node("rival", 4, {"key": "team", "value": "b", "effect": "NoSchedule"}),
    node("away", 4, {"key": "node.kubernetes.io/unreachable", "effect": "NoExecute"}),
    node("wish", 4, {"key": "rather-not", "effect": "PreferNoSchedule"}),
]


@pytest.mark.parametrize(
    ("flavor", "device", "names"),
    [
        ("small", "cpu", ["no-gpu", "one", "two", "away", "wish"]),
        ("gpu", "t4", ["two"]),
        ("gpu", "tainted", ["two", "four", "team", "away", "wish"]),
    ],
)
def test_the_nodes_that_have_a_device(flavor: str, device: str, names: list[str]) -> None:
    """A node that is away, or cordoned, may come back; one with another's taint never counts."""
    needs = NodeNeeds.of(CATALOG.choose(flavor, device))
    assert [n.name for n in needs.nodes(NODES)] == names


def test_the_dev_pods_image_runs_on_its_architecture_only() -> None:
    arm = node("arm", 2, **{"product": "T4", "kubernetes.io/arch": "arm64"})
    amd = node("amd", 2, **{"product": "T4", "kubernetes.io/arch": "amd64"})
    choices = CATALOG.choose("gpu", "t4"), CATALOG.choose("other", "t4")
    dev, own = (NodeNeeds.of(choice, "amd64").nodes([arm, amd]) for choice in choices)
    assert [n.name for n in dev] == ["amd"]
    assert [n.name for n in own] == ["arm", "amd"]  # its image is the catalog's
    assert NO_GPU.capacity == {"nvidia.com/gpu": Decimal(0)}
