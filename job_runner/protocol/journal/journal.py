"""The journal: the records of a run, a line each: `<crc32 hex> <json>`.

Segments are only appended to. A torn last line, in which the writer was killed, does not count. A
bad line before the end is skipped and shown as a `damaged` record, so that no loss is silent; so is
a torn line that other segments follow.
"""

from __future__ import annotations

import json
import os
import re
import threading
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from ..result.json_writer import finite
from .nesting import MAX_DEPTH, is_too_deep

SEGMENT_BYTES = 64 << 20
_SUFFIX = ".jsonl"
_RECORD_DEPTH = MAX_DEPTH + 10
"""A record may wrap a value of the maximal depth."""
_SEGMENT = re.compile(rf"\d{{8}}{re.escape(_SUFFIX)}", re.ASCII)
_fdatasync = getattr(os, "fdatasync", os.fsync)  # macOS has the second only

_ENCODER = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"))
_ASCII = json.JSONEncoder(separators=(",", ":"))
"""Lone surrogates are legal in JSON when they are escaped, and never in UTF-8."""


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is not JSON")


_DECODER = json.JSONDecoder(parse_constant=_refuse)

_PREFIX = 9
"""Bytes of a line before its JSON: the checksum and a space."""
_READ_SIZE = 1 << 20
"""Bytes that are read at once.

Short reads would block a server's event loop: each one wakes the loop's thread, which then waits
5 ms more for Python's lock. The loop stood still for 50 ms while a thread read a journal in pieces
of a few KiB, and for 20 ms with this size.
"""
_RECORD_START = re.compile(
    rb'\{"t":(\d+(?:\.\d+)?),"k":"(\w+)"(?:,"i":(\d{1,9}))?(?:,"id":"([\w-]{1,99})")?[,}]'
)
"""The start of a record, as runners write it."""
_OUTPUT_KINDS = (b"output", b"update_display", b"widget")

Record = dict[str, Any]


@dataclass(frozen=True)
class JournalEntry:
    """A record and its place: bytes over all segments in order."""

    record: Record
    offset: int
    end: int


class JournalWriter:
    """Appends records; `append` returns when the operating system has the record.

    `append` and `close` belong to one thread; `sync` may be called from another at the same time.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        directory.mkdir(mode=0o700, exist_ok=True)
        numbers = [int(p.stem) for p in _segments(directory)]
        self._number = max(numbers, default=0)
        self._descriptor = -1
        self._room = 0
        self.record_size = 0
        """Bytes of the record that was appended last."""
        self._lock = threading.Lock()
        self._unsynced: list[int] = []  # duplicates: a segment may be closed meanwhile

    def append(self, record: Record) -> Record:
        """Write one record, and return it as readers will see it.

        It survives this process, and after `sync` a crash of the host. Raises OSError; then part of
        the record may be in the journal, as a torn line.
        """
        body, record = _body(record)
        size = _PREFIX + len(body) + 1
        if self._room < size:
            self._next_segment()
        try:
            written = os.writev(self._descriptor, (_checksum(body), body, b"\n"))
            if written < size:
                remaining = memoryview(_line(body))[written:]
                while remaining:
                    remaining = remaining[os.write(self._descriptor, remaining) :]
        except OSError:
            self._room = 0  # the next record begins a segment, because a torn line may end this one
            raise
        self._room -= size
        self.record_size = size
        with self._lock:
            if not self._unsynced:
                self._unsynced.append(os.dup(self._descriptor))
        return record

    def sync(self) -> None:
        """Make everything written so far survive a crash of the host."""
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
            # `sync` makes the new name and the new file durable.
            self._unsynced += [folder, os.dup(self._descriptor)]


def encode(record: Record) -> bytes:
    """Return the record's line."""
    return _line(_body(record)[0])


def _body(record: Record) -> tuple[bytes, Record]:
    """Return a record's JSON, and the record that readers get from it."""
    try:
        return _ENCODER.encode(record).encode(), record
    except ValueError:  # a lone surrogate (two may become one character), or NaN
        text = _ASCII.encode(finite(record))
        return text.encode(), json.loads(text)


def _checksum(body: bytes) -> bytes:
    return b"%08x " % zlib.crc32(body)


def _line(body: bytes) -> bytes:
    return b"%b%b\n" % (_checksum(body), body)


def decode(line: bytes) -> Record | None:
    """Return the record of one line without its end, or None if the line is damaged."""
    try:
        if not _has_checksum(line, zlib.crc32(memoryview(line)[_PREFIX:])):
            return None
        record = _DECODER.decode(str(memoryview(line)[_PREFIX:], "utf-8"))
    except (ValueError, RecursionError):
        return None
    return record if isinstance(record, dict) and not is_too_deep(record, _RECORD_DEPTH) else None


def read_journal(
    directory: Path, offset: int = 0, *, skip_outputs: bool = False, max_line: int | None = None
) -> Iterator[JournalEntry]:
    """Yield the complete records from byte `offset` on, which begins a line.

    With `skip_outputs`, records of output are not parsed, which would take many times as long. They
    come as `{"k": "omitted", "of": their kind, "t": their time, "bytes": n}`. With `max_line`, all
    records with a longer line come so as well, and are never in memory.
    """
    at = 0
    segments = _segments(directory)
    for path in segments:
        size = path.stat().st_size
        if offset < at + size:
            reader = _SegmentReader(
                is_last=path is segments[-1], skip_outputs=skip_outputs, max_line=max_line
            )
            yield from reader.read(path, at, max(0, offset - at))
        at += size


def next_record(directory: Path, offset: int) -> int:
    """Return the offset of the first line at byte `offset` or later; the end if there is none."""
    at = 0
    for path in _segments(directory):
        size = path.stat().st_size
        if at < offset < at + size:
            with path.open("rb", buffering=_READ_SIZE) as file:
                file.seek(offset - at - 1)
                return offset - 1 + _line_size(file)
        if offset <= at:
            return at
        at += size
    return at


def journal_size(directory: Path) -> int:
    """Return the bytes of all segments."""
    return sum(p.stat().st_size for p in _segments(directory))


@dataclass(frozen=True)
class _SegmentReader:
    """Reads one segment for `read_journal`."""

    is_last: bool
    skip_outputs: bool
    max_line: int | None

    def read(self, path: Path, base: int, start: int) -> Iterator[JournalEntry]:
        """Yield the records from byte `start` on; `base` is the offset of the segment."""
        with path.open("rb", buffering=_READ_SIZE) as file:
            file.seek(start)
            at = base + start
            read_size = self.max_line or _READ_SIZE
            while line := file.readline(read_size):
                long = len(line) == read_size and not line.endswith(b"\n")
                if long and (self.max_line is not None or self._is_skipped(line)):
                    size, record, ended = _skip_line(file, line)
                else:
                    line += file.readline() if long else b""
                    size, ended = len(line), line.endswith(b"\n")
                    record = self._record(line.removesuffix(b"\n"))
                if not ended and self.is_last:
                    return
                if record is None:
                    record = {"k": "damaged", "bytes": size}
                yield JournalEntry(record, at, at + size)
                at += size

    def _record(self, line: bytes) -> Record | None:
        if not self._is_skipped(line):
            return decode(line)
        checksum = zlib.crc32(memoryview(line)[_PREFIX:])
        return _omitted(line, len(line) + 1) if _has_checksum(line, checksum) else None

    def _is_skipped(self, line: bytes) -> bool:
        head = _RECORD_START.match(line, _PREFIX) if self.skip_outputs else None
        return head is not None and head[2] in _OUTPUT_KINDS


def _line_size(file: BinaryIO) -> int:
    """Return how many bytes the next line has, which may be more than fit in memory."""
    size = 0
    while piece := file.readline(_READ_SIZE):
        size += len(piece)
        if piece.endswith(b"\n"):
            break
    return size


def _skip_line(file: BinaryIO, line: bytes) -> tuple[int, Record | None, bool]:
    """Read to the end of a line; return its size, its substitute, and whether it has an end."""
    size, checksum, piece = len(line), zlib.crc32(memoryview(line)[_PREFIX:]), line
    while not piece.endswith(b"\n") and (piece := file.readline(_READ_SIZE)):
        size += len(piece)
        checksum = zlib.crc32(piece.removesuffix(b"\n"), checksum)
    record = _omitted(line, size) if _has_checksum(line, checksum) else None
    return size, record, piece.endswith(b"\n")


def _has_checksum(line: bytes, checksum: int) -> bool:
    """Tell whether a line begins with this checksum."""
    try:
        return line[8:_PREFIX] == b" " and int(line[:8], 16) == checksum
    except ValueError:
        return False


def _omitted(line: bytes, size: int) -> Record:
    """Return the substitute for a record that is not parsed."""
    record: Record = {"k": "omitted", "of": None, "bytes": size}
    head = _RECORD_START.match(line, _PREFIX)
    if head is not None:
        record |= {"of": head[2].decode(), "t": float(head[1])}
        if head[3] is not None:
            record["i"] = int(head[3])
        if head[4] is not None:
            record["id"] = head[4].decode()
    return record


def _segments(directory: Path) -> list[Path]:
    """Return the segments in order: regular files only, for a pipe would stop the reader."""
    try:
        with os.scandir(directory) as entries:
            names = [
                entry.name
                for entry in entries
                if _SEGMENT.fullmatch(entry.name) and entry.is_file(follow_symlinks=False)
            ]
    except (FileNotFoundError, NotADirectoryError):
        return []
    return [directory / name for name in sorted(names)]
