"""Publishes the files that an isolated run created: in one new folder beside the result.

The folder is filled under another name and renamed. So it appears once and complete, whatever
process is killed. As with the notebook, no existing file is ever written to.
"""

from __future__ import annotations

import contextlib
import errno
import io
import os
import stat
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path, PurePosixPath
from typing import BinaryIO, cast

from job_runner.protocol.folders import open_folder
from job_runner.protocol.outcome import MAX_ARTIFACT_BYTES, MAX_ARTIFACTS, ArtifactRecord
from job_runner.protocol.units import format_bytes

from ...domain.errors import BadInput, Damaged, TooLarge
from ..paths import Workspace, open_regular
from .drafts import copy, digest_of, draft_folder, remove_drafts
from .publish import as_cannot_publish, candidates

_OUTSIDE = "workspace"
_NO_NAME = (errno.EEXIST, errno.ENOTDIR, errno.EINVAL, errno.ENAMETOOLONG, errno.EILSEQ)
"""Errors of creating a file in a new folder where its file system cannot have the name. The first
two are of names that differ in their case only."""
Opener = Callable[[str], BinaryIO]
"""Opens a file that a run created by its path in the workspace's layout. It and what it opens raise
OSError or BadInput where the file is missing or not readable."""


@dataclass(frozen=True)
class Artifact:
    """A file that a run created: its path in the new folder, its size in bytes, how to open it.

    `sha256` is its digest at the end of the run; None: not known.
    """

    target: str
    size: int
    open: Callable[[], BinaryIO]
    sha256: str | None = None


@dataclass(frozen=True)
class PublishedArtifacts:
    """The workspace paths of the published files, and the targets of those that were lost."""

    paths: tuple[str, ...] = ()
    lost: tuple[str, ...] = ()


class _LostError(Exception):
    """A file is missing, is not what the run created, or cannot have its name here."""


def find_artifacts(
    manifest: Sequence[ArtifactRecord], notebook: str, opener: Opener, kept_at: str
) -> list[Artifact]:
    """Return the files of `manifest`, which has their paths in the workspace's layout.

    Their targets are relative to the notebook's folder. Those outside of it go into a folder
    `workspace` there, and are relative to the workspace's root. Raises TooLarge over the limits,
    and then says that they are `kept_at` a place; Damaged.
    """
    beside = PurePosixPath(notebook).parent
    inside, outside = [], []
    for record in manifest:
        path = PurePosixPath(record.path)
        if path.is_absolute() or ".." in path.parts or not path.parts or "\0" in record.path:
            raise Damaged(f"{record.path!r} is no path of a file that a run created.")
        opened = partial(opener, str(path))
        artifact = Artifact(str(path), record.size, opened, record.sha256 or None)
        if path.is_relative_to(beside):
            inside.append(replace(artifact, target=str(path.relative_to(beside))))
        else:
            outside.append(artifact)
    used = {PurePosixPath(artifact.target).parts[0] for artifact in inside}
    parent = next(name for name in candidates(_OUTSIDE, "") if name not in used)
    outside = [replace(a, target=str(PurePosixPath(parent, a.target))) for a in outside]
    files = sorted(inside + outside, key=lambda artifact: artifact.target)
    total = sum(file.size for file in files)
    if len(files) > MAX_ARTIFACTS or total > MAX_ARTIFACT_BYTES:
        raise TooLarge(
            f"The run created {len(files):,} files, {format_bytes(total)}; at most "
            f"{MAX_ARTIFACTS:,} files and {format_bytes(MAX_ARTIFACT_BYTES)} are copied to the "
            "workspace.",
            f"Until retention clears them they are {kept_at}.",
        )
    return files


def scan_artifacts(folder: Path) -> tuple[ArtifactRecord, ...]:
    """Return the regular files below an attempt's artifacts, without digests.

    They stand for a manifest that an attempt does not have.
    """
    return tuple(_scan(folder))


def _scan(folder: Path) -> Iterator[ArtifactRecord]:
    for base, _, names in os.walk(folder):
        for source in (Path(base, name) for name in names):
            status = source.lstat()
            if stat.S_ISREG(status.st_mode):
                yield ArtifactRecord(str(source.relative_to(folder)), status.st_size, "")


def publish_artifacts(
    workspace: Workspace, result: str, name: str, artifacts: Sequence[Artifact]
) -> PublishedArtifacts:
    """Publish artifacts in a folder `<name>` beside the result.

    What is missing, has another digest, or has a name that the file system cannot have, is left
    out. An existing folder with the same files counts as published. Beside any other folder the
    name becomes `<name>-2`. Raises CannotPublish with the cause.
    """
    if not artifacts:
        return PublishedArtifacts()
    path = PurePosixPath(result)
    folder = str(path.parent)
    with as_cannot_publish(str(PurePosixPath(folder, name))), workspace.folder(folder) as opened:
        remove_drafts(opened)
        published, lost = _publish(opened, name, artifacts, _mode_of(opened, path.name))
    targets = (artifact.target for artifact in artifacts if artifact.target not in lost)
    paths = tuple(str(PurePosixPath(folder, published, target)) for target in targets)
    return PublishedArtifacts(paths, lost)


def _mode_of(folder: int, result: str) -> int:
    """Return the rights of a published result, which a file without rights of its own gets."""
    try:
        return stat.S_IMODE(os.stat(result, dir_fd=folder, follow_symlinks=False).st_mode) & 0o666
    except OSError:  # its owner has renamed it
        return 0o600


def _publish(
    folder: int, name: str, artifacts: Sequence[Artifact], mode: int
) -> tuple[str, tuple[str, ...]]:
    """Publish in an open folder; return the name of the artifacts' folder, and what was lost."""
    for candidate in candidates(name, ""):
        if not _exists(folder, candidate):
            break
        if _has_files(folder, candidate, artifacts):
            return candidate, ()
    with draft_folder(folder) as (draft, descriptor):
        lost = tuple(a.target for a in artifacts if not _copy_into(descriptor, a, mode))
        intact = [artifact for artifact in artifacts if artifact.target not in lost]
        if not intact:
            return name, lost
        for _, _, _, base in os.fwalk(dir_fd=descriptor):
            os.fsync(base)
        for candidate in candidates(name, ""):
            # Another process may have used the name while the files were copied.
            if not _exists(folder, candidate) and _rename(folder, draft, candidate):
                os.fsync(folder)
                return candidate, lost
            if _has_files(folder, candidate, intact):
                return candidate, lost
    raise AssertionError("candidates never end")


def _rename(folder: int, draft: str, name: str) -> bool:
    """Rename a folder. False if the name exists: a folder replaces only an empty one."""
    try:
        os.rename(draft, name, src_dir_fd=folder, dst_dir_fd=folder)
    except OSError:
        if _exists(folder, name):
            return False
        raise
    return True


def _copy_into(folder: int, artifact: Artifact, mode: int) -> bool:
    """Copy one file into an open folder, and make the folders that it needs.

    It has the rights of the file that is copied, and `mode` where that has none. False if that is
    missing or not what the run created, or cannot have its name here: then nothing is copied.
    """
    try:
        os.fsencode(artifact.target)
        source = artifact.open()
    except (BadInput, OSError, UnicodeError):  # the last: no file can have this name
        return False
    parents = PurePosixPath(artifact.target).parent.parts
    with source:
        with contextlib.suppress(io.UnsupportedOperation):  # it comes from a gateway
            mode = stat.S_IMODE(os.fstat(source.fileno()).st_mode) & 0o777
        try:
            target = _create(folder, artifact.target, mode)
            is_copied = _copy(source, target, artifact)
        except _LostError:
            is_copied = False
        else:
            if not is_copied:
                with open_folder(folder, parents) as parent:
                    os.unlink(PurePosixPath(artifact.target).name, dir_fd=parent)
    if not is_copied:
        _remove_empty(folder, parents)
    return is_copied


def _create(folder: int, path: str, mode: int) -> int:
    """Create a file and the folders that it needs; return its descriptor.

    Raises _LostError where the file system cannot have one of the names. The folder is a draft of
    this process, so a file that exists is another one of the same run.
    """
    *parents, name = PurePosixPath(path).parts
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
    try:
        _make_folders(folder, parents)
        with open_folder(folder, parents) as parent:
            return os.open(name, flags, mode, dir_fd=parent)
    except OSError as error:
        if error.errno in _NO_NAME:
            raise _LostError from error
        raise


def _copy(source: BinaryIO, descriptor: int, artifact: Artifact) -> bool:
    """Copy an open file to one that was just created; tell whether it is intact."""
    with os.fdopen(descriptor, "wb") as target:
        try:
            return artifact.sha256 in (None, copy(_limited(source, artifact.size), target))
        except _LostError:
            return False


def _make_folders(folder: int, parents: Sequence[str]) -> None:
    for depth, name in enumerate(parents):
        with open_folder(folder, parents[:depth]) as above, contextlib.suppress(FileExistsError):
            os.mkdir(name, dir_fd=above)


def _remove_empty(folder: int, parents: Sequence[str]) -> None:
    """Remove folders that were made for a file that was lost, as far as nothing is in them."""
    for depth in range(len(parents), 0, -1):
        with contextlib.suppress(OSError), open_folder(folder, parents[: depth - 1]) as above:
            os.rmdir(parents[depth - 1], dir_fd=above)


class _Source(io.RawIOBase):
    """The first `size` bytes of a file that is copied: a process that lives on may write more.

    Its errors mean that it is lost, unlike those of the target.
    """

    def __init__(self, file: BinaryIO, size: int) -> None:
        super().__init__()
        self._file = file
        self._remaining = size

    def read(self, size: int = -1) -> bytes:
        """Return the next bytes. Raises _LostError."""
        try:
            data = self._file.read(self._remaining if size < 0 else min(size, self._remaining))
        except OSError as error:
            raise _LostError from error
        self._remaining -= len(data)
        return data


def _limited(file: BinaryIO, size: int) -> BinaryIO:
    return cast("BinaryIO", _Source(file, size))


def _has_files(folder: int, name: str, artifacts: Sequence[Artifact]) -> bool:
    """Tell whether a folder has exactly these files."""
    errors = (OSError, BadInput, _LostError)
    with contextlib.suppress(*errors), open_folder(folder, [name]) as opened:
        paths = {
            str(PurePosixPath(base, file))
            for base, _, files, _ in os.fwalk(dir_fd=opened)
            for file in files
        }
        return paths == {a.target for a in artifacts} and all(
            _is_equal(opened, a) for a in artifacts
        )
    return False


def _is_equal(folder: int, artifact: Artifact) -> bool:
    path = PurePosixPath(artifact.target)
    with open_folder(folder, path.parent.parts) as parent:
        copied = open_regular(path.name, artifact.target, parent)
    with copied:
        if os.fstat(copied.fileno()).st_size != artifact.size:
            return False
        digest = digest_of(copied)
    if artifact.sha256 is not None:
        return digest == artifact.sha256
    with artifact.open() as source:
        return digest == digest_of(_limited(source, artifact.size))


def _exists(folder: int, name: str) -> bool:
    try:
        os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return True
