"""Our images, made from this checkout (or a wheel that the caller names) for the cluster."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

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
    python: str = f"docker.io/jupyter-to-job/python:{TAG}"


def build_images(archive: Path) -> Images:
    """Write both images to `archive`.

    The wheel is `$JUPYTER_TO_JOB_WHEEL`, else one built from the checkout without its front end,
    which no pod needs.
    """
    with tempfile.TemporaryDirectory(dir=archive.parent) as directory:
        given = os.environ.get("JUPYTER_TO_JOB_WHEEL")
        wheel = Path(given) if given else _build_wheel(Path(directory))
        subprocess.run(
            [
                *(
                    sys.executable,
                    "-m",
                    "tests.cluster.imagebuild.build",
                    f"--wheel={wheel}",
                    f"--tag={TAG}",
                ),
                *(f"--constraints={ROOT / 'requirements.lock'}", f"--output={archive}"),
            ],
            cwd=ROOT,
            check=True,
        )
    return Images()


def _build_wheel(directory: Path) -> Path:
    subprocess.run(
        [find_uv(), "build", "--wheel", "--quiet", "--out-dir", directory],
        cwd=ROOT,
        env={**os.environ, "HATCH_BUILD_NO_HOOKS": "true"},
        check=True,
    )
    return next(directory.glob("*.whl"))
