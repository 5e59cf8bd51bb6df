"""The ballast: room that the exchange holds for what writes before it frees any, as a delete does.

On a full disk it is released. It is files, because a disk may have no inode left.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from job_runner.protocol import documents, layout
from job_runner.protocol.result.result import NO_SPACE

from .disk_use import free_bytes

FOLDER = ".ballast"
_FILES, _BYTES = 64, 4 << 10
_MIN_FREE = 16 << 20
"""Bytes that must be free for the ballast to be made: less is for what it was released for."""
_Answer = TypeVar("_Answer")


def hold_ballast(root: Path) -> None:
    """Make the ballast of an exchange, unless it is there; not now where there is little room."""
    folder = root / FOLDER
    draft = root / f".new-{secrets.token_hex(8)}"
    with contextlib.suppress(OSError):
        if len(list(folder.glob("*"))) == _FILES or free_bytes(root) < _MIN_FREE:
            return
        try:
            draft.mkdir(mode=0o700)
            # A file system may store zeros without taking room for them.
            documents.write_new(draft, {str(n): os.urandom(_BYTES) for n in range(_FILES)})
            _release(root)  # what a killed process may have left of it
            draft.rename(folder)
        finally:
            shutil.rmtree(draft, ignore_errors=True)


def with_ballast(root: Path, write: Callable[[], _Answer]) -> _Answer:
    """Return what `write` returns. On a full disk release the ballast, and call it once more."""
    try:
        return write()
    except OSError as error:
        if error.errno not in NO_SPACE:
            raise
    _release(root)
    return write()


def release_for_end(root: Path, job: str) -> None:
    """Release the ballast for a cancelled or deleted job that could not be ended, if room lacks."""
    is_wanted = any((root / job / wish).exists() for wish in (layout.CANCEL, layout.DELETE))
    with contextlib.suppress(OSError):
        if is_wanted and free_bytes(root) < _MIN_FREE:
            _release(root)


def _release(root: Path) -> None:
    shutil.rmtree(root / FOLDER, ignore_errors=True)
