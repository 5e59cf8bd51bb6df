"""`python -m tests.cluster.imagebuild.build`: builds the images from a wheel and pinned versions.

`jupyter-to-job/notebook` is the image of dev pods and job pods: Python, ipykernel, papermill and
our wheel. `jupyter-to-job/controller` adds the packages that only controller and agent need.
`jupyter-to-job/python` is Python alone, an image without our package.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

from tests.cluster.imagebuild import oci
from tests.cluster.imagebuild.layers import GROUP, HOME, USER, Debian, Packages

REPOSITORY = "docker.io/jupyter-to-job"
CONFIG = {
    "User": f"{USER}:{GROUP}",
    "WorkingDir": f"/{HOME}",
    "Env": [
        "PATH=/usr/local/bin:/usr/bin:/bin",
        f"HOME=/{HOME}",
        "LANG=C.UTF-8",
        "SHELL=/bin/sh",
    ],
    "Cmd": ["python3"],
}


def build(wheel: Path, constraints: Path, archive: Path, tag: str) -> None:
    """Write the images to `archive`, which appears when it is complete."""
    debian = Debian()
    packages = Packages(debian, wheel, constraints)
    with tempfile.TemporaryDirectory(dir=archive.parent, prefix=".images-") as temporary:
        base = [debian.layer(), packages.dependencies()]
        wheel_layer = packages.wheel(Path(temporary) / "wheel.tar")
        notebook = oci.Image(f"{REPOSITORY}/notebook:{tag}", [*base, wheel_layer], CONFIG)
        layers = [*base, packages.controller(), wheel_layer]
        controller = oci.Image(f"{REPOSITORY}/controller:{tag}", layers, CONFIG)
        python = oci.Image(f"{REPOSITORY}/python:{tag}", base[:1], CONFIG)
        draft = Path(temporary) / "images.tar"
        oci.write_archive(draft, [notebook, controller, python])
        draft.rename(archive)


def main() -> None:
    """Read the command line and build."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.cluster.imagebuild.build", description=__doc__
    )
    parser.add_argument("--wheel", type=Path, required=True)
    parser.add_argument(
        "--constraints", type=Path, required=True, help="pinned versions (uv export)"
    )
    parser.add_argument("--output", type=Path, required=True, help="the archive to write")
    parser.add_argument("--tag", default="dev")
    options = parser.parse_args()
    build(
        options.wheel.resolve(),
        options.constraints.resolve(),
        options.output.resolve(),
        options.tag,
    )


if __name__ == "__main__":
    main()
