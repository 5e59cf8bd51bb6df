"""Change stamps: they tell whether a file or a folder is still as it was when it was read."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Generic, TypeVar

_Key = TypeVar("_Key")
_Value = TypeVar("_Value")

RACY = 2.0
"""Seconds for which a directory may change without a new stamp: clocks of file systems are coarse.
A younger directory has no stamp."""


def stamp_of(path: Path | str) -> str | None:
    """Return the stamp of a file or folder; None if it is out of reach, or changed just now."""
    try:
        status = os.stat(path)  # noqa: PTH116 - text, where there are many
    except OSError:
        return None
    return format_stamp(status) if time.time() - status.st_ctime > RACY else None


def format_stamp(status: os.stat_result) -> str:
    """Return the stamp of what has this status, whatever its age."""
    return f"{status.st_dev}.{status.st_ino}.{status.st_ctime_ns}"


class StampCache(Generic[_Key, _Value]):
    """Keeps values that were read from files, each until the stamp of its files is another.

    Several threads may use it. `size_of` tells what an entry takes of the capacity, by its key:
    beyond that the oldest entries go, and an entry that takes more alone is not kept.
    """

    def __init__(self, capacity: int = 1, size_of: Callable[[_Key], int] = lambda _: 1) -> None:
        self._capacity = capacity
        self._size_of = size_of
        self._lock = threading.Lock()
        self._entries: dict[_Key, tuple[object, _Value, int]] = {}
        self._size = 0

    def get(self, key: _Key, stamp: object, read: Callable[[], _Value]) -> _Value:
        """Return the value kept for `key` under `stamp`, or else what `read` returns.

        Without a stamp, or where `read` returns None, nothing is kept.
        """
        entry = self._entries.get(key)
        if stamp is not None and entry is not None and (entry[0] is stamp or entry[0] == stamp):
            return entry[1]
        value = read()
        if stamp is not None and value is not None:
            self._keep(key, stamp, value, self._size_of(key))
        return value

    def forget(self, key: _Key) -> None:
        """Drop what is kept for `key`."""
        with self._lock:
            self._drop(key)

    def _keep(self, key: _Key, stamp: object, value: _Value, size: int) -> None:
        with self._lock:
            self._drop(key)
            if size > self._capacity:
                return
            self._entries[key] = stamp, value, size
            self._size += size
            while self._size > self._capacity:
                self._drop(next(iter(self._entries)))

    def _drop(self, key: _Key) -> None:
        if (entry := self._entries.pop(key, None)) is not None:
            self._size -= entry[2]
