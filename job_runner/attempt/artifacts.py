"""The files that an isolated run created: taken out of its scratch folder, and made durable.

Their manifest is part of the outcome, so that delivery notices what a power cut or a damaged disk
took of them.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import stat
from collections.abc import Iterator
from pathlib import Path

from ..protocol import documents, layout
from ..protocol.created import IGNORED_FOLDERS, CreatedFiles, is_same
from ..protocol.outcome import MAX_ARTIFACT_BYTES, MAX_ARTIFACTS, ArtifactRecord

_OUT_OF_REACH = (
    PermissionError,
    FileNotFoundError,
    NotADirectoryError,
    documents.DocumentError,  # no regular file
)
_CHUNK = 1 << 20


def sync_scratch(job_dir: Path, attempt_dir: Path) -> None:
    """Make what an isolated run made survive a power cut. Raises OSError: the disk may be full.

    Called before the end of the run is recorded: else a run would have succeeded whose files are
    empty after the cut. The kernel still lives, so files may come and go meanwhile. More than what
    is delivered is not synced.
    """
    root = attempt_dir / layout.SCRATCH
    count = size = 0
    for base, folders, names in os.walk(root):
        folders[:] = [name for name in folders if name not in IGNORED_FOLDERS]
        for path in (Path(base, name) for name in names):
            with contextlib.suppress(*_OUT_OF_REACH):
                if _same(path, job_dir / layout.INPUTS / path.relative_to(root)):
                    continue
                with documents.open_regular(path) as file:
                    count, size = count + 1, size + os.fstat(file.fileno()).st_size
                    if count > MAX_ARTIFACTS or size > MAX_ARTIFACT_BYTES:
                        return
                    os.fsync(file.fileno())
        with contextlib.suppress(*_OUT_OF_REACH):
            documents.sync_directory(Path(base))


def collect_artifacts(job_dir: Path, attempt_dir: Path) -> None:
    """Move what an isolated run made or changed to the artifacts; drop the rest.

    Regular files only: a link would lead whoever delivers out of the scratch folder.
    """
    root = attempt_dir / layout.SCRATCH
    if root.is_symlink() or not root.is_dir():
        return
    root.chmod(0o700)
    for base, folders, names in os.walk(root):
        # A cache of packages may be read-only, and nothing can be taken out of such a folder.
        for path in (Path(base, name) for name in folders):
            if not path.is_symlink():
                path.chmod(0o700)
        folders[:] = [name for name in folders if name not in IGNORED_FOLDERS]
        for path in (Path(base, name) for name in names):
            relative = path.relative_to(root)
            original = job_dir / layout.INPUTS / relative
            if path.is_symlink() or not path.is_file() or _same(path, original):
                continue
            target = attempt_dir / layout.ARTIFACTS / relative
            target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            path.rename(target)
    shutil.rmtree(root, ignore_errors=True)


def drop_cut_files(attempt_dir: Path, created: CreatedFiles) -> list[str]:
    """Remove the artifacts of which an agent could not send all; return what is missing."""
    root = attempt_dir / layout.ARTIFACTS
    sizes = {file.path: file.size for file in created.files}
    whole = set()
    for path in list(_files(root)):
        name = str(path.relative_to(root))
        if path.lstat().st_size == sizes.get(name):
            whole.add(name)
        else:
            path.unlink()
    return [name for name in sizes if name not in whole]


def seal_artifacts(attempt_dir: Path) -> tuple[ArtifactRecord, ...] | None:
    """Make the collected files survive a power cut, their data before their names; list them.

    None if they are too many or too large to be delivered. Raises OSError.
    """
    root = attempt_dir / layout.ARTIFACTS
    files = sorted(_files(root))
    if len(files) > MAX_ARTIFACTS or sum(p.lstat().st_size for p in files) > MAX_ARTIFACT_BYTES:
        return None
    manifest = tuple(_seal(path, str(path.relative_to(root))) for path in files)
    for base, _, _ in os.walk(root, topdown=False):
        documents.sync_directory(Path(base))
    return manifest


def _files(root: Path) -> Iterator[Path]:
    for base, _, names in os.walk(root):
        for path in (Path(base, name) for name in names):
            if stat.S_ISREG(path.lstat().st_mode):
                yield path


def _seal(path: Path, name: str) -> ArtifactRecord:
    """Sync one file, and return its record."""
    path.chmod(path.stat().st_mode | stat.S_IRUSR)
    digest, size = hashlib.sha256(), 0
    with path.open("rb") as file:
        os.fsync(file.fileno())
        while chunk := file.read(_CHUNK):
            digest.update(chunk)
            size += len(chunk)
    return ArtifactRecord(name, size, digest.hexdigest())


def _same(path: Path, original: Path) -> bool:
    return original.is_file() and is_same(path.stat(), original.stat())
