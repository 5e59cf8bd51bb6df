"""How much of the disk folders take, and their removal: a file with several names is there once.

Inputs are hard links to the blobs that were sent, and those of a rerun to the first job's. What a
run has mounted in its scratch folder is elsewhere: it is not counted, and never removed.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
from collections import Counter
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

Inode = tuple[int, int]
"""Device and number: what the names of one file have in common."""


def bytes_on_disk(folder: Path, counted: set[Inode] | None = None) -> int:
    """Return the bytes that a folder and all in it take, without files that are in `counted`.

    Its files are added to that set.
    """
    counted = set() if counted is None else counted
    total = 0
    for status in _entries(folder):
        if _inode(status) not in counted:
            counted.add(_inode(status))
            total += status.st_blocks * 512
    return total


def freed_with(folder: Path) -> int:
    """Return the bytes that are free when a folder is gone: of files with no name elsewhere."""
    entries, names = {}, Counter[Inode]()
    for status in _entries(folder):
        entries[_inode(status)] = status
        names[_inode(status)] += 1
    return sum(
        status.st_blocks * 512
        for inode, status in entries.items()
        if stat.S_ISDIR(status.st_mode) or names[inode] >= status.st_nlink
    )


def remove_folder(folder: Path) -> None:
    """Remove a folder as far as that is possible; not one that has a mount in it."""
    if not any(mounts for _, _, mounts in _walk(folder)):
        shutil.rmtree(folder, ignore_errors=True)


def free_bytes(folder: Path) -> int:
    """Return how many bytes of a folder's disk are free, fewer where its inodes run out first."""
    disk, status = shutil.disk_usage(folder), os.statvfs(folder)
    return available_bytes(disk.free, disk.total, status.f_favail, status.f_files)


def available_bytes(free: int, size: int, free_inodes: int, inodes: int) -> int:
    """Return the free bytes of a disk, or as large a share of it as of its inodes if that is less.

    Each file and folder takes an inode, of which many file systems have a fixed number. Where none
    is free nothing can be made, however many bytes are.
    """
    # Some file systems have no such number; CephFS has one that says nothing, and -1 as free.
    if not inodes or not 0 <= free_inodes <= inodes:
        return free
    return min(free, size * free_inodes // inodes)


def _entries(folder: Path) -> Iterator[os.stat_result]:
    """Yield the status of a folder, those below, and each file, once for each of its names."""
    for base, files, _ in _walk(folder):
        for path in (base, *(base / file for file in files)):
            with contextlib.suppress(OSError):  # gone meanwhile
                yield path.lstat()


def _walk(folder: Path) -> Iterator[tuple[Path, list[str], list[str]]]:
    """Yield each folder below this one, its files, and its mounts, which are not entered.

    `os.walk` calls itself for each level up to Python 3.11, so it lists one folder at a time here.
    """
    remaining = [folder]
    while remaining:
        base = remaining.pop()
        for _, folders, files in islice(os.walk(base), 1):
            mounts = [name for name in folders if _is_mount(base / name)]
            below = (base / name for name in folders if name not in mounts)
            # `Path.is_symlink` raises PermissionError in a folder that may only be listed.
            remaining += (path for path in below if not os.path.islink(path))  # noqa: PTH114
            yield base, files, mounts


def _is_mount(folder: Path) -> bool:
    """Tell whether a folder is a mount; `os.path.ismount` resolves the whole path of each."""
    try:
        return folder.lstat().st_dev != folder.parent.stat().st_dev
    except OSError:  # gone meanwhile
        return False


def _inode(status: os.stat_result) -> Inode:
    return status.st_dev, status.st_ino
