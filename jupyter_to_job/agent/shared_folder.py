"""The folder that the agent shares with the notebook, a process that may be hostile.

No link is followed anywhere on the way, and only regular files are opened. So the notebook cannot
make the agent read another file, or write one.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import secrets
import shutil
import stat
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import BinaryIO

from job_runner.protocol.created import IGNORED_FOLDERS, is_same
from job_runner.protocol.documents import DocumentError, open_regular
from job_runner.protocol.folders import open_folder

_DRAFT = ".draft-"


class SharedFolder:
    """The files below `root`; paths are relative to it. A missing file counts as empty."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def has(self, name: str) -> bool:
        """Tell whether something of this name is in the folder."""
        return os.path.lexists(self._root / name)

    def read(self, path: str, offset: int, size: int) -> bytes:
        """Return up to `size` bytes of a regular file; nothing for anything else of that name."""
        with contextlib.suppress(OSError, DocumentError), self._open(path) as file:
            file.seek(offset)
            return file.read(size)
        return b""

    def is_unlocked(self, path: str) -> bool:
        """Tell whether a file is there of which nobody holds the lock (flock)."""
        with contextlib.suppress(OSError, DocumentError), self._open(path) as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            return True
        return False

    def files(self, path: str) -> list[str]:
        """Return the paths of the regular files in a folder and below it, sorted."""
        return sorted(str(PurePosixPath(path, name)) for name, _ in self._walk(path))

    def created(self, path: str, originals: str) -> Iterator[tuple[str, int]]:
        """Yield the names, in a folder, and sizes of the files that a run has created or changed.

        `originals` is the folder with the files that it began with. A run may create so many that
        their names do not fit in the agent's memory.
        """
        original_statuses = dict(self._walk(originals))
        for name, status in self._walk(path, IGNORED_FOLDERS):
            if name not in original_statuses or not is_same(status, original_statuses[name]):
                yield name, status.st_size

    def _walk(
        self, path: str, ignored: frozenset[str] = frozenset()
    ) -> Iterator[tuple[str, os.stat_result]]:
        """Yield the regular files in a folder, and in all below it but those `ignored`."""
        parts = PurePosixPath(path).parts
        with contextlib.suppress(OSError), open_folder(self._root, parts) as folder:
            for base, folders, names, below in os.fwalk(".", follow_symlinks=False, dir_fd=folder):
                folders[:] = [name for name in folders if name not in ignored]
                for name in names:
                    with contextlib.suppress(OSError):
                        status = os.stat(name, dir_fd=below, follow_symlinks=False)
                        if stat.S_ISREG(status.st_mode):
                            yield str(PurePosixPath(base, name)), status

    @contextlib.contextmanager
    def draft(self, name: str) -> Iterator[int]:
        """Yield a new folder, open, that gets its name at the end: it appears there complete.

        An agent that was killed meanwhile may have left another draft, which is removed.
        """
        with open_folder(self._root) as root:
            for entry in os.listdir(root):  # noqa: PTH208 - of a descriptor
                if entry.startswith(_DRAFT):
                    # It follows no link; Python 3.10 has no `dir_fd` for it.
                    shutil.rmtree(self._root / entry, ignore_errors=True)
            draft = f"{_DRAFT}{secrets.token_hex(8)}"
            os.mkdir(draft, 0o700, dir_fd=root)
            with open_folder(root, [draft]) as folder:
                yield folder
            os.rename(draft, name, src_dir_fd=root, dst_dir_fd=root)

    def _open(self, path: str) -> BinaryIO:
        pure = PurePosixPath(path)
        with open_folder(self._root, pure.parent.parts) as folder:
            return open_regular(Path(pure.name), folder)


def create_file(folder: int, path: str) -> BinaryIO:
    """Create a file below an open folder, with the folders on the way. Raises OSError."""
    *parents, name = PurePosixPath(path).parts
    for depth, parent in enumerate(parents):
        with open_folder(folder, parents[:depth]) as above, contextlib.suppress(FileExistsError):
            os.mkdir(parent, 0o700, dir_fd=above)
    with open_folder(folder, parents) as parent_folder:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        return os.fdopen(os.open(name, flags, 0o600, dir_fd=parent_folder), "wb")
