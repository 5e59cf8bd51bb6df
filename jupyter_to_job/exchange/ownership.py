"""Whose an exchange and its jobs are: a job of another user would run with this user's rights."""

from __future__ import annotations

import contextlib
import os
import stat
import tempfile
from functools import lru_cache
from pathlib import Path

from ..domain.errors import Unavailable

_ROOT = 0
_WRITABLE_BY_OTHERS = stat.S_IWGRP | stat.S_IWOTH


def trusted_users(root: Path) -> frozenset[int]:
    """Return the users whose jobs count in an exchange: this one, and root.

    A network file system may store what root makes as another user's.
    """
    user = os.geteuid()
    with contextlib.suppress(OSError):
        if user == _ROOT and (owner := root.stat().st_uid) != _ROOT:
            return frozenset([user, _owner_of_new_files(root, owner)])
    return frozenset([user, _ROOT])


@lru_cache
def _owner_of_new_files(folder: Path, owner: int) -> int:  # noqa: ARG001 - another folder by then
    with tempfile.TemporaryFile(dir=folder) as file:
        return os.fstat(file.fileno()).st_uid


def is_own_folder(path: Path, trusted: frozenset[int]) -> bool:
    """Tell whether `path` is a folder, no link, of one of these users."""
    try:
        status = path.lstat()
    except OSError:
        return False
    return stat.S_ISDIR(status.st_mode) and status.st_uid in trusted


def require_own(root: Path, trusted: frozenset[int]) -> None:
    """Raise Unavailable for an exchange that another user may read and change. Raises OSError."""
    owner = root.stat().st_uid
    if owner not in trusted:
        raise Unavailable(
            f"{root} belongs to another user ({owner}), who could read and change your jobs.",
            "Set JUPYTER_TO_JOB_EXCHANGE to a folder of your own.",
        )


def keep_others_from_writing(root: Path) -> None:
    """Take from others the right to write to an exchange of this user, if they have it."""
    with contextlib.suppress(OSError):
        status = root.stat()
        if status.st_uid == os.geteuid() and status.st_mode & _WRITABLE_BY_OTHERS:
            root.chmod(stat.S_IMODE(status.st_mode) & ~_WRITABLE_BY_OTHERS)
