"""The disposable index: what is known of settled jobs, so that a list reads no 10,000 directories.

Never a source of truth. Each row carries the stamp of the job's directory (its inode, and when a
name in it was last made, renamed or removed) and counts only while the directory still has it; each
carries its own checksum; and whatever is wrong with the whole makes it be thrown away and built
again. Without an index, as on network file systems, everything works, and reads directories.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import time
import zlib
from collections.abc import Callable, Container, Iterable, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from ..domain.job import Job
from .filesystem import is_network
from .stamps import StampCache, format_stamp

if TYPE_CHECKING:
    import sqlite3

_Answer = TypeVar("_Answer")

FOLDER = ".index"
PATIENCE = 1.0
"""Seconds to wait for others who use the index, before doing without."""
MAX_ROW = 64 << 10
"""Bytes of a row at most: a job with larger parameters is read from its directory."""
_COLUMNS = (
    "name", "stamp", "owner", "source", "workspace", "submitted", "state", "delivery", "document"
)  # fmt: skip
_VERSION = zlib.crc32(" ".join([*(f.name for f in fields(Job)), *_COLUMNS]).encode()) >> 1
"""Another version of this package, with other fields, finds an index of another version."""


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
            document=json.dumps(job.to_json()),
        )

    def job(self) -> Job:
        """Return the job."""
        return Job.from_json(json.loads(self.document))

    def values(self) -> tuple[str, ...]:
        """Return the columns."""
        return tuple(getattr(self, column) for column in _COLUMNS)


_NONE: Mapping[str, IndexRow] = {}


class Index:
    """The index of one exchange, safe to use from many processes at once.

    Every use opens it anew under a lock that the kernel drops with its process: so that throwing
    it away never meets somebody in the middle of it, and a killed writer leaves nothing behind but
    what SQLite rolls back.
    """

    def __init__(self, root: Path) -> None:
        self._root = root
        self._folder = root / FOLDER
        self._local: bool | None = None
        self._rows: StampCache[Path, Mapping[str, IndexRow] | None] = StampCache()

    @property
    def is_local(self) -> bool:
        """Whether the exchange is where times of files can be relied on: else there is no index."""
        if self._local is None:
            self._local = self._root.is_dir() and not is_network(self._root)
        return self._local

    def read(self, names: Iterable[str]) -> dict[str, IndexRow]:
        """Return what is known of those of `names` whose directories have not changed since."""
        rows = self.rows()
        found = (rows[name] for name in names if name in rows)
        return {row.name: row for row in found if self.is_current(row)}

    def rows(self) -> Mapping[str, IndexRow]:
        """Return all sound rows: the very same object, while nothing was written.

        Rows of an older time do no harm: each one is held to its directory before it counts.
        """
        try:
            status = self._file.stat()
        except OSError:
            return _NONE
        stamp = (status.st_ino, status.st_size, status.st_mtime_ns)
        return self._rows.get(self._file, stamp, self._read_rows) or _NONE

    def _read_rows(self) -> Mapping[str, IndexRow] | None:
        """Read the sound rows; None where the database cannot be read now."""
        chosen = ", ".join((*_COLUMNS, "crc"))
        rows = self._use(
            fcntl.LOCK_SH,
            lambda database: database.execute(f"SELECT {chosen} FROM settled").fetchall(),  # noqa: S608
        )
        if rows is None:
            return None
        sound = (IndexRow(*values) for *values, crc in rows if crc == _crc(values))
        return {row.name: row for row in sound}

    def write(self, settled: Iterable[IndexRow], names: Container[str]) -> None:
        """Keep some jobs, and forget those that are none of `names` any more.

        Nothing is lost where that cannot be done now.
        """
        rows = [row for row in settled if _can_be_kept(row)]
        if not rows:
            return

        def keep(database: sqlite3.Connection) -> None:
            marks = ", ".join("?" * (len(_COLUMNS) + 1))
            database.executemany(
                f"INSERT OR REPLACE INTO settled VALUES ({marks})",  # noqa: S608
                [(*row.values(), _crc(row.values())) for row in rows],
            )
            kept = database.execute("SELECT name FROM settled").fetchall()
            gone = [row for row in kept if row[0] not in names]
            database.executemany("DELETE FROM settled WHERE name = ?", gone)
            database.commit()

        self._use(fcntl.LOCK_EX, keep)

    def is_current(self, row: IndexRow) -> bool:
        """Tell whether the job's directory is as it was when the row was made."""
        try:
            return format_stamp(os.stat(f"{self._root}/{row.name}")) == row.stamp  # noqa: PTH116
        except OSError:
            return False

    def _use(self, how: int, work: Callable[[sqlite3.Connection], _Answer]) -> _Answer | None:
        """Return what `work` on the database returns; None where there is none to use now.

        What is damaged is removed, and whoever comes next begins anew.
        """
        lock = self._lock(how)
        if lock is None:
            return None
        import sqlite3

        try:
            if how == fcntl.LOCK_SH and not self._file.exists():
                return None
            with contextlib.closing(self._database()) as database:
                return work(database)
        except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
            # Full, busy or read-only says nothing about it; a table that is not there does.
            passing = isinstance(error, sqlite3.OperationalError) and "no such" not in str(error)
            if not passing:
                self._throw_away(lock)
            return None
        except OSError:
            return None
        finally:
            os.close(lock)

    @property
    def _file(self) -> Path:
        return self._folder / "settled.sqlite"

    def _lock(self, how: int) -> int | None:
        """Take the lock and return its descriptor; None if that cannot be had."""
        if not self.is_local:
            return None
        try:
            self._folder.mkdir(mode=0o700, exist_ok=True)
            lock = os.open(self._folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError:
            return None
        end = time.monotonic() + PATIENCE
        while True:
            try:
                fcntl.flock(lock, how | fcntl.LOCK_NB)
            except BlockingIOError:
                if time.monotonic() > end:
                    os.close(lock)
                    return None
                time.sleep(PATIENCE / 200)
            else:
                return lock

    def _database(self) -> sqlite3.Connection:
        """Open the database, and make its table if it is new. Raises DatabaseError."""
        import sqlite3

        new = not self._file.exists()
        if new:
            self._file.touch(mode=0o600)
        database = sqlite3.connect(self._file, timeout=PATIENCE)
        try:
            if new:
                columns = ", ".join(f"{column} TEXT NOT NULL" for column in _COLUMNS)
                columns = columns.replace("NOT NULL", "PRIMARY KEY NOT NULL", 1)
                database.execute(f"CREATE TABLE settled ({columns}, crc INTEGER NOT NULL)")
                database.execute(f"PRAGMA user_version = {_VERSION}")
            elif database.execute("PRAGMA user_version").fetchone()[0] != _VERSION:
                raise sqlite3.DatabaseError("of another version")
        except BaseException:
            database.close()
            raise
        return database

    def _throw_away(self, lock: int) -> None:
        """Remove the database, unless somebody uses it: then the next one who notices does."""
        with contextlib.suppress(OSError):
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            for path in self._folder.glob(f"{self._file.name}*"):
                path.unlink(missing_ok=True)


def _can_be_kept(row: IndexRow) -> bool:
    """Tell whether a row is of a size for it, and text that SQLite takes: a path may be neither."""
    try:
        return len("".join(row.values()).encode()) <= MAX_ROW
    except UnicodeEncodeError:
        return False


def _crc(values: Iterable[str]) -> int:
    return zlib.crc32("\0".join(values).encode())
