"""How much an agent may send of one attempt: bytes, files, and the length of a journal's line.

The notebook shares its volume with the agent and may write the journal itself. Where a journal is
over a limit the gateway ends it: it writes a record `cut` into a segment of its own, so that every
reader sees why the journal ends there, and refuses all later bytes.
"""

from __future__ import annotations

import contextlib
import os
import re
import threading
import time
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from job_runner.protocol import layout
from job_runner.protocol.journal import journal
from job_runner.protocol.journal.truncation import cut_reason
from job_runner.protocol.units import format_bytes

from ...domain.errors import BadInput, Conflict, OverBudget, WrongOffset
from ...exchange import FileExchange
from ...exchange.pieces import require_short_path
from ...exchange.uploads import Upload
from .budgets import Budgets

CUT_SEGMENT = 90_000_000
"""Number of the segment with the record `cut`. `job_runner finish` writes into the next one."""
MAX_FILES = 10_000
"""Files of one attempt, as many as a run may deliver."""
MAX_FOLDERS = 10_000
"""Folders of one attempt."""
_MAX_ATTEMPTS = 10_000
"""Attempts whose size is remembered; that of another one is read from the disk."""
_SEGMENT = re.compile(rf"{layout.JOURNAL}/(\d{{8}})\.jsonl", re.ASCII)
_CHUNK = 1 << 20


@dataclass
class _Usage:
    """What one attempt has in the exchange. `open_lines`: bytes of the last line of each segment
    that has no end yet."""

    size: int
    files: int
    folders: int
    is_cut: bool
    open_lines: dict[str, int] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)


@dataclass(frozen=True)
class _Piece:
    """What an agent sends: a file of an attempt, or the next bytes of one.

    `new_folders`: how many folders are made for it.
    """

    job: str
    attempt: str
    name: str
    upload: Upload
    is_new: bool
    new_folders: int


class AttemptBudgets:
    """Admits the pieces of attempts."""

    def __init__(self, exchange: FileExchange, budgets: Budgets) -> None:
        self._exchange = exchange
        self._budgets = budgets
        self._usages: OrderedDict[str, _Usage] = OrderedDict()
        self._lock = threading.Lock()

    @contextlib.contextmanager
    def admit(
        self, job: str, path: str, upload: Upload, offset: int | None = None
    ) -> Iterator[None]:
        """Check a piece that the block then writes; the pieces of an attempt come one by one.

        `offset` is where an append begins, None for a whole file. Raises WrongOffset, OverBudget,
        BadInput for an impossible path, StorageFull and Unavailable where the disk is almost full.
        """
        attempt, _, name = path.partition("/")
        _check_path(name)
        directory = self._exchange.directory(job) / attempt
        usage = self._usage(directory)
        with usage.lock:
            length = self._exchange.size(job, path)
            if offset is not None and offset != (length or 0):
                raise WrongOffset(f"{path} ends at {length or 0}, not at {offset}.", length or 0)
            if length is not None and not upload.size:  # an agent compares what it has sent
                yield
                return
            missing = _missing_folders(directory / name)
            piece = _Piece(job, attempt, name, upload, length is None, missing)
            open_line: int | None = None
            if _SEGMENT.fullmatch(name):
                self._budgets.require_room_for_journals()
                open_line = self._check_journal(piece, usage)
            elif offset is not None or piece.is_new:
                self._budgets.require_room_for_artifacts()
                self._check_size(piece, usage)
            try:
                yield
            except BaseException:  # a part of it may have been written
                self.forget(job, path)
                raise
            if offset is not None or piece.is_new:
                usage.size += upload.size
                usage.files += piece.is_new
                usage.folders += piece.new_folders
                if open_line is not None:  # names of other files would only fill the memory
                    usage.open_lines[name] = open_line

    def forget(self, job: str, path: str) -> None:
        """Forget what is known of an attempt: it has ended, or its files are not as expected."""
        with self._lock:
            self._usages.pop(str(self._exchange.root / job / path.partition("/")[0]), None)

    def _check_size(self, piece: _Piece, usage: _Usage) -> None:
        cap = self._budgets.caps.attempt
        if usage.size + piece.upload.size > cap:
            raise OverBudget(
                f"The files of this run are over the {format_bytes(cap)} that are kept of one "
                "attempt.",
                "Write large files to a volume of the workspace.",
            )
        if piece.is_new and usage.files >= MAX_FILES:
            raise OverBudget(
                f"The files of this run are more than the {MAX_FILES:,} that are kept.",
                "Write many files to a volume of the workspace.",
            )
        if piece.new_folders and usage.folders + piece.new_folders > MAX_FOLDERS:
            raise OverBudget(
                f"The files of this run are in more than the {MAX_FOLDERS:,} folders that are "
                "kept.",
                "Write many folders to a volume of the workspace.",
            )

    def _check_journal(self, piece: _Piece, usage: _Usage) -> int:
        """Return the length of the open line after a piece of a journal. Cut one that is over."""
        caps = self._budgets.caps
        if usage.is_cut:
            raise OverBudget("The journal of this run was cut.", "No more of it is kept.")
        previous_length = usage.open_lines.get(piece.name)
        if previous_length is None:
            path = self._exchange.root / piece.job / piece.attempt / piece.name
            previous_length = _open_line(path, caps.record)
        longest, open_line = _measure_lines(piece.upload, previous_length)
        if longest > caps.record:
            self._cut(piece, usage, {"of": "record", "limit": caps.record})
        try:
            self._check_size(piece, usage)
        except OverBudget:
            self._cut(piece, usage, {"of": "attempt", "limit": caps.attempt})
        return open_line

    def _cut(self, piece: _Piece, usage: _Usage, reason: dict[str, object]) -> None:
        """End a journal with the record that says why. Raises OverBudget."""
        line = journal.encode({"t": round(time.time(), 6), "k": "cut", **reason})
        path = f"{piece.attempt}/{layout.JOURNAL}/{CUT_SEGMENT:08d}.jsonl"
        with contextlib.suppress(Conflict):  # an earlier process has cut it
            self._exchange.append(piece.job, path, 0, line)
        usage.is_cut = True
        raise OverBudget(
            f"The journal of this run was cut: {cut_reason(reason)}.", "No more of it is kept."
        )

    def _usage(self, directory: Path) -> _Usage:
        key = str(directory)
        with self._lock:
            usage = self._usages.get(key)
            if usage is not None:
                self._usages.move_to_end(key)
                return usage
        usage = _read_usage(directory)
        with self._lock:
            usage = self._usages.setdefault(key, usage)
            while len(self._usages) > _MAX_ATTEMPTS:
                self._usages.popitem(last=False)
            return usage


def _check_path(name: str) -> None:
    """Raise BadInput for a path that is too long, or a segment that no runner writes."""
    require_short_path(name)
    segment = _SEGMENT.fullmatch(name)
    if segment is not None and int(segment[1]) >= CUT_SEGMENT:
        raise BadInput(f"No runner writes {name}.")


def _read_usage(directory: Path) -> _Usage:
    size = files = folders = 0
    for folder in (layout.JOURNAL, layout.ARTIFACTS):
        for base, _, names in os.walk(directory / folder):
            folders += 1
            files += len(names)
            size += sum(Path(base, name).lstat().st_size for name in names)
    cut = directory / layout.JOURNAL / f"{CUT_SEGMENT:08d}.jsonl"
    return _Usage(size, files, folders, cut.exists())


def _missing_folders(path: Path) -> int:
    """Return how many of the folders above a path are not there yet."""
    return next(count for count, folder in enumerate(path.parents) if folder.exists())


def _open_line(path: Path, limit: int) -> int:
    """Return how many bytes follow the last newline of a file: `limit` if they are more."""
    try:
        with path.open("rb") as file:
            end = position = file.seek(0, os.SEEK_END)
            while position and end - position < limit:
                start = max(0, position - _CHUNK)
                file.seek(start)
                line_end = file.read(position - start).rfind(b"\n")
                if line_end >= 0:
                    return end - (start + line_end + 1)
                position = start
            return end - position
    except FileNotFoundError:
        return 0


def _measure_lines(upload: Upload, open_line: int) -> tuple[int, int]:
    """Return the longest line of a piece that begins inside an open one, and its own open line."""
    longest = length = open_line
    for chunk in upload.chunks():
        lines = [len(line) for line in chunk.split(b"\n")]
        longest = max(longest, length + lines[0], *lines[1:])
        length = lines[-1] if len(lines) > 1 else length + lines[0]
    return longest, length
