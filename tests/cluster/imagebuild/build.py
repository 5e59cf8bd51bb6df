"""`python -m tests.cluster.imagebuild.build`: builds images from a wheel and pinned versions.

- `controller` has our wheel and its extra `controller`: it is controller, agent and courier.
- `notebook` is the smallest dev pod and job pod: our wheel, ipykernel, papermill.
- `other-user` is `notebook` with another user than that of all other images.
- `single-user` is a dev pod with JupyterLab.
- `hub` is JupyterHub with KubeSpawner, and the dev pods of its users.
- `python` is Python alone, an image without our package.

Those with JupyterLab are built only if they are asked for: they take longer.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterable
from pathlib import Path

from tests.cluster.imagebuild import oci
from tests.cluster.imagebuild.containerfile import image_config
from tests.cluster.imagebuild.layers import CONTAINERFILES, Debian, Packages
from tests.cluster.imagebuild.uv import ROOT

REPOSITORY = "docker.io/jupyter-to-job"
EXTRAS = {
    "controller": ("controller",),
    "single-user": ("lab", "--group=single-user"),
    "hub": ("lab", "--group=single-user"),
}
"""Of the images with more than the wheel: its extra, and further options of uv."""
GROUPS = {"hub": "hub"}
USERS = {"other-user": "1001:100"}
"""Of the images whose user is not the Containerfiles' own."""
WITHOUT_LAB = ("controller", "notebook", "other-user", "python")
IMAGES = (*WITHOUT_LAB, "single-user", "hub")


def config_of(name: str, version: str) -> dict[str, object]:
    """Return an image's configuration: what its Containerfile says, if it has one."""
    shipped = name if (CONTAINERFILES / name).is_dir() else "single-user"
    config = image_config(CONTAINERFILES / shipped / "Containerfile", {"VERSION": version})
    if name == shipped:
        return config
    user = USERS.get(name, config["User"])
    return {**config, "Cmd": ["python3"], "Labels": {}, "User": user}


def build(wheel: Path, archive: Path, tag: str, names: Iterable[str] = WITHOUT_LAB) -> None:
    """Write the images of these names to `archive`, which appears when it is complete."""
    debian = Debian()
    packages = Packages(debian, wheel, ROOT / "requirements.lock")
    with tempfile.TemporaryDirectory(dir=archive.parent, prefix=".images-") as temporary:
        wheel_layer = packages.wheel(Path(temporary) / "wheel.tar")

        def layers(name: str) -> list[oci.Layer]:
            if name == "python":
                return [debian.layer()]
            extras = [packages.extra(*EXTRAS[name])] if name in EXTRAS else []
            groups = [packages.group(GROUPS[name], *EXTRAS[name])] if name in GROUPS else []
            return [debian.layer(), packages.dependencies(), *extras, *groups, wheel_layer]

        images = [
            oci.Image(f"{REPOSITORY}/{name}:{tag}", layers(name), config_of(name, packages.version))
            for name in names
        ]
        draft = Path(temporary) / "images.tar"
        oci.write_archive(draft, images)
        draft.rename(archive)


def main() -> None:
    """Read the command line and build."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.cluster.imagebuild.build", description=__doc__
    )
    parser.add_argument("--wheel", type=Path, required=True)
    parser.add_argument("--output", type=Path, required=True, help="the archive to write")
    parser.add_argument("--tag", default="dev")
    parser.add_argument(
        "--image", action="append", choices=IMAGES, help="all without JupyterLab by default"
    )
    options = parser.parse_args()
    names = options.image or WITHOUT_LAB
    build(options.wheel.resolve(), options.output.resolve(), options.tag, names)


if __name__ == "__main__":
    main()
