"""The couriers for all kinds of claims are the ones in tests/golden/couriers."""

from __future__ import annotations

import pytest

from ..golden_couriers import FOLDER, courier, manifests
from ..golden_manifests import text_of

MANIFESTS = dict(manifests())


@pytest.mark.parametrize("name", MANIFESTS)
def test_it_is_as_it_was(name: str) -> None:
    """After a change that is meant: `scripts/manifests`, and look at the difference."""
    assert text_of(MANIFESTS[name]) == (FOLDER / name).read_text()


def test_there_is_no_other() -> None:
    assert {file.name for file in FOLDER.iterdir()} == set(MANIFESTS)


def test_it_mounts_what_the_dev_pod_does() -> None:
    pod = MANIFESTS["read-only.yaml"]["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    mount = container["volumeMounts"][0]
    assert mount == {"name": "courier-workspace", "mountPath": "/home/jovyan", "readOnly": True}
    assert pod["securityContext"]["runAsUser"] == 1000
    assert pod["securityContext"]["fsGroup"] == 100


@pytest.mark.parametrize(
    ("name", "selector"),
    [
        ("shared.yaml", {"kubernetes.io/os": "linux"}),
        ("shared-by-arm64.yaml", {"kubernetes.io/os": "linux", "kubernetes.io/arch": "arm64"}),
        ("on-the-node-of-its-claim.yaml", None),
    ],
)
def test_it_runs_where_its_image_does(name: str, selector: dict[str, str] | None) -> None:
    """A node of Windows may take it otherwise, or one of another processor than the dev pod's."""
    assert MANIFESTS[name]["spec"]["template"]["spec"].get("nodeSelector") == selector


def test_an_image_of_the_catalog_says_nothing_of_processors() -> None:
    """Agents ran beside that image, wherever it runs, and not on the dev pod's kind of node."""
    elsewhere = courier({}, architecture="arm64", device_spec={"image": "gpu:1"})
    selector = elsewhere["spec"]["template"]["spec"]["nodeSelector"]
    assert selector == {"kubernetes.io/os": "linux"}


def test_it_has_what_the_output_is_on() -> None:
    """The source may be on another volume: the result's folder is what counts."""
    elsewhere = courier({}, source="/data/train.ipynb", output="home/jovyan/results/")
    (container,) = elsewhere["spec"]["template"]["spec"]["containers"]
    assert container["volumeMounts"][0]["mountPath"] == "/home/jovyan"
