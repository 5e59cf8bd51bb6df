"""Reads the journals of a job by offsets that count over all attempts in order."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, cast

from job_runner.protocol import layout
from job_runner.protocol.journal import journal
from job_runner.protocol.journal.journal import JournalEntry, Record
from job_runner.protocol.log_text import log_text
from job_runner.protocol.result.result import NO_LIMITS, FoldLimits, fold_result
from job_runner.protocol.result.spool import Spool

from ...domain.errors import NotFound, TooLarge, no_room
from ..port import Records, Text

MAX_ANSWER = 1 << 20
"""Bytes of an answer: the next one has the records that do not fit."""
_ENVELOPE = 256
MAX_LOGGED_RECORD = 16 << 20
"""Bytes of a record whose text the log shows."""
MAX_PARTIAL_JOURNAL = 128 << 20
"""Bytes of a journal that is folded during its run: in memory, and in a second or two."""


def read_records(job_dir: Path, offset: int, *, final: bool) -> Records:
    """Return whole records of the job in `job_dir` from `offset` on; negative: from the end.

    A record that alone is over `MAX_ANSWER` becomes `{"k": "omitted", "of": its kind, "bytes": n}`;
    the notebook has it. `final` tells whether the job has ended.
    """
    records: list[Record] = []
    start = end = resolve(job_dir, offset)
    for entry in _entries(job_dir, start, max_line=MAX_ANSWER - _ENVELOPE):
        is_long = entry.end - entry.offset > MAX_ANSWER - _ENVELOPE
        if not is_long and entry.end - start > MAX_ANSWER - _ENVELOPE:
            return Records(records, end, end=False)
        records.append(entry.record)
        end = entry.end
        if end - start > MAX_ANSWER - _ENVELOPE:
            return Records(records, end, end=False)
    return Records(records, end, final)


def read_text(job_dir: Path, offset: int, *, final: bool) -> Text:
    """Return text output and tracebacks from a journal offset on; negative: from the end.

    About `MAX_ANSWER` bytes of journal at a time, in whole records.
    """
    records: list[Record] = []
    start = end = resolve(job_dir, offset)
    for entry in _entries(job_dir, start, max_line=MAX_LOGGED_RECORD):
        if end - start >= MAX_ANSWER:
            return Text("".join(log_text(records)), end, end=False)
        records.append(entry.record)
        end = entry.end
    return Text("".join(log_text(records)), end, final)


def partial_notebook(job_dir: Path, number: int, limits: FoldLimits = NO_LIMITS) -> BinaryIO | None:
    """Return the notebook of an attempt so far, in an unnamed file; None if there is none.

    Raises TooLarge, NotFound if the job is deleted meanwhile, and Unavailable if there is no room.
    """
    attempt = layout.attempt_dir(job_dir, number)
    try:
        size = journal.journal_size(attempt / layout.JOURNAL)
        if size > (limits.journal or MAX_PARTIAL_JOURNAL):
            message = f"{job_dir.name} has {size >> 20} MiB of output: too much to show so far."
            raise TooLarge(message, "Read its logs, or wait until it has ended.")
        with fold_result(job_dir, attempt, Spool.in_folder(None), limits) as result:
            file = cast("BinaryIO", tempfile.TemporaryFile())  # noqa: SIM115 - the caller's
            file.writelines(result.chunks())
            is_empty = file.tell() == 0
            file.seek(0)  # this also writes what was in memory
    except FileNotFoundError as error:
        raise NotFound(f"The journal of {job_dir.name} is gone.") from error
    except OSError as error:
        raise no_room("The notebook so far cannot be put together", error) from error
    if is_empty:
        file.close()
        return None
    return file


def resolve(job_dir: Path, offset: int) -> int:
    """Return the offset to begin at: a negative one becomes that of the next record's start."""
    if offset >= 0:
        return offset
    journals = [(path, journal.journal_size(path)) for path in _journals(job_dir)]
    position = max(0, sum(size for _, size in journals) + offset)
    start = 0
    for path, size in journals:
        if position < start + size:
            return start + journal.next_record(path, max(0, position - start))
        start += size
    return start


def _entries(job_dir: Path, offset: int, *, max_line: int) -> Iterator[JournalEntry]:
    """Yield the records from `offset` on, with their offsets over all attempts."""
    start = 0
    try:
        for path in _journals(job_dir):
            size = journal.journal_size(path)
            if offset < start + size:
                for entry in journal.read_journal(path, max(0, offset - start), max_line=max_line):
                    yield JournalEntry(entry.record, start + entry.offset, start + entry.end)
            start += size
    except FileNotFoundError as error:  # removed or cleared while it was read
        raise NotFound(f"The journal of {job_dir.name} is gone.") from error


def _journals(job_dir: Path) -> list[Path]:
    return [layout.attempt_dir(job_dir, n) / layout.JOURNAL for n in layout.attempts(job_dir)]
