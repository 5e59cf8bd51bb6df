"""Finds uv, which installs Python packages for a machine that need not be this one."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def find_uv() -> str:
    """`$UV`, or uv on PATH, beside this Python, or in the checkout's tools; raises if none is."""
    if given := os.environ.get("UV"):
        return given
    beside = (Path(sys.executable).parent, ROOT / ".venv-tools" / "bin")
    path = os.pathsep.join([os.environ.get("PATH", os.defpath), *map(str, beside)])
    if found := shutil.which("uv", path=path):
        return found
    raise FileNotFoundError("uv is not on PATH (pip install uv), and $UV does not name it")
