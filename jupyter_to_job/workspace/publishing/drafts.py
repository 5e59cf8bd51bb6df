"""Temporary files and folders beside a target, and the removal of those of killed processes.

Each draft is locked by the process that makes it. A lock ends with its process, so a draft with a
free lock is abandoned: the next process that publishes in that folder removes it. The lock is
always a file's, beside a draft that is a folder: NFS shows other hosts no locks of folders.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import re
import secrets
import time
from collections.abc import Iterator
from typing import BinaryIO

from job_runner.protocol.folders import open_folder

from ..paths import read_chunks

LEFTOVER_SECONDS = 3600.0
"""Age at which a draft is abandoned on file systems without locks."""
_NAME = re.compile(r"\.jupyter-to-job-[0-9a-f]{16}\.tmp")
_FOLDER = ".d"
"""What the name of a draft that is a folder has after that of the file with its lock."""


def draft_name() -> str:
    """Return a new name: hidden, short whatever the target's name is, and recognisable."""
    return f".jupyter-to-job-{secrets.token_hex(8)}.tmp"


@contextlib.contextmanager
def draft_file(folder: int, mode: int = 0o666) -> Iterator[tuple[str, BinaryIO]]:
    """Make a file in an open folder; yield its name there and the file. Removed at the end.

    Its rights are `mode` less the user's umask: it becomes one of their files.
    """
    name, descriptor = _make_locked(folder, mode)
    with os.fdopen(descriptor, "w+b") as file:
        try:
            yield name, file
        finally:
            _remove(name, folder)


@contextlib.contextmanager
def draft_folder(folder: int) -> Iterator[tuple[str, int]]:
    """Make a folder in an open folder; yield its name there and its descriptor.

    It is removed at the end with its content, unless it was renamed.
    """
    with draft_file(folder, 0o600) as (lock, _):
        name = lock + _FOLDER
        os.mkdir(name, dir_fd=folder)
        with open_folder(folder, [name]) as descriptor:
            yield name, descriptor


def remove_drafts(folder: int) -> None:
    """Remove the drafts that killed publishers left in an open folder."""
    with os.scandir(folder) as entries:
        names = [entry.name for entry in entries if _NAME.fullmatch(entry.name)]
    for name in names:
        with contextlib.suppress(OSError):  # another user's, or removed already
            status = os.stat(name, dir_fd=folder, follow_symlinks=False)
            if status.st_uid == os.geteuid():
                _remove_abandoned(name, folder)


def remove_tree(name: str, folder: int) -> None:
    """Remove a file, or a folder with its content, if it exists; no link is followed."""
    try:
        os.unlink(name, dir_fd=folder)
    except FileNotFoundError:
        return
    except (IsADirectoryError, PermissionError):  # on macOS a folder raises the latter
        for _, folders, files, base in os.fwalk(name, topdown=False, dir_fd=folder):
            for file in files:
                os.unlink(file, dir_fd=base)
            for below in folders:
                _remove_folder(below, base)
        with contextlib.suppress(FileNotFoundError):
            os.rmdir(name, dir_fd=folder)


def copy(source: BinaryIO, target: BinaryIO) -> str:
    """Copy the rest of a file, durably, and return the digest of the copied bytes.

    Zeros become a hole: a sparse file of some terabytes takes no room here, either.
    """
    digest = hashlib.sha256()
    for chunk in read_chunks(source):
        if chunk.count(0) == len(chunk):
            target.seek(len(chunk), os.SEEK_CUR)
        else:
            target.write(chunk)
        digest.update(chunk)
    target.truncate()
    target.flush()
    os.fsync(target.fileno())
    return digest.hexdigest()


def digest_of(file: BinaryIO) -> str:
    """Return the digest of the rest of an open file."""
    digest = hashlib.sha256()
    for chunk in read_chunks(file):
        digest.update(chunk)
    return digest.hexdigest()


def _make_locked(folder: int, mode: int) -> tuple[str, int]:
    """Make a file and lock it, where the file system has locks."""
    while True:
        name = draft_name()
        descriptor = os.open(name, os.O_RDWR | os.O_CREAT | os.O_EXCL, mode, dir_fd=folder)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.fstat(descriptor).st_nlink > 0:
                return name, descriptor
        except BlockingIOError:
            pass
        except OSError:
            return name, descriptor
        # Another process removed this one before it was locked.
        os.close(descriptor)


def _remove_folder(name: str, folder: int) -> None:
    try:
        os.rmdir(name, dir_fd=folder)
    except NotADirectoryError:  # a link to a folder
        os.unlink(name, dir_fd=folder)


def _remove(name: str, folder: int) -> None:
    """Remove a draft whose lock this process holds: the file with the lock last."""
    remove_tree(name + _FOLDER, folder)
    remove_tree(name, folder)


def _remove_abandoned(name: str, folder: int) -> None:
    """Remove a draft if no process holds its lock any more."""
    try:
        descriptor = os.open(name, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=folder)
    except IsADirectoryError:  # of an earlier version
        if _last_change(name, folder) < time.time() - LEFTOVER_SECONDS:
            remove_tree(name, folder)
        return
    try:
        if _lock_abandoned(descriptor, name, folder):
            _remove(name, folder)
    finally:
        os.close(descriptor)


def _lock_abandoned(descriptor: int, name: str, folder: int) -> bool:
    """Take the lock of a draft; tell whether no process held it any more."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return _last_change(name, folder) < time.time() - LEFTOVER_SECONDS
    return True


def _last_change(name: str, folder: int) -> float:
    """Return when something was last written to a draft, or made in it, in unix seconds."""
    with contextlib.suppress(FileNotFoundError):
        return os.stat(name + _FOLDER, dir_fd=folder, follow_symlinks=False).st_mtime
    return os.stat(name, dir_fd=folder, follow_symlinks=False).st_mtime
