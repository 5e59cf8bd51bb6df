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


def is_trusted(owner: int, root: Path) -> bool:
    """Tell whether what `owner` put into an exchange counts: this user, and root."""
    return owner in (os.geteuid(), _ROOT) or owner == _owner_of_new_files(root)


@lru_cache
def _owner_of_new_files(root: Path) -> int | None:
    """Return whose a file is that this process makes in a folder.

    A network file system may store all files as one user's, or root's as another one's.
    """
    with contextlib.suppress(OSError), tempfile.TemporaryFile(dir=root) as file:
        return os.fstat(file.fileno()).st_uid
    return None


def is_own_folder(path: Path) -> bool:
    """Tell whether `path` is a folder of an exchange, no link, and of a user who is trusted.

    Raises OSError where that cannot be seen just now.
    """
    try:
        status = path.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    return stat.S_ISDIR(status.st_mode) and is_trusted(status.st_uid, path.parent)


def require_own(root: Path) -> None:
    """Raise Unavailable for an exchange that another user may read and change. Raises OSError."""
    owner = root.stat().st_uid
    if not is_trusted(owner, root):
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
