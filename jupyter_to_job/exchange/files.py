"""The exchange on a file system: the local backend's, and the gateway's own on its volume.

A complete job directory appears by one rename. That rename also decides which job gets a name.
"""

from __future__ import annotations

import contextlib
import logging
import os
import secrets
import shutil
import threading
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any, TypeVar

from job_runner.protocol import documents, layout, times
from job_runner.protocol.fields import read_fields
from job_runner.protocol.outcome import Outcome, read_outcome

from ..domain.errors import Damaged, Unavailable
from ..domain.names import is_job_name
from . import index
from .ballast import with_ballast
from .disk_use import remove_folder
from .filesystem import is_network
from .job_drafts import is_abandoned, is_old, locked, require_inputs
from .ownership import require_own
from .pieces import FilePieces, make_folders, path_inside, raise_if_passing, reading, writing
from .request import InputFile, Request, UnreadableRequest
from .stamps import StampCache, stamp_of

KEYS = ".keys"
CACHED_REQUESTS = 32 << 20
"""Bytes of requests, as files, that are kept in memory: they never change, and the queue is read
all the time. In memory each takes 4 to 11 times as much, most of it for the packages."""
_log = logging.getLogger(__name__)
_Record = TypeVar("_Record")
Writer = Callable[[Path], InputFile]
"""Writes one input to a path, and returns its record."""


class FileExchange(FilePieces):
    """Job directories below `root`, private to the user (0700).

    `is_private`: jobs of other users of the operating system are ignored. A gateway's volume, which
    nobody else reaches, may have changed its user.

    `on_removal` is called with the folder of each job that is removed, before it is deleted.

    Every method that writes raises Unavailable when the disk is full or cannot be written to, and
    leaves nothing incomplete behind.
    """

    def __init__(self, root: Path, *, is_private: bool = True) -> None:
        super().__init__(root, is_private=is_private)
        self._listing = threading.Lock()
        self._names: StampCache[Path, frozenset[str]] = StampCache()
        self._known_names: frozenset[str] = frozenset()
        self._has_unseen = False
        """Whether a name could not be looked at the last time, which changes no stamp."""
        self._requests: StampCache[str, Request] = StampCache(CACHED_REQUESTS, self._request_size)
        self.on_removal: Callable[[Path], object] = lambda _folder: None

    @cached_property
    def is_local(self) -> bool:
        """Whether times of files can be relied on here: on a network file system they cannot."""
        return not is_network(self.root)

    def remove_leftovers(self) -> None:
        """Delete drafts, removed jobs and unused claims that killed processes left an hour ago.

        Also delete other versions' indexes that were not written to for days.
        """
        for path in [*self.root.glob(".new-*"), *self.root.glob(".old-*")]:
            try:
                if is_abandoned(path):
                    remove_folder(path)
            except Exception as error:  # one of them must not keep the others
                _log.warning("%s cannot be removed: %s", path.name, error)
        for path in self.root.glob(f"{KEYS}/*"):
            with contextlib.suppress(FileNotFoundError):
                is_draft = path.name.startswith(".")
                in_use = not is_draft and (self.root / _read_claim(path)).is_dir()
                if not in_use and is_old(path):
                    path.unlink()
        for path in self.root.glob(f"{index.FOLDER}/*"):
            with contextlib.suppress(OSError):
                if path.name != index.FILE and is_old(path, index.UNUSED_SECONDS):
                    path.unlink()

    def prepare(self) -> None:
        """Make the exchange's own directory, if it does not exist."""
        self.root.mkdir(mode=0o700, parents=True, exist_ok=True)

    def _require_own(self) -> None:
        if self._is_private:
            require_own(self.root)

    def create(
        self,
        request: Request,
        snapshot: bytes,
        inputs: Mapping[str, Writer] | None = None,
        origin: dict[str, Any] | None = None,
        confirm: Callable[[], None] = lambda: None,
        *,
        notify: bool = False,
    ) -> Request | None:
        """Record a new job atomically, with its inputs; return the recorded request.

        None if another job has the name. `confirm` is called when all files are written, and may
        raise to prevent the job. `notify`: hooks may have to be told of it.
        """
        draft = self.root / f".new-{secrets.token_hex(8)}"
        with writing():
            self.prepare()
            self._require_own()
            draft.mkdir(mode=0o700)
            try:
                with locked(draft):
                    frozen = _write_inputs(draft / layout.INPUTS, inputs) if inputs else ()
                    recorded = replace(request, inputs=frozen)
                    files = {layout.SNAPSHOT: snapshot}
                    if origin is not None:
                        files[layout.ORIGIN] = documents.encode(origin)
                    if notify:
                        files[layout.NOTIFY] = documents.encode({"time": request.submitted})
                    files[layout.REQUEST] = documents.encode(recorded.to_document())
                    documents.write_new(draft, files)
                    _require_links(draft / layout.REQUEST)
                    require_inputs(draft / layout.INPUTS, frozen)
                    confirm()
                    return recorded if self._rename_to(draft, request.name) else None
            finally:
                shutil.rmtree(draft, ignore_errors=True)

    def claim(self, key: str, name: str) -> str:
        """Return the name of the job that has `key` (a file name): `name` for the first caller.

        The claim decides the name, and every holder may create the job: so nobody waits for a
        claimant that was killed in between.
        """
        path = self.root / KEYS / key
        with writing():
            self.prepare()
            self._require_own()
            make_folders(path.parent)
            while True:
                if _claim(path, name):
                    return name
                with contextlib.suppress(FileNotFoundError):  # swept just now
                    os.utime(path, follow_symlinks=False)  # keeps `remove_leftovers` from it
                    return _read_claim(path)

    def claimed_name(self, key: str) -> str | None:
        """Return the name of the job that has `key`, if it was claimed."""
        try:
            return _read_claim(self.root / KEYS / key)
        except FileNotFoundError:
            return None

    def release_claim(self, key: str) -> None:
        """Remove the claim of a submission that failed."""
        (self.root / KEYS / key).unlink(missing_ok=True)

    def jobs(self) -> frozenset[str]:
        """Return the names of all jobs: the same object while none is added or removed.

        What other users put there is left out. Raises OSError, Unavailable if that may pass.
        """
        stamp = stamp_of(self.root) if self.is_local else None
        names = self._names.get(self.root, stamp, self._read_names)
        if self._has_unseen:
            self._names.forget(self.root)
        return names

    def _read_names(self) -> frozenset[str]:
        with self._listing:
            try:
                entries = os.listdir(self.root)  # noqa: PTH208 - text, where there are many
            except FileNotFoundError:
                return frozenset()
            except OSError as error:
                raise_if_passing("The exchange", error)
                raise
            known_names, self._has_unseen = self._known_names, False
            names = known_names.intersection(entries)
            new = [name for name in entries if name not in known_names and is_job_name(name)]
            if new or len(names) != len(known_names):
                jobs = set()
                for name in new:
                    try:
                        if self._is_job(self.root / name):
                            jobs.add(name)
                    except OSError:  # one job does not hide the others
                        self._has_unseen = True
                self._known_names = names.union(jobs)
            return self._known_names

    def request(self, job: str) -> Request:
        """Return the job's request. Raises NotFound or Damaged."""
        # A job that is deleted and submitted again under one key may get the same inode. A young
        # file has no stamp, and is read again.
        stamp = stamp_of(f"{self.root}/{job}/{layout.REQUEST}") if is_job_name(job) else None
        return self._requests.get(job, stamp, partial(self._read_request, job))

    def forget_request(self, job: str) -> None:
        """Drop a request from memory: the index has what lists need, and `request` reads it."""
        self._requests.forget(job)

    def _request_size(self, job: str) -> int:
        try:
            return os.stat(f"{self.root}/{job}/{layout.REQUEST}").st_size  # noqa: PTH116
        except OSError:  # it was removed just now
            return CACHED_REQUESTS + 1

    def find_request(self, job: str) -> Request:
        """Return the job's request, an UnreadableRequest if that is damaged. Raises NotFound."""
        try:
            return self.request(job)
        except Damaged as error:
            try:
                changed_at = self.directory(job).stat().st_ctime
            except (OSError, Damaged):
                changed_at = 0.0
            return UnreadableRequest.of(job, times.from_unix(changed_at), error)

    def _read_request(self, job: str) -> Request:
        document = self.document(job, layout.REQUEST)
        if document is None:
            self.directory(job)  # it may have been removed just now
            raise Damaged(f"{job}/{layout.REQUEST} is missing.")
        with reading(f"{job}/{layout.REQUEST}"):
            request = Request.from_document(document)
        if request.name != job:
            raise Damaged(
                f"{job}/{layout.REQUEST} is of the job {request.name}.",
                "A job's directory must keep its name.",
            )
        return request

    def has(self, job: str, path: str) -> bool:
        """Tell whether the job has this piece, readable or not. Raises NotFound."""
        return os.path.lexists(self.directory(job) / path)

    def document(self, job: str, path: str) -> dict[str, Any] | None:
        """Return one JSON document of the job, or None if it does not exist.

        Raises NotFound and Damaged.
        """
        with reading(f"{job}/{path}"):
            return documents.read_document(self.directory(job) / path)

    def record(self, job: str, path: str, cls: type[_Record]) -> _Record | None:
        """Return one document as a dataclass of `records`, or None if it does not exist.

        Raises NotFound and Damaged.
        """
        document = self.document(job, path)
        with reading(f"{job}/{path}"):
            return None if document is None else read_fields(cls, document)

    def outcome(self, job: str, attempt: int) -> Outcome | None:
        """Return the outcome of an attempt, None before it ends. Raises NotFound or Damaged."""
        directory = layout.attempt_dir(self.directory(job), attempt)
        with reading(f"{job}/{directory.name}"):
            return read_outcome(directory)

    def write(self, job: str, path: str, document: dict[str, Any]) -> None:
        """Write or replace a document."""
        with writing(job):
            documents.write_document(self.directory(job) / path, document)

    def write_once(self, job: str, path: str, document: dict[str, Any]) -> bool:
        """Write a document that is never rewritten. False if it exists."""
        with writing(job):
            return documents.write_document_once(self.directory(job) / path, document)

    def write_wish(self, job: str, path: str, document: dict[str, Any]) -> bool:
        """Write a cancel.json or delete.json as `write_once` does, on a full disk, too."""
        with writing(job):
            file = self.directory(job) / path
            return with_ballast(self.root, partial(documents.write_document_once, file, document))

    def remove(self, job: str) -> None:
        """Remove a job. It is renamed first, so that no reader finds a part of it."""
        removed = self.root / f".old-{secrets.token_hex(8)}"
        with writing(job):
            with_ballast(self.root, partial(self.directory(job).rename, removed))
        self.on_removal(removed)
        remove_folder(removed)

    def _rename_to(self, draft: Path, name: str) -> bool:
        """Give a draft its name, durably. False if another job has it."""
        try:
            draft.rename(self.root / name)
        except OSError:
            if (self.root / name).exists():
                return False
            raise
        documents.sync_directory(self.root)
        return True


def _require_links(file: Path) -> None:
    """Raise Unavailable on a file system where no run could ever record its end."""
    link = file.with_name(".link")
    try:
        os.link(file, link)
        link.unlink()
    except OSError as error:
        raise Unavailable(
            f"The exchange's file system has no hard links: {error.strerror}.",
            "Set JUPYTER_TO_JOB_EXCHANGE to a folder on a local disk.",
        ) from error


def _write_inputs(folder: Path, inputs: Mapping[str, Writer]) -> tuple[InputFile, ...]:
    """Write the inputs below `folder`; their names survive a crash, too."""
    frozen = []
    for path, write in inputs.items():
        target = path_inside(folder, path)
        make_folders(target.parent)
        frozen.append(write(target))
    for base, _, _ in os.walk(folder):
        documents.sync_directory(Path(base))
    return tuple(frozen)


def _claim(path: Path, name: str) -> bool:
    """Make a claim. False if it exists.

    A symbolic link is made atomically, and needs no fsync of its own: the job's directory is
    synced later. A claim that a power cut loses costs nothing, because the job has its key.
    """
    try:
        path.symlink_to(name)
    except FileExistsError:
        return False
    except OSError:  # a file system without symbolic links
        return documents.write_bytes_once(path, name.encode())
    return True


def _read_claim(path: Path) -> str:
    """Return the name in a claim. Raises FileNotFoundError."""
    return os.readlink(path) if path.is_symlink() else path.read_text()  # noqa: PTH115 - text
