"""Reading what a job's runs wrote, by offsets that count over all attempts in order."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, cast

from job_runner.protocol import layout
from job_runner.protocol.journal import journal
from job_runner.protocol.journal.journal import JournalEntry, Record
from job_runner.protocol.log import log_text
from job_runner.protocol.result.result import fold_result
from job_runner.protocol.result.spool import Spool

from ...domain.errors import NotFound, TooLarge, no_room
from ..port import Records, Text

MAX_ANSWER = 1 << 20
"""Bytes of an answer: what does not fit is the next one's."""
_ENVELOPE = 256
_LARGEST_SHOWN = 16 << 20
"""Bytes of a record whose text the log shows."""
_LARGEST_SO_FAR = 128 << 20
"""Bytes of a journal that is folded while its run goes on: in memory, and in a second or two."""


def read_records(directory: Path, offset: int, *, final: bool) -> Records:
    """Return whole records of the job in `directory` from `offset` on; negative: from the end.

    A record that alone is over `MAX_ANSWER` is answered as `{"k": "omitted", "of": its kind,
    "bytes": n}`: the notebook has it. `final` tells whether the job has ended.
    """
    records: list[Record] = []
    start = at = resolve(directory, offset)
    for entry in _entries(directory, start, largest=MAX_ANSWER - _ENVELOPE):
        is_long = entry.end - entry.offset > MAX_ANSWER - _ENVELOPE
        if not is_long and entry.end - start > MAX_ANSWER - _ENVELOPE:
            return Records(records, at, end=False)
        records.append(entry.record)
        at = entry.end
        if at - start > MAX_ANSWER - _ENVELOPE:
            return Records(records, at, end=False)
    return Records(records, at, final)


def read_text(directory: Path, offset: int, *, final: bool) -> Text:
    """Return text output and tracebacks from a journal offset on; negative: from the end.

    About `MAX_ANSWER` bytes of journal at a time, in whole records.
    """
    records: list[Record] = []
    start = at = resolve(directory, offset)
    for entry in _entries(directory, start, largest=_LARGEST_SHOWN):
        if at - start >= MAX_ANSWER:
            return Text("".join(log_text(records)), at, end=False)
        records.append(entry.record)
        at = entry.end
    return Text("".join(log_text(records)), at, final)


def partial_notebook(directory: Path, number: int) -> BinaryIO | None:
    """Return the notebook of an attempt as it stands, in a file of no name; None if there is none.

    Raises TooLarge, NotFound for one that goes meanwhile, and Unavailable where there is no room.
    """
    attempt = layout.attempt_dir(directory, number)
    try:
        size = journal.journal_size(attempt / layout.JOURNAL)
        if size > _LARGEST_SO_FAR:
            said = f"{directory.name} has {size >> 20} MiB of output: too much to show so far."
            raise TooLarge(said, "Read its logs, or wait until it has ended.")
        with fold_result(directory, attempt, Spool.in_folder(None)) as so_far:
            whole = cast("BinaryIO", tempfile.TemporaryFile())  # noqa: SIM115 - the caller's
            whole.writelines(so_far.chunks())
            is_empty = whole.tell() == 0
            whole.seek(0)  # what was in memory is written, too
    except FileNotFoundError as error:
        raise NotFound(f"The journal of {directory.name} is gone.") from error
    except OSError as error:
        raise no_room("The notebook so far cannot be put together", error) from error
    if is_empty:
        whole.close()
        return None
    return whole


def resolve(directory: Path, offset: int) -> int:
    """Return where to begin: for a negative offset, at the first record that is not before it."""
    if offset >= 0:
        return offset
    journals = [(path, journal.journal_size(path)) for path in _journals(directory)]
    wanted = max(0, sum(size for _, size in journals) + offset)
    at = 0
    for path, size in journals:
        if wanted < at + size:
            return at + journal.next_record(path, max(0, wanted - at))
        at += size
    return at


def _entries(directory: Path, offset: int, *, largest: int) -> Iterator[JournalEntry]:
    """Yield the records from `offset` on, with their places among those of all attempts."""
    at = 0
    try:
        for path in _journals(directory):
            size = journal.journal_size(path)
            if offset < at + size:
                for entry in journal.read_journal(path, max(0, offset - at), largest=largest):
                    yield JournalEntry(entry.record, at + entry.offset, at + entry.end)
            at += size
    except FileNotFoundError as error:  # removed or cleared while it was read
        raise NotFound(f"The journal of {directory.name} is gone.") from error


def _journals(directory: Path) -> list[Path]:
    return [layout.attempt_dir(directory, n) / layout.JOURNAL for n in layout.attempts(directory)]
