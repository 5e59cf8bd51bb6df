"""Which Debian packages the cluster needs, and a clear word when some are missing."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

PACKAGE_LIST = Path(__file__).parent.parent / "packages.txt"


class MissingPackagesError(Exception):
    """Debian packages of `packages.txt` are not installed."""


def required() -> list[str]:
    """The names in `packages.txt`, without its comments."""
    lines = (line.partition("#")[0].strip() for line in PACKAGE_LIST.read_text().splitlines())
    return [line for line in lines if line]


def check() -> None:
    """Raise `MissingPackagesError`, naming what is missing and the command that installs it."""
    if shutil.which("dpkg-query") is None:
        raise MissingPackagesError(
            "the test cluster is built from Debian packages; no dpkg-query here"
        )
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
        raise MissingPackagesError(
            f"the test cluster needs: apt-get install --no-install-recommends {' '.join(missing)}"
        )
