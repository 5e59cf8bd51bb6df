"""Drafts of jobs: who makes one holds its lock, and the sweep passes over what is locked.

Its age alone would not tell: a process may be stopped, and a clock may be set, while it copies the
inputs. Not every file system has locks, so what was recorded is looked for before the draft becomes
a job.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

from ..domain.errors import Unavailable
from .pieces import path_inside
from .request import InputFile

LEFTOVER_SECONDS = 3600.0
_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


@contextlib.contextmanager
def locked(draft: Path) -> Iterator[None]:
    """Hold the lock of a draft, where the file system has locks. Raises OSError."""
    descriptor = os.open(draft, _FLAGS)
    try:
        with contextlib.suppress(OSError):  # no locks here
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(descriptor)


def is_old(path: Path, seconds: float = LEFTOVER_SECONDS) -> bool:
    """Tell whether a file was not written to, or no name in a folder changed, for so long."""
    try:
        return path.lstat().st_mtime < time.time() - seconds
    except FileNotFoundError:
        return False


def is_abandoned(draft: Path) -> bool:
    """Tell whether a draft is old, and no process of this host holds its lock."""
    if not is_old(draft):
        return False
    try:
        descriptor = os.open(draft, _FLAGS)
    except OSError:  # nothing that could be locked
        return True
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # no locks here
        return True
    finally:
        os.close(descriptor)
    return True


def require_inputs(folder: Path, inputs: Iterable[InputFile]) -> None:
    """Raise Unavailable if a recorded input is not in `folder` with its size."""
    for item in inputs:
        try:
            is_there = path_inside(folder, item.path).lstat().st_size == item.size
        except OSError:
            is_there = False
        if not is_there:
            raise Unavailable(
                f"The copy of {item.path} was removed before the job was recorded.",
                "Submit again.",
            )
