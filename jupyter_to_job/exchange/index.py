"""The disposable index of settled jobs, so that a list need not read 10,000 directories.

It is never a source of truth. A row counts only while the job's directory has the stamp that the
row carries: its inode, and the time when a name in it was last made, renamed or removed. Each row
has a checksum. A damaged index is thrown away and built again. Without an index, as on network file
systems, everything works, and reads directories.
"""

from __future__ import annotations

import contextlib
import json
import os
import time
import zlib
from collections.abc import Callable, Container, Iterable, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from ..domain.job import Job
from .stamps import StampCache, format_stamp

if TYPE_CHECKING:
    import sqlite3

    from .files import FileExchange

_Answer = TypeVar("_Answer")

FOLDER = ".index"
UNUSED_SECONDS = 7 * 86400.0
"""Seconds without a new row after which another version's file is removed."""
BUSY_TIMEOUT = 1.0
"""Seconds to wait for other processes that use the index, before doing without."""
RETRY_INTERVAL = 30.0
"""Seconds to do without an index that is locked, before waiting for it again."""
MAX_ROW = 64 << 10
"""Bytes of a row at most. A job with larger parameters is read from its directory."""


@dataclass(frozen=True)
class IndexRow:
    """A job that has ended and is not about to be delivered; `document` is its Job as JSON.

    `source` and `workspace` are absolute, on the submitter's side; paths in the document are
    relative to that workspace.
    """

    name: str
    stamp: str
    owner: str
    source: str
    workspace: str
    submitted: str
    state: str
    delivery: str
    group: str
    document: str

    @classmethod
    def of(cls, job: Job, *, stamp: str, source: str, workspace: str) -> IndexRow:
        """Return the row of a job whose directory had `stamp` before it was read."""
        return cls(
            name=job.name,
            stamp=stamp,
            owner=job.owner,
            source=source,
            workspace=workspace,
            submitted=job.submitted or "",
            state=job.state.value,
            delivery=job.delivery.state.value,
            group=job.group or "",
            document=json.dumps(job.to_json()),
        )

    def job(self) -> Job:
        """Return the job."""
        return Job.from_json(json.loads(self.document))

    def values(self) -> tuple[str, ...]:
        """Return the columns."""
        return tuple(vars(self).values())


_COLUMNS = tuple(column.name for column in fields(IndexRow))
_VERSION = zlib.crc32(" ".join([*(f.name for f in fields(Job)), *_COLUMNS]).encode()) >> 1
"""Differs between versions of this package that have different fields."""
FILE = f"settled-{_VERSION}.sqlite"
"""This version's file in `FOLDER`."""
_NONE: Mapping[str, IndexRow] = {}


class Index:
    """The index of one exchange, safe to use from many processes at once.

    Every use opens the database anew, and SQLite's locks keep processes apart. There is no journal
    file beside the database, so that it can be removed at any time: a process that has it open goes
    on with a file without a name. Where a killed writer leaves it damaged, it is built again.
    """

    def __init__(self, exchange: FileExchange) -> None:
        self._exchange = exchange
        self._root = exchange.root
        self._folder = exchange.root / FOLDER
        self._busy_until = float("-inf")
        self._rows: StampCache[Path, Mapping[str, IndexRow] | None] = StampCache()

    def read(self, names: Iterable[str]) -> dict[str, IndexRow]:
        """Return the rows of those of `names` whose directories have not changed since."""
        rows = self.rows()
        indexed = (rows[name] for name in names if name in rows)
        return {row.name: row for row in indexed if self.is_current(row)}

    def rows(self) -> Mapping[str, IndexRow]:
        """Return all sound rows: the same object while nothing was written.

        Old rows do no harm: each one is compared with its directory before it counts.
        """
        try:
            status = self._file.stat()
        except OSError:
            return _NONE
        stamp = (status.st_ino, status.st_size, status.st_mtime_ns)
        return self._rows.get(self._file, stamp, self._read_rows) or _NONE

    def _read_rows(self) -> Mapping[str, IndexRow] | None:
        """Read the sound rows; None where the database cannot be read now."""

        def select(database: sqlite3.Connection) -> list[tuple[Any, ...]]:
            columns = ", ".join(f"[{column}]" for column in (*_COLUMNS, "crc"))
            return database.execute(f"SELECT {columns} FROM settled").fetchall()  # noqa: S608

        rows = self._use(select)
        if rows is None:
            return None
        return {row[0]: IndexRow(*row[:-1]) for row in rows if _is_sound(*row)}

    def write(self, settled: Iterable[IndexRow], names: Container[str]) -> list[IndexRow]:
        """Keep the rows of some jobs, and remove the rows of those that are not in `names`.

        Return the rows that are kept. Nothing is lost where that cannot be done now.
        """
        rows = [row for row in settled if _fits(row)]
        if not rows:
            return []

        def insert(database: sqlite3.Connection) -> list[IndexRow]:
            marks = ", ".join("?" * (len(_COLUMNS) + 1))
            database.executemany(
                f"INSERT OR REPLACE INTO settled VALUES ({marks})",  # noqa: S608
                [(*row.values(), _crc(row.values())) for row in rows],
            )
            indexed = database.execute("SELECT name FROM settled").fetchall()
            removed = [row for row in indexed if row[0] not in names]
            database.executemany("DELETE FROM settled WHERE name = ?", removed)
            return rows

        return self._use(insert, create=True) or []

    def is_current(self, row: IndexRow) -> bool:
        """Tell whether the job's directory is as it was when the row was made."""
        try:
            return format_stamp(os.stat(f"{self._root}/{row.name}")) == row.stamp  # noqa: PTH116
        except OSError:
            return False

    def _use(
        self, work: Callable[[sqlite3.Connection], _Answer], *, create: bool = False
    ) -> _Answer | None:
        """Return what `work` returns for the database; None where it cannot be used now.

        A database that another process keeps locked is left alone for `RETRY_INTERVAL`. A damaged
        one is removed: the next writer begins a new one.
        """
        if not self._exchange.is_local or time.monotonic() < self._busy_until:
            return None
        import sqlite3

        try:
            if create:
                self._folder.mkdir(mode=0o700, exist_ok=True)
                self._file.touch(mode=0o600)
            address = f"{self._file.absolute().as_uri()}?mode=rw"  # without creating it
            connect = sqlite3.connect(address, timeout=BUSY_TIMEOUT, isolation_level=None, uri=True)
            with contextlib.closing(connect) as database:
                database.execute("PRAGMA journal_mode = MEMORY")
                database.execute("BEGIN IMMEDIATE" if create else "BEGIN")
                answer = work(database) if self._has_table(database, create=create) else None
                database.execute("COMMIT")
                return answer
        except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
            is_operational = isinstance(error, sqlite3.OperationalError)
            if is_operational and "locked" in str(error):
                self._busy_until = time.monotonic() + RETRY_INTERVAL
            elif not is_operational or "no such" in str(error):
                # A full or read-only disk does not mean damage; a missing column does.
                for path in self._folder.glob(f"{self._file.name}*"):
                    with contextlib.suppress(OSError):
                        path.unlink(missing_ok=True)
        except OSError:
            pass
        return None

    def _has_table(self, database: sqlite3.Connection, *, create: bool) -> bool:
        """Tell whether the table exists, after making it if need be. Raises DatabaseError."""
        import sqlite3

        version = database.execute("PRAGMA user_version").fetchone()[0]
        if version not in (0, _VERSION):
            raise sqlite3.DatabaseError("The index is of another version.")
        if version == 0 and create:
            columns = ", ".join(f"[{column}] TEXT NOT NULL" for column in _COLUMNS)
            columns = columns.replace("NOT NULL", "PRIMARY KEY NOT NULL", 1)
            database.execute(f"CREATE TABLE settled ({columns}, crc INTEGER NOT NULL)")
            database.execute(f"PRAGMA user_version = {_VERSION}")
        return version != 0 or create

    @property
    def _file(self) -> Path:
        return self._folder / FILE


def _fits(row: IndexRow) -> bool:
    """Tell whether a row is small enough, and text that SQLite takes: a path may be neither."""
    try:
        return len("".join(row.values()).encode()) <= MAX_ROW
    except UnicodeEncodeError:
        return False


def _is_sound(*row: Any) -> bool:
    """Tell whether the row of a table is as it was written: a flipped bit changes types, too."""
    *values, crc = row
    return all(isinstance(value, str) for value in values) and crc == _crc(values)


def _crc(values: Iterable[str]) -> int:
    return zlib.crc32("\0".join(values).encode())
