"""Loads the catalog's file: once in commands, and after each change in long-lived processes.

pydantic and PyYAML are imported with the first catalog, because most commands need none.
"""

from __future__ import annotations

import errno
import logging
import os
import stat
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ..domain.errors import BadCatalog, Fault

if TYPE_CHECKING:
    from .catalog import Catalog

SHIPPED = Path(__file__).with_name("flavors.yaml")
MAX_LISTED_FAULTS = 20
"""Faults that the message of an error lists."""
_log = logging.getLogger(__name__)


def load_catalog(path: Path = SHIPPED) -> Catalog:
    """Read and check the file at `path`. Raises BadCatalog with all its faults."""
    return parse_catalog(_read(path), str(path))


def parse_catalog(data: bytes, name: str) -> Catalog:
    """Check a catalog's text; messages call the file `name`. Raises BadCatalog."""
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
        for fault in faults[:MAX_LISTED_FAULTS]
    ]
    if len(faults) > MAX_LISTED_FAULTS:
        lines.append(f"and {len(faults) - MAX_LISTED_FAULTS} more")
    hint = "Mend the file; `jupyter-to-job flavors check` shows what is left."
    return BadCatalog("The catalog is broken.\n" + "\n".join(lines), hint, faults)


def _read(path: Path) -> bytes:
    """Return the file's bytes, one more than allowed at most. Raises BadCatalog."""
    from .yaml_reader import MAX_BYTES

    try:
        with open(path, "rb", opener=_open_at_once) as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise OSError(errno.EINVAL, "it is no regular file")
            return file.read(MAX_BYTES + 1)
    except OSError as error:
        message = f"The file cannot be read: {error.strerror}."
        fault = Fault(1, 1, message, "Look at the path and its permissions.")
        raise bad_catalog(str(path), [fault]) from error


def _open_at_once(name: str, flags: int) -> int:
    """Open a file; opening a named pipe without O_NONBLOCK would wait for a writer."""
    return os.open(name, flags | os.O_NONBLOCK)


class CatalogFile:
    """The catalog in force in a long-lived process: follows changes, keeps the last good one.

    `locate` returns the path at each call. `problem` is the error of the file as it is now, None if
    it is good; it is logged once per change. Threads may share the object.
    """

    def __init__(self, locate: Callable[[], Path]) -> None:
        self.problem: BadCatalog | None = None
        self._locate = locate
        self._path: Path | None = None
        self._data: bytes | None = None
        self._good: Catalog | None = None
        self._lock = threading.Lock()

    def current(self) -> Catalog:
        """Return the catalog in force. The file is read, and parsed if it has changed.

        Raises BadCatalog if no good one was ever read.
        """
        with self._lock:
            path = self._locate()
            # The shipped catalog never replaces an admin's file that is missing.
            if path == SHIPPED and self._good is not None and self._path is not None:
                path = self._path
            self._load(path)
            if self._good is None:
                assert self.problem is not None
                raise self.problem.with_traceback(None)
            return self._good

    def log_problem(self) -> None:
        """Log the error of a broken catalog, for services that start with it."""
        try:
            self.current()
        except BadCatalog as error:
            _log.error("No catalog is in force: every submission is refused. %s", error)

    def _load(self, path: Path) -> None:
        """Read the file, and put it in force if it is new and good."""
        data, previous = None, (self._path, self._data)
        try:
            data = _read(path)
            if (path, data) != previous:
                self._good, self.problem = parse_catalog(data, str(path)), None
                _log.info("The catalog %s is in force.", path)
        except BadCatalog as error:
            is_logged = data is None and str(error) == str(self.problem)
            self.problem = error
            if self._good is not None and not is_logged:
                _log.warning("The last good catalog stays in force. %s", error)
        self._path, self._data = path, data
