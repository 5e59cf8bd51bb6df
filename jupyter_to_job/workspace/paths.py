"""The user's file tree, opened so that no link leads out of it, not even one swapped in meanwhile.

A path is resolved first, and must end below the root or one of the folders that links may lead to.
Then it is walked from there, folder by folder, without following any link: what is opened is what
was judged.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import BinaryIO

from ..domain.errors import BadInput

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# A folder on the way need not be listed, and may forbid it. macOS has no O_PATH.
_PASSAGE = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class SpecialFile(BadInput):
    """A folder, pipe, socket or device where a file is expected."""


class Workspace:
    """The files below `root`; `roots` are the folders outside that links in it may lead to."""

    def __init__(self, root: Path, roots: Sequence[Path] = ()) -> None:
        self.root = root.resolve()
        self._bases = (self.root, *(path.resolve() for path in roots))

    def real(self, path: str) -> Path:
        """Return where a workspace path leads, links resolved; it need not exist.

        Raises BadInput if that is outside of the workspace.
        """
        if path.startswith("/") or "\0" in path:
            raise BadInput(f"{path!r} is no path inside the workspace.")
        try:
            resolved = (self.root / path).resolve()
        except (OSError, RuntimeError, ValueError) as error:
            # A loop of links, a name without end, or one that no file system can have.
            raise BadInput(f"{path!r} leads nowhere.") from error
        if not any(resolved.is_relative_to(base) for base in self._bases):
            raise BadInput(
                f"{path!r} leads out of the workspace.",
                "Copy it in, or list the folder in JUPYTER_TO_JOB_ROOTS.",
            )
        return resolved

    @contextlib.contextmanager
    def folder(self, path: str) -> Iterator[int]:
        """Open a folder and hand out its descriptor. Raises BadInput and OSError."""
        descriptor = self._descend(self.real(path))
        try:
            yield descriptor
        finally:
            os.close(descriptor)

    def open(self, path: str) -> BinaryIO:
        """Open a regular file for reading.

        Raises BadInput where it leads out, SpecialFile for anything else, and OSError.
        """
        real = self.real(path)
        if real in self._bases:
            raise SpecialFile(f"{path!r} is a folder.")
        folder = self._descend(real.parent)
        try:
            return open_regular(real.name, path, folder)
        finally:
            os.close(folder)

    def _descend(self, real: Path) -> int:
        """Open the folder at a resolved path, following no link."""
        # It is below one of them; a folder that contains another one is as good a start.
        base = next(base for base in self._bases if real.is_relative_to(base))
        parts = real.relative_to(base).parts
        descriptor = os.open(base, _PASSAGE if parts else _FOLDER)
        for index, part in enumerate(parts):
            flags = _FOLDER if index == len(parts) - 1 else _PASSAGE
            try:
                below = os.open(part, flags, dir_fd=descriptor)
            finally:
                os.close(descriptor)
            descriptor = below
        return descriptor


def open_regular(name: str, label: str, folder: int | None = None) -> BinaryIO:
    """Open the file `name` (in the open folder) for reading, if it is a regular one.

    Never waits for a pipe's other end. Raises SpecialFile, calling it `label`, and OSError.
    """
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    # Looked at first: opening a device may already do something.
    kind = os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode
    if stat.S_ISREG(kind):
        descriptor = os.open(name, flags, dir_fd=folder)
        kind = os.fstat(descriptor).st_mode
        if stat.S_ISREG(kind):
            return os.fdopen(descriptor, "rb")
        os.close(descriptor)
    raise SpecialFile(f"{label!r} is {_kind(kind)}, not a file.")


def _kind(mode: int) -> str:
    kinds = {
        stat.S_IFDIR: "a folder",
        stat.S_IFIFO: "a pipe",
        stat.S_IFSOCK: "a socket",
        stat.S_IFLNK: "a link that was put there just now",
    }
    return kinds.get(stat.S_IFMT(mode), "a device")
