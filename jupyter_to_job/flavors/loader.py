"""The catalog's file: read once by commands, and kept in force by what lives long.

pydantic and PyYAML are loaded with the first catalog: most commands need none.
"""

from __future__ import annotations

import errno
import logging
import os
import stat
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ..domain.errors import BadCatalog, Fault

if TYPE_CHECKING:
    from .catalog import Catalog

SHIPPED = Path(__file__).with_name("flavors.yaml")
SHOWN = 20
"""Faults that an error's message spells out."""
YOUNG = 2.0
"""Seconds in which a change may leave size and times as they are: clocks of files are coarse."""
_log = logging.getLogger(__name__)
_Signature = tuple[int, ...]


def load_catalog(path: Path = SHIPPED) -> Catalog:
    """Read and check the file at `path`. Raises BadCatalog with all of its faults."""
    return parse_catalog(_read(path)[0], str(path))


def parse_catalog(data: bytes, name: str) -> Catalog:
    """Check a catalog's text; `name` is what faults call the file. Raises BadCatalog."""
    from .validation import check
    from .yaml_reader import Unreadable, read

    try:
        root, faults = read(data)
    except Unreadable as error:
        raise bad_catalog(name, error.faults) from error
    catalog, wrong = check(root)
    faults = sorted({*faults, *wrong})
    if faults or catalog is None:
        raise bad_catalog(name, faults)
    return catalog


def bad_catalog(name: str, faults: Sequence[Fault]) -> BadCatalog:
    """Return the error for a file with `faults`: a line each, in the form that editors jump to."""
    lines = [
        f"{name}:{fault.line}:{fault.column}: {fault.message} {fault.hint}".rstrip()
        for fault in faults[:SHOWN]
    ]
    if len(faults) > SHOWN:
        lines.append(f"and {len(faults) - SHOWN} more")
    hint = "Mend the file; `jupyter-to-job flavors check` shows what is left."
    return BadCatalog("The catalog is broken.\n" + "\n".join(lines), hint, faults)


def _read(path: Path) -> tuple[bytes, _Signature]:
    """Return what is in the file, at most a little over the bound, and what `_signature` gives."""
    from .yaml_reader import MAX_BYTES

    try:
        # Not blocking: opening a named pipe would wait for somebody to write into it.
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            status = os.fstat(handle)
            if not stat.S_ISREG(status.st_mode):
                raise OSError(errno.EINVAL, "it is no regular file")
            with open(handle, "rb", closefd=False) as file:
                return file.read(MAX_BYTES + 1), _signature(status)
        finally:
            os.close(handle)
    except OSError as error:
        message = f"The file cannot be read: {error.strerror}."
        fault = Fault(1, 1, message, "Look at the path and its permissions.")
        raise bad_catalog(str(path), [fault]) from error


def _signature(status: os.stat_result) -> _Signature:
    """Return what changes with the file, also when it is replaced or a link leads elsewhere."""
    return (
        status.st_dev,
        status.st_ino,
        status.st_size,
        status.st_mtime_ns,
        status.st_ctime_ns,
    )


class CatalogFile:
    """The catalog in force in a process that lives long: picks up changes, keeps the last good one.

    `locate` returns the path, each time anew. `problem` is what is wrong with the file as it is
    now, None if nothing is; it is logged once per change. Threads may share it.
    """

    def __init__(self, locate: Callable[[], Path]) -> None:
        self.problem: BadCatalog | None = None
        self._locate = locate
        self._path: Path | None = None
        self._signature: _Signature | None = None
        self._looked = 0.0
        self._data: bytes | None = None
        self._good: Catalog | None = None
        self._lock = threading.Lock()

    def current(self) -> Catalog:
        """Return the catalog in force; costs a stat while nothing changes.

        Raises BadCatalog where there never was a good one.
        """
        with self._lock:
            path = self._found()
            if path != self._path or self._may_have_changed(path):
                self._look(path)
            if self._good is None:
                assert self.problem is not None
                raise self.problem.with_traceback(None)
            return self._good

    def announce(self) -> None:
        """Log what is wrong when a process begins that others start and look into the log of."""
        try:
            self.current()
        except BadCatalog as error:
            _log.error("No catalog is in force: every submission is refused. %s", error)

    def _found(self) -> Path:
        """Return the path; an admin's file that is gone is missed, not replaced by the shipped."""
        path = self._locate()
        known = self._path if self._good is not None else None
        return known if known is not None and path == SHIPPED else path

    def _may_have_changed(self, path: Path) -> bool:
        try:
            signature: _Signature | None = _signature(path.stat())
        except OSError:
            signature = None
        changed = 0.0 if signature is None else signature[-1] / 1e9
        return signature != self._signature or self._looked - changed < YOUNG

    def _look(self, path: Path) -> None:
        """Read the file, and take what is in it if it is new and good."""
        self._looked = time.time()
        data, known = None, (self._path, self._data)
        self._path, self._signature = path, None
        try:
            data, self._signature = _read(path)
            if (path, data) != known:
                self._good, self.problem = parse_catalog(data, str(path)), None
                _log.info("The catalog %s is in force.", path)
        except BadCatalog as error:
            told = self.problem is not None and data is None and str(error) == str(self.problem)
            self.problem = error
            if self._good is not None and not told:
                _log.warning("The last good catalog stays in force. %s", error)
        self._data = data
