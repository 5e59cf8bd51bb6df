"""What a machine must have for the box, and a clear word when something is missing."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from tests.cluster.box.slot import cgroup_hierarchies

PACKAGE_LIST = Path(__file__).parent.parent / "packages.txt"


class CannotRunError(Exception):
    """The box cannot run on this machine; the message says why, and what to do."""


def required() -> list[str]:
    """The names in `packages.txt`, without its comments."""
    lines = (line.partition("#")[0].strip() for line in PACKAGE_LIST.read_text().splitlines())
    return [line for line in lines if line]


def check() -> None:
    """Raise `CannotRunError` where the box cannot run."""
    if os.geteuid() != 0:
        raise CannotRunError("the test cluster needs root")
    if not cgroup_hierarchies("cgroup"):
        raise CannotRunError("the test cluster needs cgroup v1; this machine has only v2")
    _check_packages()


def _check_packages() -> None:
    if shutil.which("dpkg-query") is None:
        raise CannotRunError("the test cluster is built from Debian packages; no dpkg-query here")
    names = required()
    answer = subprocess.run(
        ["dpkg-query", "--show", "--showformat", "${Package} ${db:Status-Status}\n", *names],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,  # it names the unknown ones there; the status tells us too
        text=True,
        check=False,
    ).stdout
    installed = {
        line.partition(" ")[0] for line in answer.splitlines() if line.endswith(" installed")
    }
    if missing := [name for name in names if name not in installed]:
        raise CannotRunError(
            f"the test cluster needs: apt-get install --no-install-recommends {' '.join(missing)}"
        )
