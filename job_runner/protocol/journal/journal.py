"""The journal: what happened, one line a record, readable by eye: `<crc32 hex> <json>`.

Append-only segments. A torn last line (the writer was killed in it) is not there yet; a bad line
inside, or a torn one that other segments follow, is skipped and shown as a `damaged` record, so
that a loss is never silent.
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
_DEEPEST = MAX_DEPTH + 10
"""A record holds what came in by a door."""
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

Not the usual few KiB: who waits for Python's lock is woken in vain at every short read, and its
wait of 5 ms begins anew. A server's event loop stood still for 50 ms while a thread read a journal;
with reads that are farther apart, for 20.
"""
_HEAD = re.compile(rb'\{"t":(\d+(?:\.\d+)?),"k":"(\w+)"(?:,"i":(\d{1,9}))?[,}]')
"""The beginning of a record, as runners write it."""
_OUTPUT = (b"output", b"update_display", b"widget")

Record = dict[str, Any]


@dataclass(frozen=True)
class JournalEntry:
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

    def append(self, record: Record) -> Record:
        """Write one record. It survives this process; after `sync`, this host too.

        Returns it as readers will see it. Raises OSError; then the record may be in the journal in
        part, as a torn line.
        """
        body, record = _body(record)
        size = _PREFIX + len(body) + 1
        if self._room < size:
            self._next_segment()
        try:
            written = os.writev(self._descriptor, (_checksum(body), body, b"\n"))
            if written < size:
                rest = memoryview(_line(body))[written:]
                while rest:
                    rest = rest[os.write(self._descriptor, rest) :]
        except OSError:
            self._room = 0  # a torn line ends a segment: the next record must not be glued to it
            raise
        self._room -= size
        with self._lock:
            if not self._unsynced:
                self._unsynced.append(os.dup(self._descriptor))
        return record

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
    return _line(_body(record)[0])


def _body(record: Record) -> tuple[bytes, Record]:
    """Return a record's JSON, and what that is read as."""
    try:
        return _ENCODER.encode(record).encode(), record
    except ValueError:  # lone surrogates, two of which may become one; no numbers of JSON
        text = _ASCII.encode(finite(record))
        return text.encode(), json.loads(text)


def _checksum(body: bytes) -> bytes:
    return b"%08x " % zlib.crc32(body)


def _line(body: bytes) -> bytes:
    return b"%b%b\n" % (_checksum(body), body)


def decode(line: bytes) -> Record | None:
    """Return the record of one line without its end, or None if the line is damaged."""
    try:
        if not _is_whole(line, zlib.crc32(memoryview(line)[_PREFIX:])):
            return None
        record = _DECODER.decode(str(memoryview(line)[_PREFIX:], "utf-8"))
    except (ValueError, RecursionError):
        return None
    return record if isinstance(record, dict) and not is_too_deep(record, _DEEPEST) else None


def read_journal(
    directory: Path, offset: int = 0, *, outline: bool = False, largest: int | None = None
) -> Iterator[JournalEntry]:
    """Yield the whole records from byte `offset` on (the beginning of a line).

    With `outline`, records of output come as `{"k": "omitted", "of": their kind, "t": their time,
    "bytes": n}`: looked at and not parsed, because that takes many times as long. With `largest`,
    so do all records whose line is longer, whatever kind; and they never are in memory.
    """
    at = 0
    segments = _segments(directory)
    for path in segments:
        size = path.stat().st_size
        if offset < at + size:
            reader = _SegmentReader(last=path is segments[-1], outline=outline, largest=largest)
            yield from reader.read(path, at, max(0, offset - at))
        at += size


def next_record(directory: Path, offset: int) -> int:
    """Return where the first line begins at byte `offset` or after it; the end if there is none."""
    at = 0
    for path in _segments(directory):
        size = path.stat().st_size
        if at < offset < at + size:
            with path.open("rb", buffering=_READ_SIZE) as file:
                file.seek(offset - at - 1)
                return offset - 1 + len(file.readline())
        if offset <= at:
            return at
        at += size
    return at


def journal_size(directory: Path) -> int:
    """Return the bytes of all segments."""
    return sum(p.stat().st_size for p in _segments(directory))


@dataclass(frozen=True)
class _SegmentReader:
    """Reads a segment as `read_journal` was asked to; it may be the journal's last one."""

    last: bool
    outline: bool
    largest: int | None

    def read(self, path: Path, base: int, start: int) -> Iterator[JournalEntry]:
        """Yield the records from a place on; `base` is where the segment begins."""
        with path.open("rb", buffering=_READ_SIZE) as file:
            file.seek(start)
            at = base + start
            look = self.largest or _READ_SIZE
            while line := file.readline(look):
                long = len(line) == look and not line.endswith(b"\n")
                if long and (self.largest is not None or self._is_left_out(line)):
                    size, record, ended = _skip_line(file, line)
                else:
                    line += file.readline() if long else b""
                    size, ended = len(line), line.endswith(b"\n")
                    record = self._record(line.removesuffix(b"\n"))
                if not ended and self.last:
                    return
                if record is None:
                    record = {"k": "damaged", "bytes": size}
                yield JournalEntry(record, at, at + size)
                at += size

    def _record(self, line: bytes) -> Record | None:
        if not self._is_left_out(line):
            return decode(line)
        checksum = zlib.crc32(memoryview(line)[_PREFIX:])
        return _omitted(line, len(line) + 1) if _is_whole(line, checksum) else None

    def _is_left_out(self, line: bytes) -> bool:
        head = _HEAD.match(line, _PREFIX) if self.outline else None
        return head is not None and head[2] in _OUTPUT


def _skip_line(file: BinaryIO, line: bytes) -> tuple[int, Record | None, bool]:
    """Read on to the end of a line; return its size, what stands for it, whether it has an end."""
    size, checksum, more = len(line), zlib.crc32(memoryview(line)[_PREFIX:]), line
    while not more.endswith(b"\n") and (more := file.readline(_READ_SIZE)):
        size += len(more)
        checksum = zlib.crc32(more.removesuffix(b"\n"), checksum)
    record = _omitted(line, size) if _is_whole(line, checksum) else None
    return size, record, more.endswith(b"\n")


def _is_whole(line: bytes, checksum: int) -> bool:
    """Tell whether a line begins with this checksum of the rest."""
    try:
        return line[8:_PREFIX] == b" " and int(line[:8], 16) == checksum
    except ValueError:
        return False


def _omitted(line: bytes, size: int) -> Record:
    """Return what stands for a record that is not parsed."""
    record: Record = {"k": "omitted", "of": None, "bytes": size}
    head = _HEAD.match(line, _PREFIX)
    if head is not None:
        record |= {"of": head[2].decode(), "t": float(head[1])}
        if head[3] is not None:
            record["i"] = int(head[3])
    return record


def _segments(directory: Path) -> list[Path]:
    try:
        return sorted(p for p in directory.iterdir() if p.suffix == _SUFFIX)
    except FileNotFoundError:
        return []
