"""The files that an isolated run created: taken out of its scratch folder, and made durable.

Their manifest is part of the outcome, so that delivery notices what a power cut or a damaged disk
took of them.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import shutil
import stat
from collections.abc import Callable, Iterator
from pathlib import Path

from ..protocol import documents, layout
from ..protocol.created import IGNORED_FOLDERS, CreatedFiles, is_same
from ..protocol.outcome import MAX_ARTIFACT_BYTES, MAX_ARTIFACTS, ArtifactRecord
from ..protocol.result.result import NO_SPACE

_FAULTS_OF_DISK = (*NO_SPACE, errno.EIO)
"""Another try may succeed. Any other error is of one file or folder."""
_CHUNK = 1 << 20
_MAX_LISTED, _MAX_LISTED_NAME = 5, 200
"""Names of files in a message, the others are counted; and the characters of each."""


def sync_scratch(job_dir: Path, attempt_dir: Path) -> None:
    """Make what an isolated run made survive a power cut. Raises OSError: the disk may be full.

    Called before the end of the run is recorded: else a run would have succeeded whose files are
    empty after the cut. The kernel still lives, so files may come and go meanwhile. More than what
    is delivered is not synced: neither is what the run has mounted, which may be a whole bucket.
    """
    root = attempt_dir / layout.SCRATCH
    count = size = 0
    for base, folders, names in os.walk(root):
        _drop_mounts(base, folders)
        folders[:] = [name for name in folders if name not in IGNORED_FOLDERS]
        for path in (Path(base, name) for name in names):
            with _suppress_faults_of_files():
                if _same(path, job_dir / layout.INPUTS / path.relative_to(root)):
                    continue
                with documents.open_regular(path) as file:
                    count, size = count + 1, size + os.fstat(file.fileno()).st_size
                    if count > MAX_ARTIFACTS or size > MAX_ARTIFACT_BYTES:
                        return
                    os.fsync(file.fileno())
        with _suppress_faults_of_files():
            documents.sync_directory(Path(base))


def collect_artifacts(job_dir: Path, attempt_dir: Path) -> list[str]:
    """Move what an isolated run made or changed to the artifacts; drop the rest.

    Regular files only: a link would lead whoever delivers out of the scratch folder. Return
    sentences on links, and on what cannot be taken, such as files in another user's folder, and
    mounts: that stays where it is. Raises OSError where the disk is full or fails.
    """
    root = attempt_dir / layout.SCRATCH
    if root.is_symlink():
        return []
    uncollected, links = list[str](), list[str]()

    def leave(error: OSError, path: Path | None = None) -> None:
        if error.errno in _FAULTS_OF_DISK:
            raise error
        if error.errno != errno.ENOENT:  # a process that lives on may have removed it
            uncollected.append(str((path or Path(error.filename)).relative_to(root)))

    for path in _walk(root, leave):
        relative = path.relative_to(root)
        try:
            if path.is_symlink():
                links.append(str(relative))
            elif _is_made(path, job_dir / layout.INPUTS / relative):
                _take(path, attempt_dir / layout.ARTIFACTS / relative)
            else:
                with contextlib.suppress(OSError):
                    path.unlink()
        except OSError as error:
            leave(error, path)
    if not uncollected:
        shutil.rmtree(root, ignore_errors=True)
    return _describe(attempt_dir, uncollected, links)


def _describe(attempt_dir: Path, uncollected: list[str], links: list[str]) -> list[str]:
    notes = []
    if uncollected:
        where = f"{attempt_dir.name}/{layout.SCRATCH}"
        names = list_names(uncollected, len(uncollected))
        notes.append(
            f"Not all that it had created could be taken out of {where}. Left there: {names}."
        )
    if links:
        notes.append(f"Symbolic links are not delivered: {list_names(links, len(links))}.")
    return notes


def list_names(names: list[str], count: int) -> str:
    """Return the first of some names for a message, and how many others there are of `count`."""
    texts = [name.encode(errors="backslashreplace").decode() for name in names[:_MAX_LISTED]]
    more = f" and {count - len(texts)} more" if count > len(texts) > 0 else ""
    return ", ".join(name[:_MAX_LISTED_NAME] for name in texts) + more


def drop_cut_files(attempt_dir: Path, created: CreatedFiles) -> list[str]:
    """Remove the artifacts of which an agent could not send all; return what is missing."""
    root = attempt_dir / layout.ARTIFACTS
    sizes = {file.path: file.size for file in created.files}
    complete_names = set()
    for path in list(_files(root)):
        name = str(path.relative_to(root))
        if path.lstat().st_size == sizes.get(name):
            complete_names.add(name)
        else:
            path.unlink()
    return [name for name in sizes if name not in complete_names]


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


def _walk(root: Path, leave: Callable[[OSError], None]) -> Iterator[Path]:
    """Yield the files and links of a scratch folder, and report the folders out of reach."""
    _open_up(root)
    for base, folders, names in os.walk(root, onerror=leave):
        for path in _drop_mounts(base, folders):
            leave(OSError(errno.EXDEV, "A mount", str(path)))
        for name in folders:
            _open_up(Path(base, name))
        folders[:] = [name for name in folders if name not in IGNORED_FOLDERS]
        # Of a mount whose program is gone the path's own method raises an error.
        links = [name for name in folders if os.path.islink(Path(base, name))]  # noqa: PTH114
        yield from (Path(base, name) for name in (*names, *links))


def _drop_mounts(base: str, folders: list[str]) -> list[Path]:
    """Take the mounts out of `folders` and return them: their files are elsewhere, and stay."""
    mounts = [path for path in (Path(base, name) for name in folders) if os.path.ismount(path)]
    for path in mounts:
        folders.remove(path.name)
    return mounts


@contextlib.contextmanager
def _suppress_faults_of_files() -> Iterator[None]:
    """Go on after an error that is of one file or folder. Raises OSError for those of the disk."""
    try:
        yield
    except documents.DocumentError:
        pass  # no regular file
    except OSError as error:
        if error.errno in _FAULTS_OF_DISK:
            raise


def _open_up(folder: Path) -> None:
    """Let its owner take files out of a folder: a cache of packages may be read-only.

    An error shows again where its files are taken.
    """
    with contextlib.suppress(OSError):
        if not folder.is_symlink():
            folder.chmod(0o700)


def _is_made(path: Path, original: Path) -> bool:
    """Tell whether the run made or changed a file. Raises OSError."""
    return stat.S_ISREG(path.lstat().st_mode) and not _same(path, original)


def _take(path: Path, target: Path) -> None:
    """Move a file, which whoever delivers must be able to read. Raises OSError."""
    mode = path.stat().st_mode
    if not mode & stat.S_IRUSR:
        path.chmod(mode | stat.S_IRUSR)
    documents.open_regular(path).close()
    target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    path.rename(target)


def _seal(path: Path, name: str) -> ArtifactRecord:
    """Sync one file, and return its record. What a process that lives on adds is not part of it."""
    digest, size = hashlib.sha256(), 0
    with path.open("rb") as file:
        length = os.fstat(file.fileno()).st_size
        os.fsync(file.fileno())
        while chunk := file.read(min(_CHUNK, length - size)):
            digest.update(chunk)
            size += len(chunk)
    return ArtifactRecord(name, size, digest.hexdigest())


def _same(path: Path, original: Path) -> bool:
    return original.is_file() and is_same(path.stat(), original.stat())
