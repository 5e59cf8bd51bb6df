"""Publishes what an isolated run created: one new folder beside the result, whole or not at all.

The folder is filled under another name and renamed. So it is there complete, once, whoever is
killed when; and as with the notebook, what is there already is never written to.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath

from job_runner.protocol.units import format_bytes

from ...domain.errors import BadInput, TooLarge
from ..paths import Workspace, open_regular
from .publish import as_cannot_publish, candidates
from .temp_files import copy, digest_of, draft_folder, sweep

MAX_FILES = 10_000
MAX_BYTES = 10 << 30
_OUTSIDE = "workspace"


@dataclass(frozen=True)
class Artifact:
    """A file that a run created: where it is, where in the folder it goes, its size in bytes."""

    source: Path
    target: str
    size: int


def find_artifacts(folder: Path, notebook: str) -> list[Artifact]:
    """Return the regular files below an attempt's artifacts, which have the workspace's layout.

    Their targets count from the notebook's folder. Those outside of it go into a folder
    `workspace` there, and count from the workspace's root. Raises TooLarge if they are too many.
    """
    beside = PurePosixPath(notebook).parent
    inside, outside = [], []
    for base, _, names in os.walk(folder):
        for source in (Path(base, name) for name in names):
            status = source.lstat()
            if stat.S_ISREG(status.st_mode):
                path = PurePosixPath(source.relative_to(folder))
                if path.is_relative_to(beside):
                    target = str(path.relative_to(beside))
                    inside.append(Artifact(source, target, status.st_size))
                else:
                    outside.append(Artifact(source, str(path), status.st_size))
    taken = {PurePosixPath(artifact.target).parts[0] for artifact in inside}
    above = next(name for name in candidates(_OUTSIDE, "") if name not in taken)
    outside = [replace(a, target=str(PurePosixPath(above, a.target))) for a in outside]
    files = sorted(inside + outside, key=lambda artifact: artifact.target)
    total = sum(file.size for file in files)
    if len(files) > MAX_FILES or total > MAX_BYTES:
        raise TooLarge(
            f"The run created {len(files):,} files, {format_bytes(total)}; at most "
            f"{MAX_FILES:,} files and {format_bytes(MAX_BYTES)} are copied to the workspace.",
            f"Until retention clears them they are in {folder}.",
        )
    return files


def publish_artifacts(
    workspace: Workspace, result: str, name: str, artifacts: Sequence[Artifact]
) -> tuple[str, ...]:
    """Publish them in a folder `<name>` beside the result; return their workspace paths.

    A folder that is there with these very files counts as published, another one makes it
    `<name>-2`. Raises CannotPublish, saying why.
    """
    if not artifacts:
        return ()
    folder = str(PurePosixPath(result).parent)
    with as_cannot_publish(str(PurePosixPath(folder, name))), workspace.folder(folder) as opened:
        sweep(opened)
        taken = _publish(opened, name, artifacts)
    return tuple(str(PurePosixPath(folder, taken, artifact.target)) for artifact in artifacts)


def _publish(folder: int, name: str, artifacts: Sequence[Artifact]) -> str:
    """Publish in an open folder; return the name that the artifacts' folder got there."""
    names = candidates(name, "")
    for candidate in names:
        if not _exists(folder, candidate):
            break
        if _same(folder, candidate, artifacts):
            return candidate
    with draft_folder(folder) as (draft, made):
        for artifact in artifacts:
            _copy_into(made, artifact)
        _sync_folders(made)
        while True:
            # Somebody may have taken the name while the files were copied.
            if not _exists(folder, candidate) and _renamed(folder, draft, candidate):
                os.fsync(folder)
                return candidate
            if _same(folder, candidate, artifacts):
                return candidate
            candidate = next(names)


def _renamed(folder: int, draft: str, name: str) -> bool:
    """Rename a folder. False if the name is taken: a folder replaces only an empty one."""
    try:
        os.rename(draft, name, src_dir_fd=folder, dst_dir_fd=folder)
    except OSError:
        if _exists(folder, name):
            return False
        raise
    return True


def _copy_into(folder: int, artifact: Artifact) -> None:
    """Copy one file into an open folder, making the folders that it needs."""
    path = PurePosixPath(artifact.target)
    with contextlib.ExitStack() as stack:
        for part in path.parent.parts:
            with contextlib.suppress(FileExistsError):
                os.mkdir(part, dir_fd=folder)
            folder = stack.enter_context(_opened(part, folder))
        source = stack.enter_context(open_regular(str(artifact.source), artifact.target))
        mode = 0o777 if os.fstat(source.fileno()).st_mode & stat.S_IXUSR else 0o666
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
        with os.fdopen(os.open(path.name, flags, mode, dir_fd=folder), "wb") as target:
            copy(source, target)


def _same(folder: int, name: str, artifacts: Sequence[Artifact]) -> bool:
    """Tell whether a folder holds these files, and no others."""
    with contextlib.suppress(OSError, BadInput), _opened(name, folder) as opened:
        there = {
            str(PurePosixPath(base, file))
            for base, _, files, _ in os.fwalk(dir_fd=opened)
            for file in files
        }
        return there == {a.target for a in artifacts} and all(_equal(opened, a) for a in artifacts)
    return False


def _equal(folder: int, artifact: Artifact) -> bool:
    path = PurePosixPath(artifact.target)
    with contextlib.ExitStack() as stack:
        for part in path.parent.parts:
            folder = stack.enter_context(_opened(part, folder))
        there = stack.enter_context(open_regular(path.name, artifact.target, folder))
        ours = stack.enter_context(open_regular(str(artifact.source), artifact.target))
        return os.fstat(there.fileno()).st_size == artifact.size and (
            digest_of(there) == digest_of(ours)
        )


def _sync_folders(folder: int) -> None:
    for _, _, _, descriptor in os.fwalk(dir_fd=folder):
        os.fsync(descriptor)


@contextlib.contextmanager
def _opened(name: str, folder: int) -> Iterator[int]:
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW
    descriptor = os.open(name, flags, dir_fd=folder)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _exists(folder: int, name: str) -> bool:
    try:
        os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return True
