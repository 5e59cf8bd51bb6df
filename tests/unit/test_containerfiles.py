"""What is said more than once of images and versions is said alike; nothing is built here."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from jupyter_to_job import __version__

from ..cluster.imagebuild.build import config_of
from ..cluster.imagebuild.containerfile import instructions
from ..cluster.imagebuild.layers import CONTAINERFILES
from ..cluster.imagebuild.uv import ROOT

FILES = sorted(CONTAINERFILES.glob("*/Containerfile"))
NAMES = [file.parent.name for file in FILES]
K8S = ROOT / "k8s"


@pytest.mark.parametrize("name", NAMES)
def test_nobody_is_root(name: str) -> None:
    user, _, group = str(config_of(name, "1")["User"]).partition(":")
    assert int(user) > 0  # a number, as Kubernetes wants it for runAsNonRoot
    assert int(group) > 0


@pytest.mark.parametrize("name", NAMES)
def test_labels_say_what_it_is(name: str) -> None:
    labels: Any = config_of(name, "1.2.3")["Labels"]
    prefix = "org.opencontainers.image."
    assert labels.keys() == {prefix + n for n in ("title", "description", "licenses", "version")}
    assert labels[f"{prefix}version"] == "1.2.3"
    assert labels[f"{prefix}licenses"] == "BSD-3-Clause"


def test_the_controllers_image_starts_the_controller() -> None:
    deployment = yaml.safe_load((K8S / "base" / "controller.yaml").read_text())
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    assert container["command"] == config_of("controller", "1")["Entrypoint"]


def stages(file: Path) -> list[list[tuple[str, str]]]:
    """Return the instructions of each stage; what is before the first one is a stage, too."""
    found: list[list[tuple[str, str]]] = [[]]
    for instruction in instructions(file):
        if instruction[0] == "FROM":
            found.append([])
        found[-1].append(instruction)
    return found


def test_both_begin_alike() -> None:
    """So that builders make the layer with Python once."""
    first, second = (stages(file) for file in FILES)
    assert first[:2] == second[:2]


@pytest.mark.parametrize("file", FILES, ids=NAMES)
def test_it_is_built_with_the_uv_of_the_lock(file: Path) -> None:
    version = re.search(r"^UV_VERSION=(.+)$", (ROOT / "scripts" / "common.sh").read_text(), re.M)
    assert version is not None
    assert f"uv=={version[1]}" in file.read_text()


@pytest.mark.parametrize("file", FILES, ids=NAMES)
def test_a_build_is_sent_what_it_copies_and_no_more(file: Path) -> None:
    sent = file.with_name("Containerfile.dockerignore").read_text().splitlines()
    copied = {
        source
        for keyword, rest in instructions(file)
        if keyword == "COPY" and not rest.startswith("--from")
        for source in rest.split()[:-1]
    }
    assert sent[0] == "*"
    assert {line.removeprefix("!") for line in sent[1:]} == copied


def test_manifests_name_images_of_this_version() -> None:
    texts = [path.read_text() for path in K8S.rglob("*.yaml")]
    tags = [
        *re.findall(r"registry\.example\.org/jupyter-to-job/[\w-]+:([\w.]+)", "\n".join(texts)),
        yaml.safe_load((K8S / "site" / "kustomization.yaml").read_text())["images"][0]["newTag"],
        hub_values()["singleuser"]["image"]["tag"],
    ]
    assert len(tags) >= 3
    assert set(tags) == {__version__}


def hub_values() -> Any:
    """Return what is added to the values of a JupyterHub's chart."""
    return yaml.safe_load((K8S / "overlays" / "jupyterhub" / "values.yaml").read_text())
