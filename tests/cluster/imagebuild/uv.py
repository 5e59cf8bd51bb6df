"""Finds uv, which installs Python packages for another machine than this one."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]


def find_uv() -> str:
    """Return `$UV`, or uv on PATH, beside this Python, or in the checkout's tools.

    Raises FileNotFoundError.
    """
    if configured := os.environ.get("UV"):
        return configured
    folders = (Path(sys.executable).parent, ROOT / ".venv-tools" / "bin")
    path = os.pathsep.join([os.environ.get("PATH", os.defpath), *map(str, folders)])
    if program := shutil.which("uv", path=path):
        return program
    raise FileNotFoundError("uv is not on PATH (pip install uv), and $UV does not name it")
