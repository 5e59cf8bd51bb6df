"""Opens a folder below another one without following a link on the way."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# A folder on the way need not be readable. macOS has no O_PATH.
_PASSAGE = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


@contextlib.contextmanager
def open_folder(start: Path | int, parts: Sequence[str] = ()) -> Iterator[int]:
    """Open the folder `parts` below `start` and yield its descriptor. Raises OSError.

    `start` is a path or an open folder. No link is followed from there on: each step begins at the
    folder that the previous step has open.
    """
    if isinstance(start, int):
        descriptor = os.dup(start)
    else:
        descriptor = os.open(start, _PASSAGE if parts else _FOLDER)
    try:
        for index, part in enumerate(parts):
            flags = _FOLDER if index == len(parts) - 1 else _PASSAGE
            below = os.open(part, flags, dir_fd=descriptor)
            os.close(descriptor)
            descriptor = below
        yield descriptor
    finally:
        os.close(descriptor)
