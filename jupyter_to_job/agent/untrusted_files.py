"""Reads below a folder into which a hostile process writes at the same time.

No link is followed anywhere on the way, and only regular files are opened (`workspace.paths`): so
the process cannot make the agent read another file.
"""

from __future__ import annotations

import contextlib
import os
import stat
from pathlib import Path, PurePosixPath

from ..workspace.paths import SpecialFile, open_folder, open_regular


class UntrustedFolder:
    """The files below `root`; paths are relative to it. A missing file counts as empty."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def read(self, path: str, offset: int, size: int) -> bytes:
        """Return up to `size` bytes of a regular file; nothing for anything else of that name."""
        pure = PurePosixPath(path)
        try:
            with open_folder(self._root, pure.parent.parts) as folder:
                file = open_regular(pure.name, path, folder)
        except (OSError, SpecialFile):
            return b""
        with file:
            file.seek(offset)
            return file.read(size)

    def files(self, path: str) -> list[str]:
        """Return the paths of the regular files in a folder and below it, sorted."""
        paths: list[str] = []
        parts = PurePosixPath(path).parts
        with contextlib.suppress(OSError), open_folder(self._root, parts) as folder:
            for base, _, names, below in os.fwalk(".", follow_symlinks=False, dir_fd=folder):
                for name in names:
                    with contextlib.suppress(OSError):
                        status = os.stat(name, dir_fd=below, follow_symlinks=False)
                        if stat.S_ISREG(status.st_mode):
                            paths.append(str(PurePosixPath(path, base, name)))
        return sorted(paths)
