"""A gate at which every thread waits that touches a file, while a test keeps it shut.

A handler may touch files in a thread of its pools, never on the event loop. With the gate shut, the
threads of the pools wait, and the loop has to go on answering. The loop's own thread cannot wait
here, for only the test can open the gate, and the test runs on that loop: reaching the gate there
is the fault itself. So a failure does not depend on how fast the machine is.
"""

from __future__ import annotations

import os
import sys
import sysconfig
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

BOUND = 60.0
"""Seconds after which a shut gate lets a thread pass: only a blocked loop waits so long."""

_EVENTS = ("open", "os.", "fcntl.", "shutil.", "sqlite3.", "subprocess.", "tempfile.")
"""Audit events of what touches a file or starts a process, or how their names begin."""
_CODE = (sys.prefix, sysconfig.get_path("stdlib"), str(Path(__file__).parents[2]))
"""Folders of modules: a thread that imports one holds a lock that others need."""


class Gate:
    """`waiting` are the names of the threads at the gate, `faults` what must not have happened."""

    def __init__(self) -> None:
        self.waiting: set[str] = set()
        self.faults: list[str] = []
        self._open = threading.Event()
        self._open.set()
        self._guarded_thread: threading.Thread | None = None

    @contextmanager
    def guard(self) -> Iterator[None]:
        """Let the caller's thread, which is the event loop's, come to no gate, open or shut."""
        self._guarded_thread = threading.current_thread()
        try:
            yield
        finally:
            self._guarded_thread = None
            self.open()
        assert not self.faults, self.faults

    def shut(self) -> None:
        """Keep every thread waiting that comes from now on."""
        self._open.clear()

    def open(self) -> None:
        """Let all of them go on."""
        self._open.set()

    def enter(self, what: str) -> None:
        """Wait until the gate is open. Raises RuntimeError on the event loop's thread."""
        thread = threading.current_thread()
        if thread is self._guarded_thread:
            self.faults.append(f"the event loop would have to wait for {what}")
            raise RuntimeError(self.faults[-1])
        if self._open.is_set():
            return
        self.waiting.add(thread.name)
        if not self._open.wait(BOUND):
            self.faults.append(f"the event loop stood still while {thread.name} waited for {what}")


_gates: list[Gate] = []
"""The gate of the test that runs, if it has one."""
_hooked: list[bool] = []
"""Not empty once the audit hook is there: it stays for as long as its process does."""


def _audit(event: str, arguments: tuple[Any, ...]) -> None:
    if _gates and event.startswith(_EVENTS):
        subject = arguments[0] if arguments else ""
        path = os.fsdecode(subject) if isinstance(subject, str | bytes) else str(subject)
        if not path.startswith(_CODE):
            _gates[0].enter(f"{event} {path}")


@contextmanager
def installed() -> Iterator[Gate]:
    """Install a gate, which is open at first."""
    if not _hooked:
        sys.addaudithook(_audit)
        _hooked.append(True)
    _gates.append(Gate())
    stat = os.stat

    def audited_stat(path: Any, **options: Any) -> os.stat_result:
        if not isinstance(path, int):
            _audit("os.stat", (path,))  # Python itself reports no look at a file's status
        return stat(path, **options)

    try:
        with mock.patch.object(os, "stat", audited_stat):
            yield _gates[0]
    finally:
        _gates.clear()
