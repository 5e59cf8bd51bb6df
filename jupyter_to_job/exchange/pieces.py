"""Pieces of job directories in files: the port's side of the exchange on a file system."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import BinaryIO

from job_runner.protocol import documents

from ..domain.errors import BadInput, Conflict, Damaged, Unavailable, WrongOffset, no_job
from ..domain.names import is_job_name
from .ownership import is_own_folder
from .uploads import Upload

_PASSING = frozenset(
    [errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EINTR,
     errno.ESTALE, errno.ETIMEDOUT, errno.EHOSTDOWN, errno.EHOSTUNREACH, errno.ENETDOWN,
     errno.ENETUNREACH, errno.ECONNREFUSED, errno.ECONNRESET, errno.ENOTCONN, errno.ESHUTDOWN,
     errno.EREMOTEIO, errno.EKEYEXPIRED]
)  # fmt: skip
"""Errors of this process or of a network, which say nothing about the file."""
_BAD_PATH = (errno.ENOTDIR, errno.EEXIST, errno.EISDIR, errno.ENAMETOOLONG, errno.ELOOP)
"""Errors of a path that can never be written: it leads through a file, say."""
MAX_PATH, MAX_DEPTH, MAX_NAME = 1024, 64, 255
"""Of the path of a job's file: its characters, its parts, and the bytes of each part."""


class FilePieces:
    """Implements `exchange.Exchange` on the job directories below `root`.

    The methods that write raise Unavailable when the disk is full or cannot be written to.
    """

    def __init__(self, root: Path, *, is_private: bool = True) -> None:
        self.root = root
        self._is_private = is_private

    def directory(self, job: str) -> Path:
        """Return the job's directory. Raises NotFound, and as `reading` if it cannot be seen."""
        path = self.root / job
        with reading(job):
            if not is_job_name(job) or not self._is_job(path):
                raise no_job(job)
        return path

    def _is_job(self, path: Path) -> bool:
        """Tell whether a folder is a job's, and not another user's. Raises OSError."""
        if self._is_private:
            return is_own_folder(path)
        try:
            return stat.S_ISDIR(os.lstat(path).st_mode)
        except (FileNotFoundError, NotADirectoryError):
            return False

    def read(self, job: str, path: str, offset: int = 0) -> bytes | None:
        """See `Exchange.read`."""
        file = self.open(job, path)
        if file is None:
            return None
        with file:
            file.seek(offset)
            return file.read()

    def open(self, job: str, path: str) -> BinaryIO | None:
        """Open one piece, which may be larger than memory; None if it is not there.

        Raises NotFound, and Damaged where it is no regular file.
        """
        with reading(f"{job}/{path}"):
            try:
                return documents.open_regular(path_inside(self.directory(job), path))
            except (FileNotFoundError, NotADirectoryError):
                return None

    def size(self, job: str, path: str) -> int | None:
        """See `Exchange.size`."""
        with reading(f"{job}/{path}"):
            try:
                return path_inside(self.directory(job), path).stat().st_size
            except (FileNotFoundError, NotADirectoryError):
                return None

    def put(self, job: str, path: str, data: bytes | Upload) -> None:
        """See `Exchange.put`; the bytes may be an upload, which is not read into memory."""
        target = path_inside(self.directory(job), path)
        upload = data if isinstance(data, Upload) else Upload.of(data)
        with writing(job):
            make_folders(target.parent)
            with contextlib.suppress(documents.DocumentError):  # something else than a file
                if upload.place(target) or upload.equals(target):
                    return
        raise Conflict(f"{job}/{path} is there with other bytes.")

    def append(self, job: str, path: str, offset: int, data: bytes | Upload) -> int:
        """See `Exchange.append`; the bytes may be an upload, which is not read into memory."""
        target = path_inside(self.directory(job), path)
        upload = data if isinstance(data, Upload) else Upload.of(data)
        with writing(job):
            make_folders(target.parent)
            descriptor = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW, 0o600)
            with os.fdopen(descriptor, "wb") as file:
                length = file.seek(0, os.SEEK_END)
                if length != offset:
                    raise WrongOffset(f"{job}/{path} ends at {length}, not at {offset}.", length)
                file.writelines(upload.chunks())
                file.flush()
                os.fsync(file.fileno())
            if length == 0:
                documents.sync_directory(target.parent)  # its name must survive a crash, too
        return length + upload.size


@contextlib.contextmanager
def reading(label: str) -> Iterator[None]:
    """Raise Damaged for a piece of a job that cannot be read, Unavailable if it can be later."""
    try:
        yield
    except OSError as error:
        raise_if_passing(label, error)
        raise Damaged(f"{label} cannot be read: {error.strerror}.") from error
    except ValueError as error:  # no document, or a field of a wrong type
        raise Damaged(f"{label} cannot be read: {error}.") from error


def raise_if_passing(label: str, error: OSError) -> None:
    """Raise Unavailable for an error that says nothing about what was to be read."""
    if error.errno in _PASSING:
        message = f"{label} cannot be read now: {error.strerror}."
        raise Unavailable(message, "Try again in a moment.") from error


@contextlib.contextmanager
def writing(job: str = "") -> Iterator[None]:
    """Translate errors of the file system into errors of our tree."""
    try:
        yield
    except OSError as error:
        if job and error.errno == errno.ENOENT:  # removed meanwhile
            raise no_job(job) from error
        if job and error.errno in _BAD_PATH:
            raise BadInput(f"{job} cannot have a file there: {error.strerror}.") from error
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise Unavailable(
                "The exchange's disk is full.", "Make space, then try again."
            ) from error
        raise Unavailable(
            f"The exchange cannot be written to: {error.strerror}.",
            "`jupyter-to-job doctor` says how to mend it.",
        ) from error


def make_folders(folder: Path) -> None:
    """Make a folder and those above it, all private: `mkdir` sets the mode of the last one only."""
    if not folder.is_dir():
        make_folders(folder.parent)
        folder.mkdir(mode=0o700, exist_ok=True)


def path_inside(root: Path, path: str) -> Path:
    """Return root/path for a relative path that stays inside. Raises BadInput."""
    parts = PurePosixPath(path).parts
    if not parts or path.startswith("/") or ".." in parts or "\0" in path:
        raise BadInput(f"{path!r} is no path inside a job.")
    return root.joinpath(*parts)


def require_short_path(path: str) -> None:
    """Raise BadInput for a path that is longer or deeper than those of a job's files may be.

    Folders of any depth would exhaust the stack of what walks them.
    """
    parts = path.split("/")
    is_long = len(path) > MAX_PATH or len(parts) > MAX_DEPTH
    if is_long or any(len(part.encode(errors="replace")) > MAX_NAME for part in parts):
        raise BadInput(
            f"The path {path[:40]}... is too long.",
            f"A path may have {MAX_PATH} characters and {MAX_DEPTH} parts.",
        )
