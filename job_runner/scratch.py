"""Where a run works: the source's own folder, or a scratch copy of its inputs.

A scratch folder keeps the workspace's layout; files that the run made or changed there come back
as artifacts.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path, PurePosixPath
from typing import Any

from .protocol import layout
from .reasons import End, Exit, RunFailed

_SCRATCH = "work"


def working_directory(job_dir: Path, attempt_dir: Path, request: dict[str, Any]) -> Path:
    """Return the kernel's working directory, made ready. Raises RunFailed if it is gone."""
    if _in_place(request):
        cwd = Path(request["cwd"])
        if not cwd.is_dir():
            message = f"The notebook's folder {cwd} is not there any more."
            raise RunFailed(End("BadNotebook", message, Exit.WRONG_CALL))
        return cwd
    root = attempt_dir / _SCRATCH
    root.mkdir(mode=0o700)
    if (job_dir / layout.INPUTS).is_dir():
        shutil.copytree(job_dir / layout.INPUTS, root, dirs_exist_ok=True)
    folder = root / PurePosixPath(request["notebook"]).parent
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def collect_artifacts(attempt_dir: Path, request: dict[str, Any], job_dir: Path) -> None:
    """Move what an isolated run made or changed to the artifacts; drop the rest."""
    root = attempt_dir / _SCRATCH
    if _in_place(request) or not root.is_dir():
        return
    for base, _, names in os.walk(root):
        for name in names:
            path = Path(base, name)
            relative = path.relative_to(root)
            if path.is_symlink() or not path.is_file() or _unchanged(path, job_dir, relative):
                continue
            target = attempt_dir / layout.ARTIFACTS / relative
            target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            path.rename(target)
    shutil.rmtree(root, ignore_errors=True)


def _in_place(request: dict[str, Any]) -> bool:
    return bool(request.get("cwd")) and not request.get("isolated")


def _unchanged(path: Path, job_dir: Path, relative: Path) -> bool:
    source = job_dir / layout.INPUTS / relative
    if "__pycache__" in relative.parts:
        return True
    if not source.is_file() or source.stat().st_size != path.stat().st_size:
        return False
    return source.read_bytes() == path.read_bytes()
