"""The working directory of a run: the source's own folder, or a scratch copy of its inputs.

A scratch folder keeps the workspace's layout; files that the run made or changed there come back
as artifacts (`artifacts`).
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path, PurePosixPath
from typing import Any

from ..diagnosis.endings import no_folder
from ..protocol import layout


def working_directory(job_dir: Path, attempt_dir: Path, request: dict[str, Any]) -> Path:
    """Return the kernel's working directory, made ready. Raises RunFailed if it is gone."""
    if request.get("cwd") and not request.get("isolated"):
        cwd = Path(request["cwd"])
        if not cwd.is_dir():
            raise no_folder(cwd)
        return cwd
    root = attempt_dir / layout.SCRATCH
    root.mkdir(mode=0o700)
    _copy(job_dir / layout.INPUTS, root)
    folder = root / PurePosixPath(request["notebook"]).parent
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _copy(source: Path, target: Path) -> None:
    """Copy a folder's files. Unlike `copytree`, raises the error as it was: a full disk says so."""
    for base, _, names in os.walk(source):
        folder = target / Path(base).relative_to(source)
        folder.mkdir(mode=0o700, exist_ok=True)
        for name in names:
            shutil.copy2(Path(base, name), folder / name)
