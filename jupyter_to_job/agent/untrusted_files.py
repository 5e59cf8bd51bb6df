"""Reads below a folder into which a hostile process writes at the same time.

No link is followed anywhere on the way, and only regular files are opened: each step begins at the
folder that the last one holds open, so that nothing can be swapped underneath.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC


class UntrustedFolder:
    """The files below `root`; paths are relative to it. What is not there is empty."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def read(self, path: str, offset: int, size: int) -> bytes:
        """Return up to `size` bytes of a regular file; nothing for whatever else has its name."""
        try:
            with self._folder(PurePosixPath(path).parent) as folder:
                descriptor = os.open(PurePosixPath(path).name, _FILE, dir_fd=folder)
        except OSError:
            return b""
        with os.fdopen(descriptor, "rb") as file:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                return b""
            file.seek(offset)
            return file.read(size)

    def files(self, path: str) -> list[str]:
        """Return the paths of the regular files in a folder and below it, sorted."""
        found: list[str] = []
        with contextlib.suppress(OSError), self._folder(PurePosixPath(path)) as folder:
            for base, _, names, below in os.fwalk(".", follow_symlinks=False, dir_fd=folder):
                for name in names:
                    with contextlib.suppress(OSError):
                        status = os.stat(name, dir_fd=below, follow_symlinks=False)
                        if stat.S_ISREG(status.st_mode):
                            found.append(str(PurePosixPath(path, base, name)))
        return sorted(found)

    @contextlib.contextmanager
    def _folder(self, path: PurePosixPath) -> Iterator[int]:
        descriptor = os.open(self._root, _FOLDER)
        try:
            for part in path.parts:
                inner = os.open(part, _FOLDER, dir_fd=descriptor)
                os.close(descriptor)
                descriptor = inner
            yield descriptor
        finally:
            os.close(descriptor)
