"""The journal: what happened, one line a record, readable by eye: `<crc32 hex> <json>`.

Append-only segments. A torn last line (the writer was killed in it) is not there yet; a bad line
inside is skipped and shown as a `damaged` record, so that a loss is never silent.
"""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

SEGMENT_BYTES = 64 << 20
_SUFFIX = ".jsonl"

Record = dict[str, Any]


@dataclass(frozen=True)
class Entry:
    """A record and its place: bytes over all segments in order."""

    record: Record
    offset: int
    end: int


class JournalWriter:
    """Appends records; each is with the operating system when `append` returns."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        directory.mkdir(mode=0o700, exist_ok=True)
        numbers = [int(p.stem) for p in _segments(directory)]
        self._number = max(numbers, default=0)
        self._descriptor = -1
        self._room = 0
        self._dirty = False

    def append(self, record: Record) -> None:
        """Write one record. It survives this process; after `sync`, this host too."""
        line = encode(record)
        if self._room < len(line):
            self._next_segment()
        view = memoryview(line)
        while view:
            view = view[os.write(self._descriptor, view) :]
        self._room -= len(line)
        self._dirty = True

    def sync(self) -> None:
        """Make everything written so far survive the host: only then is it acknowledged."""
        if self._dirty:
            self._dirty = False
            os.fdatasync(self._descriptor)

    def close(self) -> None:
        """Sync and close."""
        if self._descriptor >= 0:
            self.sync()
            os.close(self._descriptor)
            self._descriptor = -1

    def _next_segment(self) -> None:
        self.close()
        self._number += 1
        path = self._directory / f"{self._number:08d}{_SUFFIX}"
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC
        self._descriptor = os.open(path, flags, 0o600)
        self._room = SEGMENT_BYTES


def encode(record: Record) -> bytes:
    """Return the record's line."""
    try:
        body = json.dumps(record, ensure_ascii=False, separators=(",", ":")).encode()
    except UnicodeEncodeError:  # lone surrogates: legal in JSON when escaped, never in UTF-8
        body = json.dumps(record, separators=(",", ":")).encode()
    return b"%08x %s\n" % (zlib.crc32(body), body)


def decode(line: bytes) -> Record | None:
    """Return the record of one line without its end, or None if the line is damaged."""
    try:
        if len(line) < 10 or line[8:9] != b" " or int(line[:8], 16) != zlib.crc32(line[9:]):
            return None
        record = json.loads(line[9:])
    except (ValueError, RecursionError):
        return None
    return record if isinstance(record, dict) else None


def read_journal(directory: Path, offset: int = 0) -> Iterator[Entry]:
    """Yield the whole records from byte `offset` on (the beginning of a line)."""
    at = 0
    segments = _segments(directory)
    for path in segments:
        size = path.stat().st_size
        if offset < at + size:
            yield from _read_segment(path, at, max(0, offset - at), last=path is segments[-1])
        at += size


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
