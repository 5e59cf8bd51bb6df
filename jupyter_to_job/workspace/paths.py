"""Opens the user's files so that no link leads out of the workspace, even one made meanwhile.

A path is resolved first, and must end below the root or one of the folders that links may lead to.
Then it is opened from there, folder by folder, without following any link: so the file that is
opened is the file that was checked.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import BinaryIO

from job_runner.protocol.folders import open_folder

from ..domain.errors import BadInput

READ_SIZE = 1 << 20
"""Bytes of a file that are read at a time."""


class SpecialFile(BadInput):
    """A folder, pipe, socket or device where a file is expected."""


class Workspace:
    """The files below `root`; `roots` are the folders outside that links in it may lead to."""

    def __init__(self, root: Path, roots: Sequence[Path] = ()) -> None:
        self.root = root.resolve()
        self._bases = (self.root, *(path.resolve() for path in roots))

    def real(self, path: str) -> Path:
        """Return a workspace path with its links resolved; it need not exist.

        Raises BadInput if it leads out of the workspace.
        """
        if path.startswith("/") or "\0" in path:
            raise BadInput(f"{path!r} is no path inside the workspace.")
        try:
            resolved = (self.root / path).resolve()
        except (OSError, RuntimeError, ValueError) as error:
            # A loop of links, a name that is too long, or one that no file system can have.
            raise BadInput(f"{path!r} leads nowhere.") from error
        if not any(resolved.is_relative_to(base) for base in self._bases):
            raise BadInput(
                f"{path!r} leads out of the workspace.",
                "Copy it in, or list the folder in JUPYTER_TO_JOB_ROOTS.",
            )
        return resolved

    def base_of(self, real: Path) -> Path:
        """Return the root, or a folder that links may lead to, which a resolved path is below."""
        return next(base for base in self._bases if real.is_relative_to(base))

    @contextlib.contextmanager
    def folder(self, path: str) -> Iterator[int]:
        """Open a folder and yield its descriptor. Raises BadInput and OSError."""
        with self._open_real(self.real(path)) as descriptor:
            yield descriptor

    def open(self, path: str) -> BinaryIO:
        """Open a regular file for reading.

        Raises BadInput where it leads out, SpecialFile for anything else, and OSError.
        """
        real = self.real(path)
        if real in self._bases:
            raise SpecialFile(f"{path!r} is a folder.")
        with self._open_real(real.parent) as folder:
            return open_regular(real.name, path, folder)

    def _open_real(self, real: Path) -> contextlib.AbstractContextManager[int]:
        base = self.base_of(real)
        return open_folder(base, real.relative_to(base).parts)


def open_regular(name: str, label: str, folder: int | None = None) -> BinaryIO:
    """Open the file `name` (in the open folder) for reading, if it is a regular one.

    It never waits for a pipe's other end. Raises SpecialFile, which calls it `label`, and OSError.
    """
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    # The type is read first, because opening a device may have effects.
    kind = os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode
    if stat.S_ISREG(kind):
        descriptor = os.open(name, flags, dir_fd=folder)
        kind = os.fstat(descriptor).st_mode
        if stat.S_ISREG(kind):
            return os.fdopen(descriptor, "rb")
        os.close(descriptor)
    raise SpecialFile(f"{label!r} is {_kind(kind)}, not a file.")


def read_chunks(file: BinaryIO) -> Iterator[bytes]:
    """Yield the rest of a file in pieces of at most `READ_SIZE`."""
    while chunk := file.read(READ_SIZE):
        yield chunk


def _kind(mode: int) -> str:
    kinds = {
        stat.S_IFDIR: "a folder",
        stat.S_IFIFO: "a pipe",
        stat.S_IFSOCK: "a socket",
        stat.S_IFLNK: "a link that was put there just now",
    }
    return kinds.get(stat.S_IFMT(mode), "a device")
