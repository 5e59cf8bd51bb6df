"""The working directory of a run: the source's own folder, or a scratch copy of its inputs.

A scratch folder keeps the workspace's layout; files that the run made or changed there come back
as artifacts.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path, PurePosixPath
from typing import Any

from ..diagnosis.endings import no_folder
from ..protocol import layout

_SCRATCH = "work"
_IGNORED_DIRECTORIES = {"__pycache__", ".ipynb_checkpoints"}


def working_directory(job_dir: Path, attempt_dir: Path, request: dict[str, Any]) -> Path:
    """Return the kernel's working directory, made ready. Raises RunFailed if it is gone."""
    if request.get("cwd") and not request.get("isolated"):
        cwd = Path(request["cwd"])
        if not cwd.is_dir():
            raise no_folder(cwd)
        return cwd
    root = attempt_dir / _SCRATCH
    root.mkdir(mode=0o700)
    _copy(job_dir / layout.INPUTS, root)
    folder = root / PurePosixPath(request["notebook"]).parent
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def collect_artifacts(job_dir: Path, attempt_dir: Path) -> None:
    """Move what an isolated run made or changed to the artifacts; drop the rest.

    Regular files only: a link would lead whoever delivers out of the scratch folder.
    """
    root = attempt_dir / _SCRATCH
    if root.is_symlink() or not root.is_dir():
        return
    root.chmod(0o700)
    for base, folders, names in os.walk(root):
        # A cache of packages may be read-only, and nothing can be taken out of such a folder.
        for path in (Path(base, name) for name in folders):
            if not path.is_symlink():
                path.chmod(0o700)
        folders[:] = [name for name in folders if name not in _IGNORED_DIRECTORIES]
        for path in (Path(base, name) for name in names):
            relative = path.relative_to(root)
            original = job_dir / layout.INPUTS / relative
            if path.is_symlink() or not path.is_file() or _same(path, original):
                continue
            target = attempt_dir / layout.ARTIFACTS / relative
            target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            path.rename(target)
    shutil.rmtree(root, ignore_errors=True)


def _copy(source: Path, target: Path) -> None:
    """Copy a folder's files. Unlike `copytree`, raises the error as it was: a full disk says so."""
    for base, _, names in os.walk(source):
        folder = target / Path(base).relative_to(source)
        folder.mkdir(mode=0o700, exist_ok=True)
        for name in names:
            shutil.copy2(Path(base, name), folder / name)


def _same(path: Path, original: Path) -> bool:
    """Tell whether a file is the input that it began as (the copy took over the time)."""
    if not original.is_file():
        return False
    status, original_status = path.stat(), original.stat()
    return (status.st_size, status.st_mtime_ns) == (
        original_status.st_size,
        original_status.st_mtime_ns,
    )
