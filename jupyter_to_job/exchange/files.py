"""The exchange on a file system: the local backend's, and the gateway's own on its volume.

A job's directory appears whole, by one rename; that rename is also what decides who got a name.
"""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import shutil
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import cached_property, partial
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO

from job_runner.protocol import documents, layout
from job_runner.protocol.outcome import Outcome, read_outcome

from ..domain.errors import BadInput, Conflict, Damaged, NotFound, Unavailable
from ..domain.names import is_job_name
from .filesystem import is_network
from .request import InputFile, Request
from .stamps import StampCache, stamp_of

LEFTOVER_SECONDS = 3600.0
KEYS = ".keys"
MAX_CACHED_REQUESTS = 1000
"""Requests that are kept in memory: they never change, and the queue is read all the time."""
Writer = Callable[[Path], InputFile]
"""Writes one input at the path it is given, and returns its record."""


class FileExchange:
    """Job directories below `root`, private to the user (0700).

    Whatever writes raises Unavailable when the disk is full or the exchange cannot be written to;
    nothing half made is left then.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self._listing = threading.Lock()
        self._names: StampCache[Path, frozenset[str]] = StampCache()
        self._requests: StampCache[str, Request] = StampCache(MAX_CACHED_REQUESTS)

    @cached_property
    def is_local(self) -> bool:
        """Whether times of files can be relied on here: on a network file system they cannot."""
        return not is_network(self.root)

    def sweep(self) -> None:
        """Delete what killed processes left behind, an hour later: drafts, graves, empty claims."""
        for path in [*self.root.glob(".new-*"), *self.root.glob(".old-*")]:
            if _is_leftover(path):
                shutil.rmtree(path, ignore_errors=True)
        for path in self.root.glob(f"{KEYS}/*"):
            with contextlib.suppress(FileNotFoundError):
                is_draft = path.name.startswith(".")
                in_use = not is_draft and (self.root / _claimed_name(path)).is_dir()
                if not in_use and _is_leftover(path):
                    path.unlink()

    def prepare(self) -> None:
        """Make the exchange's own directory, if it is not there yet."""
        self.root.mkdir(mode=0o700, parents=True, exist_ok=True)

    def create(
        self,
        request: Request,
        snapshot: bytes,
        inputs: Mapping[str, Writer] | None = None,
        origin: dict[str, Any] | None = None,
        confirm: Callable[[], None] = lambda: None,
    ) -> Request | None:
        """Record a new job, all at once, with its inputs; return what was recorded.

        None if the name is taken already. `confirm` is called when all is written, and may still
        forbid it by raising.
        """
        draft = self.root / f".new-{secrets.token_hex(8)}"
        with _writing():
            self.prepare()
            draft.mkdir(mode=0o700)
            try:
                frozen = _write_inputs(draft / layout.INPUTS, inputs) if inputs else ()
                recorded = replace(request, inputs=frozen)
                files = {layout.SNAPSHOT: snapshot}
                if origin is not None:
                    files[layout.ORIGIN] = documents.encode(origin)
                files[layout.REQUEST] = documents.encode(recorded.to_document())
                documents.write_new(draft, files)
                confirm()
                return recorded if self._named(draft, request.name) else None
            finally:
                shutil.rmtree(draft, ignore_errors=True)

    def claim(self, key: str, name: str) -> str:
        """Return the name of the job that has `key` (a file name): `name` for who asks first.

        The claim decides the name, and whoever holds it creates the job: so a claimant that was
        killed in between leaves nothing that others would have to wait for.
        """
        path = self.root / KEYS / key
        with _writing():
            self.prepare()
            _make_folders(path.parent)
            while True:
                if _claim(path, name):
                    return name
                with contextlib.suppress(FileNotFoundError):  # swept just now
                    os.utime(path, follow_symlinks=False)  # in use: `sweep` is to leave it
                    return _claimed_name(path)

    def claimed(self, key: str) -> str | None:
        """Return the name of the job that has `key`, if anybody has asked for one."""
        try:
            return _claimed_name(self.root / KEYS / key)
        except FileNotFoundError:
            return None

    def disclaim(self, key: str) -> None:
        """Take back the claim of a submission that came to nothing."""
        (self.root / KEYS / key).unlink(missing_ok=True)

    def jobs(self) -> frozenset[str]:
        """Return the names of all jobs: the very same set while none came or went."""
        stamp = stamp_of(self.root) if self.is_local else None
        return self._names.get(self.root, stamp, self._read_names)

    def _read_names(self) -> frozenset[str]:
        try:
            # One after the other: each entry gives Python's lock away, and two threads that did so
            # 10,000 times would do little else.
            with self._listing, os.scandir(self.root) as entries:
                folders = [e.name for e in entries if e.is_dir(follow_symlinks=False)]
        except FileNotFoundError:
            return frozenset()
        return frozenset(filter(is_job_name, folders))

    def directory(self, job: str) -> Path:
        """Return the job's directory. Raises NotFound."""
        path = self.root / job
        if not is_job_name(job) or not (path / layout.REQUEST).is_file():
            raise NotFound(f"There is no job {job!r}.", "See `jupyter-to-job list --all`.")
        return path

    def request(self, job: str) -> Request:
        """Return what was asked. Raises NotFound or Damaged."""
        # Deleted and submitted again under one key, a job may get the inode of the one before: so
        # one that is younger than clocks are coarse has no stamp, and is read.
        stamp = stamp_of(f"{self.root}/{job}/{layout.REQUEST}") if is_job_name(job) else None
        return self._requests.get(job, stamp, partial(self._read_request, job))

    def _read_request(self, job: str) -> Request:
        return Request.from_document(self.document(job, layout.REQUEST) or {})

    def document(self, job: str, path: str, *fields: str) -> dict[str, Any] | None:
        """Return one JSON document of the job, or None if it is not there.

        Raises NotFound, or Damaged where it cannot be read or has not all of `fields`.
        """
        try:
            document = documents.read_document(self.directory(job) / path)
            if document is not None and not document.keys() >= set(fields):
                raise documents.DocumentError(f"it needs {', '.join(fields)}")
            return document
        except documents.DocumentError as error:
            raise Damaged(f"{job}/{path} cannot be read: {error}.") from error
        except OSError as error:
            raise Damaged(f"{job}/{path} cannot be read: {error.strerror}.") from error

    def outcome(self, job: str, attempt: int) -> Outcome | None:
        """Return how an attempt ended, or None while it has not. Raises NotFound or Damaged."""
        directory = layout.attempt_dir(self.directory(job), attempt)
        try:
            return read_outcome(directory)
        except documents.DocumentError as error:
            raise Damaged(f"{job}/{directory.name} cannot be read: {error}.") from error
        except OSError as error:
            raise Damaged(f"{job}/{directory.name} cannot be read: {error.strerror}.") from error

    def write(self, job: str, path: str, document: dict[str, Any]) -> None:
        """Write or replace a document."""
        with _writing(job):
            documents.write_document(self.directory(job) / path, document)

    def write_once(self, job: str, path: str, document: dict[str, Any]) -> bool:
        """Write a document that is never rewritten. False if there is one."""
        with _writing(job):
            return documents.write_document_once(self.directory(job) / path, document)

    def remove(self, job: str) -> None:
        """Forget a job: renamed away first, so that no half of it is ever seen."""
        grave = self.root / f".old-{secrets.token_hex(8)}"
        with _writing(job):
            self.directory(job).rename(grave)
        shutil.rmtree(grave, ignore_errors=True)

    # The port -------------------------------------------------------------------------------

    def read(self, job: str, path: str, offset: int = 0) -> bytes | None:
        """See `Exchange.read`."""
        file = self.open(job, path)
        if file is None:
            return None
        with file:
            file.seek(offset)
            return file.read()

    def open(self, job: str, path: str) -> BinaryIO | None:
        """Open one piece, which may be larger than memory; None if it is not there."""
        try:
            return _inside(self.directory(job), path).open("rb")
        except (FileNotFoundError, IsADirectoryError, NotADirectoryError):
            return None

    def size(self, job: str, path: str) -> int | None:
        """See `Exchange.size`."""
        try:
            return _inside(self.directory(job), path).stat().st_size
        except (FileNotFoundError, NotADirectoryError):
            return None

    def put(self, job: str, path: str, data: bytes) -> None:
        """See `Exchange.put`."""
        target = _inside(self.directory(job), path)
        with _writing(job):
            _make_folders(target.parent)
            if not documents.write_bytes_once(target, data) and target.read_bytes() != data:
                raise Conflict(f"{job}/{path} is there with other bytes.")

    def append(self, job: str, path: str, offset: int, data: bytes) -> int:
        """See `Exchange.append`."""
        target = _inside(self.directory(job), path)
        with _writing(job):
            _make_folders(target.parent)
            descriptor = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW, 0o600)
            with os.fdopen(descriptor, "wb") as file:
                length = file.seek(0, os.SEEK_END)
                if length != offset:
                    raise WrongOffset(f"{job}/{path} ends at {length}, not at {offset}.", length)
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            if length == 0:
                documents.sync_directory(target.parent)  # its name must survive a crash, too
        return length + len(data)

    # Inside ---------------------------------------------------------------------------------

    def _named(self, draft: Path, name: str) -> bool:
        """Give a draft its name, durably. False if the name is taken."""
        try:
            draft.rename(self.root / name)
        except OSError:
            if (self.root / name).exists():
                return False
            raise
        documents.sync_directory(self.root)
        return True


class WrongOffset(Conflict):
    """An append that does not begin at the end; `length` is where it must."""

    code = "wrong_offset"

    def __init__(self, message: str, length: int) -> None:
        super().__init__(message, "Send from there.")
        self.length = length


@contextlib.contextmanager
def _writing(job: str = "") -> Iterator[None]:
    """Turn what keeps the exchange from being written to into errors of our tree."""
    try:
        yield
    except OSError as error:
        if job and error.errno == errno.ENOENT:  # removed meanwhile
            raise NotFound(f"There is no job {job!r}.") from error
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise Unavailable(
                "The exchange's disk is full.", "Make space, then try again."
            ) from error
        raise Unavailable(
            f"The exchange cannot be written to: {error.strerror}.",
            "`jupyter-to-job doctor` says how to mend it.",
        ) from error


def _write_inputs(folder: Path, inputs: Mapping[str, Writer]) -> tuple[InputFile, ...]:
    """Write the inputs below `folder`, so that their names survive a crash, too."""
    frozen = []
    for path, write in inputs.items():
        target = _inside(folder, path)
        _make_folders(target.parent)
        frozen.append(write(target))
    for base, _, _ in os.walk(folder):
        documents.sync_directory(Path(base))
    return tuple(frozen)


def _is_leftover(path: Path) -> bool:
    try:
        return path.lstat().st_mtime < time.time() - LEFTOVER_SECONDS
    except FileNotFoundError:
        return False


def _claim(path: Path, name: str) -> bool:
    """Make a claim, if there is none. False if there is.

    A symbolic link is there all at once, and safe with the job's own directory: nothing to wait
    for the disk for. Claims that a power cut loses cost nothing: the job says whose key it has.
    """
    try:
        path.symlink_to(name)
    except FileExistsError:
        return False
    except OSError:  # a file system without symbolic links
        return documents.write_bytes_once(path, name.encode())
    return True


def _claimed_name(path: Path) -> str:
    """Return the name that a claim holds. Raises FileNotFoundError."""
    return os.readlink(path) if path.is_symlink() else path.read_text()  # noqa: PTH115 - text


def _make_folders(folder: Path) -> None:
    """Make a folder and those above it, all of them private: `mkdir` sees to the last one only."""
    if not folder.is_dir():
        _make_folders(folder.parent)
        folder.mkdir(mode=0o700, exist_ok=True)


def _inside(root: Path, path: str) -> Path:
    """Return root/path for a relative path that stays inside. Raises BadInput."""
    parts = PurePosixPath(path).parts
    if not parts or path.startswith("/") or ".." in parts or "\0" in path:
        raise BadInput(f"{path!r} is no path inside a job.")
    return root.joinpath(*parts)
