"""Our images, made from this checkout (or a wheel that the caller names) for the cluster."""

from __future__ import annotations

import os
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from tests.cluster.imagebuild.build import build
from tests.cluster.imagebuild.uv import ROOT, find_uv

TAG = "test"


@dataclass(frozen=True)
class Images:
    """Names to put into manifests.

    A cluster that is not ours may have them under others: `JUPYTER_TO_JOB_NOTEBOOK_IMAGE` and
    `JUPYTER_TO_JOB_CONTROLLER_IMAGE` name them.
    """

    notebook: str = f"jupyter-to-job/notebook:{TAG}"
    controller: str = f"jupyter-to-job/controller:{TAG}"
    other_user: str = f"jupyter-to-job/other-user:{TAG}"
    python: str = f"docker.io/jupyter-to-job/python:{TAG}"


def build_images(archive: Path) -> Images:
    """Write all images but that with JupyterLab to `archive`.

    The wheel is `$JUPYTER_TO_JOB_WHEEL`, else one built from the checkout without its front end,
    which none of them needs.
    """
    with tempfile.TemporaryDirectory(dir=archive.parent) as directory:
        build(wheel_for(Path(directory), front_end=False), archive, TAG)
    return Images()


def build_single_user(archive: Path) -> str:
    """Write the image with JupyterLab and our front end to `archive`; return its name."""
    return _build_with_front_end(archive, "single-user")


def build_hub(archive: Path) -> str:
    """Write the image of JupyterHub and of its users' servers to `archive`; return its name."""
    return _build_with_front_end(archive, "hub")


def _build_with_front_end(archive: Path, name: str) -> str:
    with tempfile.TemporaryDirectory(dir=archive.parent) as directory:
        build(wheel_for(Path(directory), front_end=True), archive, TAG, [name])
    return f"jupyter-to-job/{name}:{TAG}"


def wheel_for(directory: Path, *, front_end: bool) -> Path:
    """Return the wheel that the caller names, else one built into a directory."""
    if given := os.environ.get("JUPYTER_TO_JOB_WHEEL"):
        return Path(given).absolute()
    without = {} if front_end else {"HATCH_BUILD_NO_HOOKS": "true"}
    subprocess.run(
        [find_uv(), "build", "--wheel", "--quiet", "--out-dir", directory],
        cwd=ROOT,
        env={**os.environ, **without},
        check=True,
    )
    return next(directory.glob("*.whl"))
