"""Publishes a result in the workspace: exactly once, never over an existing file.

A temporary file in the target folder, fsync, then `link()` to the final name: a reader sees the
whole file or none, and two publishers cannot both win one name. The result is streamed: so a large
one takes no memory.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count
from pathlib import PurePosixPath
from typing import BinaryIO

from ...domain.errors import BadInput, Damaged
from ..paths import READ_SIZE, Workspace, open_regular
from .drafts import copy, digest_of, draft_file, draft_name, remove_drafts

NAME_MAX = 255
"""Bytes of a file name at most, on all common file systems."""
PATH_MAX = 4096
"""Bytes of a path at most, as Linux has it: a deeper folder could be made, and never be named."""
_SUFFIX = ".ipynb"
_NO_LINKS = {errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK, errno.EXDEV}
_HINTS = {
    errno.ENOENT: "Make the folder again",
    errno.ENOTDIR: "Make the folder again",
    errno.ENOSPC: "Make space",
    errno.EDQUOT: "Make space",
}


class CannotPublish(BadInput):
    """The target folder is gone, read-only or full: the result is held and tried again."""


@dataclass(frozen=True)
class Published:
    """Where the result is (workspace path), and its digest."""

    path: str
    sha256: str


def publish(
    workspace: Workspace,
    notebook: str,
    output: str | None,
    name: str,
    content: BinaryIO,
    sha256: str | None = None,
) -> Published:
    """Write `content` as `<name>.ipynb` beside `notebook`, or to a resolved `output`.

    An existing file with the same bytes counts as published, because they contain the job's name.
    Beside any other file the name becomes `<name>-2.ipynb`. Nobody may read it who may not read
    `notebook`. Raises CannotPublish with the cause, and Damaged if `content` has another
    digest than `sha256`.
    """
    mode = _mode_of(workspace, notebook)
    folder, stem = _target(notebook, output, name)
    path = str(folder / f"{stem}{_SUFFIX}")
    with as_cannot_publish(path), workspace.folder(str(folder)) as opened:
        remove_drafts(opened)
        with draft_file(opened, mode) as (draft, file):
            digest = copy(content, file)
            if sha256 is not None and digest != sha256:
                raise Damaged(f"The result of {name} is damaged.")
            for candidate in candidates(stem, _SUFFIX):
                if _link_into_place(opened, draft, file, candidate, digest):
                    os.fsync(opened)
                    return Published(str(folder / candidate), digest)
    raise AssertionError("candidates never end")


def resolve_output(workspace: Workspace, output: str) -> str:
    """Decide at submission what an `output` means: a folder, or else a file.

    A folder has a slash at its end, or is there. It is returned with the slash: so it still means a
    folder after it was removed. The folder of a file may be missing until the job has ended. Raises
    BadInput where nothing can ever be published.
    """
    real = workspace.real(output)
    with contextlib.suppress(OSError):  # a name that is too long, for one
        if not output.endswith("/") and real.is_dir():
            output = f"{output or '.'}/"
    folder, stem = _target(".", output, "")
    workspace.real(str(folder))
    if any(len(os.fsencode(name)) > NAME_MAX for name in (*folder.parts, stem + _SUFFIX)):
        raise BadInput(f"A name in the output is over {NAME_MAX} bytes.", "Shorten it.")
    if len(os.fsencode(real)) >= PATH_MAX:
        raise BadInput("The path of the output is too long for the file system.", "Shorten it.")
    return output


def candidates(stem: str, suffix: str) -> Iterator[str]:
    """Yield the file names to try, in order. A long stem is cut to make room for the number."""
    yield stem + suffix
    for number in count(2):
        end = f"-{number}{suffix}"
        room = NAME_MAX - len(os.fsencode(end))
        encoded = os.fsencode(stem)
        yield (stem if len(encoded) <= room else encoded[:room].decode(errors="ignore")) + end


@contextlib.contextmanager
def as_cannot_publish(path: str) -> Iterator[None]:
    """Raise CannotPublish for every error of writing `path`."""
    try:
        yield
    except BadInput as error:
        raise CannotPublish(error.message, error.hint) from error
    except OSError as error:
        remedy = _HINTS.get(error.errno or 0, "Mend the folder")
        raise CannotPublish(
            f"Cannot write {path}: {error.strerror}.",
            f"{remedy}, then deliver it again.",
        ) from error


def _target(notebook: str, output: str | None, name: str) -> tuple[PurePosixPath, str]:
    """Return the folder (workspace path) and the file's name without suffix."""
    if output is None:
        return PurePosixPath(notebook).parent, name
    path = PurePosixPath(output)
    if output.endswith("/"):
        return path, name
    return path.parent, path.name.removesuffix(_SUFFIX)


def _mode_of(workspace: Workspace, notebook: str) -> int:
    """Return the rights of a result: those of its source; the owner's alone if that is gone."""
    try:
        mode = workspace.real(notebook).stat().st_mode
    except (BadInput, OSError):
        return 0o600
    return (mode & 0o666) | 0o600


def _link_into_place(folder: int, draft: str, file: BinaryIO, name: str, digest: str) -> bool:
    """Give the draft its final name. False if another file has it."""
    try:
        os.link(draft, name, src_dir_fd=folder, dst_dir_fd=folder)
        return True
    except FileExistsError:
        if _has_digest(folder, name, digest):
            return True
        if _has_links(folder, draft):
            return False
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
    return _write_exclusively(folder, file, name, digest)


def _has_links(folder: int, draft: str) -> bool:
    """Tell whether the file system has hard links, which an existing target does not show."""
    probe = draft_name()
    try:
        os.link(draft, probe, src_dir_fd=folder, dst_dir_fd=folder)
    except OSError as error:
        return error.errno not in _NO_LINKS
    os.unlink(probe, dir_fd=folder)
    return True


def _has_digest(folder: int, name: str, digest: str) -> bool:
    """Tell whether a regular file has this digest."""
    try:
        with open_regular(name, name, folder) as file:
            return digest_of(file) == digest
    except (BadInput, OSError):  # a link, a folder, or not readable
        return False


def _write_exclusively(folder: int, file: BinaryIO, name: str, digest: str) -> bool:
    """Write on a file system without hard links: create exclusively, then verify.

    A publisher that is killed here leaves the beginning of a result, or an empty file. Only this
    result begins with these bytes, so the next publisher completes it. No other file is ever
    overwritten.
    """
    flags = os.O_RDWR | os.O_NOFOLLOW
    try:
        mode = stat.S_IMODE(os.fstat(file.fileno()).st_mode)
        target = os.open(name, flags | os.O_CREAT | os.O_EXCL, mode, dir_fd=folder)
        is_new = True
    except FileExistsError:
        if _has_digest(folder, name, digest):
            return True
        try:
            target = os.open(name, flags | os.O_NONBLOCK, dir_fd=folder)
        except OSError:  # a link, a folder, or not writable
            return False
        is_new = False
    with os.fdopen(target, "r+b") as written:
        file.seek(0)
        if not is_new and not _is_beginning(written, file):
            return False
        try:
            copy(file, written)
            written.seek(0)
            if digest_of(written) != digest:
                raise OSError(errno.EIO, "what was written reads differently")
        except OSError:
            if is_new:
                os.unlink(name, dir_fd=folder)
            raise
    return True


def _is_beginning(part: BinaryIO, complete: BinaryIO) -> bool:
    """Tell whether `part` is a beginning of `complete`; both are then positioned at its end."""
    length = os.fstat(part.fileno()).st_size
    if length >= os.fstat(complete.fileno()).st_size:
        return False
    while length > 0:
        step = min(length, READ_SIZE)
        if part.read(step) != complete.read(step):
            return False
        length -= step
    return True
