"""Removes a published result from the workspace, as far as nobody has changed it since."""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from job_runner.protocol.folders import open_folder

from ...domain.errors import BadInput
from ..paths import Workspace, open_regular
from .drafts import digest_of
from .publish import Published

CLOCK_TOLERANCE = 2.0
"""Seconds by which a file server's clock may be ahead of the publisher's."""


@dataclass(frozen=True)
class Removal:
    """Workspace paths that were removed, their bytes, and those that were changed and stay."""

    removed: tuple[str, ...] = ()
    size: int = 0
    changed: tuple[str, ...] = ()


def remove_published(
    workspace: Workspace, notebook: Published, artifacts: Sequence[str], published_at: float
) -> Removal:
    """Remove a result's notebook and the files beside it that its run created.

    The notebook is removed if it has the digest that was published, and a file that the run created
    if it was not written after `published_at` (seconds since 1970). What is gone already is left
    out of the answer, and a folder that is a link out of the workspace by now counts as changed.

    Raises OSError with the path of what cannot be removed, after all others. The notebook is
    removed last, and only if there was no error: while it is there, the result is found again.
    """
    removed: list[str] = []
    changed: list[str] = []
    size = 0
    failure: OSError | None = None
    for path in (*artifacts, notebook.path):
        if path == notebook.path and failure is not None:
            break
        digest = notebook.sha256 if path == notebook.path else None
        try:
            bytes_removed = _remove(workspace, path, digest, published_at)
        except (FileNotFoundError, NotADirectoryError):
            continue
        except BadInput:
            bytes_removed = None
        except OSError as error:
            failure = OSError(error.errno, error.strerror, path)
            continue
        size += bytes_removed or 0
        (changed if bytes_removed is None else removed).append(path)
    _remove_empty_folders(workspace, PurePosixPath(notebook.path).parent, artifacts)
    if failure is not None:
        raise failure
    return Removal(tuple(removed), size, tuple(changed))


def _remove(workspace: Workspace, path: str, digest: str | None, published_at: float) -> int | None:
    """Remove a file and return its size; None if it was changed, and stays."""
    name = PurePosixPath(path).name
    with workspace.folder(str(PurePosixPath(path).parent)) as folder:
        status = os.stat(name, dir_fd=folder, follow_symlinks=False)
        if not stat.S_ISREG(status.st_mode):
            return None
        if digest is None:
            # A file that was moved or copied here may be older: its place in the folder is not.
            changed = max(status.st_mtime, status.st_ctime)
            is_unchanged = changed <= published_at + CLOCK_TOLERANCE
        else:
            with open_regular(name, path, folder) as file:
                is_unchanged = digest_of(file) == digest
        if not is_unchanged:
            return None
        os.unlink(name, dir_fd=folder)
        return status.st_size


def _remove_empty_folders(
    workspace: Workspace, base: PurePosixPath, artifacts: Sequence[str]
) -> None:
    """Remove the folders of artifacts in which nothing is left, below the result's own."""
    folders = {
        folder
        for path in map(PurePosixPath, artifacts)
        if path.is_relative_to(base)
        for folder in path.relative_to(base).parents
        if folder.parts
    }
    with contextlib.suppress(OSError, BadInput), workspace.folder(str(base)) as opened:
        for folder in sorted(folders, key=lambda path: len(path.parts), reverse=True):
            with (
                contextlib.suppress(OSError),
                open_folder(opened, folder.parent.parts) as above,
            ):
                os.rmdir(folder.name, dir_fd=above)
