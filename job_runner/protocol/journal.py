"""The journal: what happened, one line a record, readable by eye: `<crc32 hex> <json>`.

Append-only segments. A torn last line (the writer was killed in it) is not there yet; a bad line
inside, or a torn one that other segments follow, is skipped and shown as a `damaged` record, so
that a loss is never silent.
"""

from __future__ import annotations

import json
import math
import os
import threading
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .nesting import DEEPEST, is_too_deep

SEGMENT_BYTES = 64 << 20
_SUFFIX = ".jsonl"
_DEEPEST = DEEPEST + 10
"""A record holds what came in by a door."""
_fdatasync = getattr(os, "fdatasync", os.fsync)  # macOS has the second only

_ENCODER = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"))
_ASCII = json.JSONEncoder(separators=(",", ":"))
"""Lone surrogates are legal in JSON when they are escaped, and never in UTF-8."""

Record = dict[str, Any]


@dataclass(frozen=True)
class Entry:
    """A record and its place: bytes over all segments in order."""

    record: Record
    offset: int
    end: int


class JournalWriter:
    """Appends records; each is with the operating system when `append` returns.

    `append` and `close` belong to one thread; `sync` may be called from another at the same time.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        directory.mkdir(mode=0o700, exist_ok=True)
        numbers = [int(p.stem) for p in _segments(directory)]
        self._number = max(numbers, default=0)
        self._descriptor = -1
        self._room = 0
        self._lock = threading.Lock()
        self._unsynced: list[int] = []  # descriptors of our own: a segment may be closed meanwhile

    def append(self, record: Record) -> None:
        """Write one record. It survives this process; after `sync`, this host too.

        Raises OSError; then the record may be in the journal in part, as a torn line.
        """
        line = encode(record)
        if self._room < len(line):
            self._next_segment()
        view = memoryview(line)
        try:
            while view:
                view = view[os.write(self._descriptor, view) :]
        except OSError:
            self._room = 0  # a torn line ends a segment: the next record must not be glued to it
            raise
        self._room -= len(line)
        with self._lock:
            if not self._unsynced:
                self._unsynced.append(os.dup(self._descriptor))

    def sync(self) -> None:
        """Make everything written so far survive the host: only then is it acknowledged."""
        with self._lock:
            descriptors, self._unsynced = self._unsynced, []
        try:
            for descriptor in descriptors:
                _fdatasync(descriptor)
        finally:
            for descriptor in descriptors:
                os.close(descriptor)

    def close(self) -> None:
        """Sync and close."""
        try:
            self.sync()
        finally:
            self._close_segment()

    def _close_segment(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor, self._room = -1, 0

    def _next_segment(self) -> None:
        self._close_segment()
        self._number += 1
        path = self._directory / f"{self._number:08d}{_SUFFIX}"
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC
        self._descriptor = os.open(path, flags, 0o600)
        self._room = SEGMENT_BYTES
        folder = os.open(self._directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        with self._lock:
            # The new name and the new file: `sync` makes both durable.
            self._unsynced += [folder, os.dup(self._descriptor)]


def encode(record: Record) -> bytes:
    """Return the record's line."""
    try:
        body = _ENCODER.encode(record).encode()
    except ValueError:  # lone surrogates, or numbers that JSON does not have
        body = _ASCII.encode(_finite(record)).encode()
    return b"%08x %s\n" % (zlib.crc32(body), body)


def _finite(value: Any) -> Any:
    """Return a copy with null for NaN and the infinities."""
    match value:
        case float() if not math.isfinite(value):
            return None
        case dict():
            return {key: _finite(inner) for key, inner in value.items()}
        case list() | tuple():
            return [_finite(inner) for inner in value]
    return value


def decode(line: bytes) -> Record | None:
    """Return the record of one line without its end, or None if the line is damaged."""
    try:
        if len(line) < 10 or line[8:9] != b" " or int(line[:8], 16) != zlib.crc32(line[9:]):
            return None
        record = json.loads(line[9:])
    except (ValueError, RecursionError):
        return None
    return record if isinstance(record, dict) and not is_too_deep(record, _DEEPEST) else None


def read_journal(directory: Path, offset: int = 0) -> Iterator[Entry]:
    """Yield the whole records from byte `offset` on (the beginning of a line)."""
    at = 0
    segments = _segments(directory)
    for path in segments:
        size = path.stat().st_size
        if offset < at + size:
            yield from _read_segment(path, at, max(0, offset - at), last=path is segments[-1])
        at += size


def next_record(directory: Path, offset: int) -> int:
    """Return where the first line begins at byte `offset` or after it; the end if there is none."""
    at = 0
    for path in _segments(directory):
        size = path.stat().st_size
        if at < offset < at + size:
            with path.open("rb") as file:
                file.seek(offset - at - 1)
                return offset - 1 + len(file.readline())
        if offset <= at:
            return at
        at += size
    return at


def journal_size(directory: Path) -> int:
    """Return the bytes of all segments."""
    return sum(p.stat().st_size for p in _segments(directory))


def _read_segment(path: Path, base: int, start: int, *, last: bool) -> Iterator[Entry]:
    with path.open("rb") as file:
        file.seek(start)
        at = base + start
        for line in file:
            if not line.endswith(b"\n") and last:
                return
            record = decode(line.removesuffix(b"\n"))
            if record is None:
                record = {"k": "damaged", "bytes": len(line)}
            yield Entry(record, at, at + len(line))
            at += len(line)


def _segments(directory: Path) -> list[Path]:
    try:
        return sorted(p for p in directory.iterdir() if p.suffix == _SUFFIX)
    except FileNotFoundError:
        return []
