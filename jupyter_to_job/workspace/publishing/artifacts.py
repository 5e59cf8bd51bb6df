"""Publishes the files that an isolated run created: in one new folder beside the result.

The folder is filled under another name and renamed. So it appears once and complete, whatever
process is killed. As with the notebook, no existing file is ever written to.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath

from job_runner.protocol.folders import open_folder
from job_runner.protocol.outcome import MAX_ARTIFACT_BYTES, MAX_ARTIFACTS, ArtifactRecord
from job_runner.protocol.units import format_bytes

from ...domain.errors import BadInput, Damaged, TooLarge
from ..paths import Workspace, open_regular
from .drafts import copy, digest_of, draft_folder, sweep
from .publish import as_cannot_publish, candidates

_OUTSIDE = "workspace"


@dataclass(frozen=True)
class Artifact:
    """A file that a run created: its place, its path in the new folder, its size in bytes.

    `sha256` is its digest at the end of the run; None: not known.
    """

    source: Path
    target: str
    size: int
    sha256: str | None = None

    def is_intact(self) -> bool:
        """Tell whether the file is there, as it was at the end of the run."""
        try:
            with open_regular(str(self.source), self.target) as file:
                return self.sha256 is None or digest_of(file) == self.sha256
        except (BadInput, OSError):
            return False


def find_artifacts(
    folder: Path, notebook: str, manifest: Sequence[ArtifactRecord] | None = None
) -> list[Artifact]:
    """Return the files below an attempt's artifacts, which have the workspace's layout.

    They are those of `manifest`, there or not; without one all regular files. Their targets are
    relative to the notebook's folder. Those outside of it go into a folder `workspace` there, and
    are relative to the workspace's root. Raises TooLarge over the limits, Damaged.
    """
    beside = PurePosixPath(notebook).parent
    inside, outside = [], []
    for record in _scan(folder) if manifest is None else manifest:
        path = PurePosixPath(record.path)
        if path.is_absolute() or ".." in path.parts or not path.parts or "\0" in record.path:
            raise Damaged(f"{record.path!r} is no path of a file that a run created.")
        artifact = Artifact(folder / path, str(path), record.size, record.sha256 or None)
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
            f"Until retention clears them they are in {folder}.",
        )
    return files


def _scan(folder: Path) -> Iterator[ArtifactRecord]:
    """Yield the regular files below a folder, without digests."""
    for base, _, names in os.walk(folder):
        for source in (Path(base, name) for name in names):
            status = source.lstat()
            if stat.S_ISREG(status.st_mode):
                yield ArtifactRecord(str(source.relative_to(folder)), status.st_size, "")


def publish_artifacts(
    workspace: Workspace, result: str, name: str, artifacts: Sequence[Artifact]
) -> tuple[str, ...]:
    """Publish artifacts in a folder `<name>` beside the result; return their workspace paths.

    An existing folder with the same files counts as published. Beside any other folder the name
    becomes `<name>-2`. Raises CannotPublish with the cause.
    """
    if not artifacts:
        return ()
    folder = str(PurePosixPath(result).parent)
    with as_cannot_publish(str(PurePosixPath(folder, name))), workspace.folder(folder) as opened:
        sweep(opened)
        published = _publish(opened, name, artifacts)
    return tuple(str(PurePosixPath(folder, published, artifact.target)) for artifact in artifacts)


def _publish(folder: int, name: str, artifacts: Sequence[Artifact]) -> str:
    """Publish in an open folder; return the name of the artifacts' folder there."""
    names = candidates(name, "")
    for candidate in names:
        if not _exists(folder, candidate):
            break
        if _has_files(folder, candidate, artifacts):
            return candidate
    with draft_folder(folder) as (draft, descriptor):
        for artifact in artifacts:
            _copy_into(descriptor, artifact)
        for _, _, _, base in os.fwalk(dir_fd=descriptor):
            os.fsync(base)
        while True:
            # Another process may have used the name while the files were copied.
            if not _exists(folder, candidate) and _rename(folder, draft, candidate):
                os.fsync(folder)
                return candidate
            if _has_files(folder, candidate, artifacts):
                return candidate
            candidate = next(names)


def _rename(folder: int, draft: str, name: str) -> bool:
    """Rename a folder. False if the name exists: a folder replaces only an empty one."""
    try:
        os.rename(draft, name, src_dir_fd=folder, dst_dir_fd=folder)
    except OSError:
        if _exists(folder, name):
            return False
        raise
    return True


def _copy_into(folder: int, artifact: Artifact) -> None:
    """Copy one file into an open folder, and make the folders that it needs."""
    path = PurePosixPath(artifact.target)
    parents = path.parent.parts
    for depth, name in enumerate(parents):
        with open_folder(folder, parents[:depth]) as above, contextlib.suppress(FileExistsError):
            os.mkdir(name, dir_fd=above)
    source = open_regular(str(artifact.source), artifact.target)
    with source, open_folder(folder, parents) as parent:
        mode = stat.S_IMODE(os.fstat(source.fileno()).st_mode) & 0o777
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
        with os.fdopen(os.open(path.name, flags, mode, dir_fd=parent), "wb") as target:
            copy(source, target)


def _has_files(folder: int, name: str, artifacts: Sequence[Artifact]) -> bool:
    """Tell whether a folder has exactly these files."""
    with contextlib.suppress(OSError, BadInput), open_folder(folder, [name]) as opened:
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
    with copied, open_regular(str(artifact.source), artifact.target) as source:
        same_size = os.fstat(copied.fileno()).st_size == artifact.size
        return same_size and digest_of(copied) == digest_of(source)


def _exists(folder: int, name: str) -> bool:
    try:
        os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return True
