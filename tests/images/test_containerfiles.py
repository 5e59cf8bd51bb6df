"""The images that administrators build are those that the test cluster runs.

Each Containerfile is built, and compared with the image of the test builder: all paths of Python
and below /usr/local, and so the distributions; user, variables, labels and command.
"""

from __future__ import annotations

import json
import tarfile
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.cluster.box.images import wheel_for
from tests.cluster.imagebuild.build import build
from tests.cluster.imagebuild.layers import CONTAINERFILES

from .buildah import HOUSE, Buildah, missing

pytestmark = [
    pytest.mark.skipif(bool(missing()), reason=missing()),
    pytest.mark.timeout(1800),
]
NAMES = sorted(file.parent.name for file in CONTAINERFILES.glob("*/Containerfile"))
EQUAL = "usr/local/", "usr/lib/python3"
"""Where both images have the same paths. Elsewhere debian:12-slim has more."""
OF_DEBIAN = "usr/local/man", f"usr/local/share/ca-certificates/{HOUSE.name}"
"""What is there nevertheless in the base image alone."""


@dataclass(frozen=True)
class Image:
    """An image's files and links, and the `config` of its OCI configuration."""

    paths: frozenset[str]
    config: Mapping[str, Any]

    def compared(self) -> set[str]:
        """Return the paths that are to be equal."""
        return {path for path in self.paths if path.startswith(EQUAL)} - set(OF_DEBIAN)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A wheel with the front end."""
    return wheel_for(tmp_path_factory.mktemp("wheel"), front_end=True)


@pytest.fixture(scope="module")
def buildah(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Buildah]:
    """A builder that has the base image."""
    with closing(Buildah(tmp_path_factory.mktemp("buildah"))) as made:
        made.make_base()
        yield made


@pytest.fixture(scope="module")
def archive(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The images as the test builder makes them."""
    made = tmp_path_factory.mktemp("archive") / "images.tar"
    build(wheel, made, "compared", NAMES)
    return made


def built_for_tests(archive: Path, name: str) -> Image:
    """Return what the test builder made. Links to its busybox stand for the base's programs."""
    with tarfile.open(archive) as tar:

        def blob(digest: str) -> Any:
            return tar.extractfile(f"blobs/sha256/{digest.removeprefix('sha256:')}")

        index = json.load(tar.extractfile("index.json") or pytest.fail("no index"))
        (manifest,) = (
            json.load(blob(entry["digest"]))
            for entry in index["manifests"]
            if f"/{name}:" in entry["annotations"]["io.containerd.image.name"]
        )
        paths = set()
        for layer in manifest["layers"]:
            with tarfile.open(fileobj=blob(layer["digest"])) as files:
                members = (member for member in files if not member.isdir())
                paths |= {m.name for m in members if m.linkname != "busybox"}
        config = json.load(blob(manifest["config"]["digest"]))["config"]
    return Image(frozenset(paths), config)


def built_by_administrators(buildah: Buildah, wheel: Path, name: str) -> Image:
    """Return what comes of the Containerfile."""
    version = wheel.name.split("-")[1]
    image = buildah.build(CONTAINERFILES / name / "Containerfile", wheel, version)
    tree = buildah.tree(image)
    paths = {
        str(path.relative_to(tree))
        for path in tree.rglob("*")
        if path.is_symlink() or not path.is_dir()
    }
    return Image(frozenset(paths), buildah.config(image))


@pytest.mark.parametrize("name", NAMES)
def test_it_is_what_the_cluster_runs(
    buildah: Buildah, archive: Path, wheel: Path, name: str
) -> None:
    ours, real = built_for_tests(archive, name), built_by_administrators(buildah, wheel, name)
    assert ours.compared() ^ real.compared() == set()
    assert any(path.endswith(".dist-info/METADATA") for path in ours.compared())
    lacking = ours.paths - real.paths
    assert {path for path in lacking if "busybox" not in path} == set()
    labels = {n: v for n, v in real.config["Labels"].items() if n != "io.buildah.version"}
    assert {**real.config, "Labels": labels} == ours.config
