"""Which jobs there are, without reading the whole exchange at every look."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from ..exchange import FileExchange

_SETTLING = 1.0
"""Seconds for which a directory that changed is read again: its time is coarser than our looks."""
_AT_LEAST = 10.0
"""Seconds after which it is read anyhow: a network file system may be late in telling."""


@dataclass
class JobNames:
    """The names in an exchange: its directory's own time tells whether to read them again."""

    exchange: FileExchange
    names: frozenset[str] = frozenset()
    _mtime: int = -1
    _changed: float = field(default=float("-inf"))
    _read: float = field(default=float("-inf"))

    def refresh(self, *, force: bool = False) -> bool:
        """Read the names if they may have changed; tell whether they did."""
        now = time.monotonic()
        try:
            mtime = self.exchange.root.stat().st_mtime_ns
        except FileNotFoundError:
            mtime = -1
        if mtime != self._mtime:
            self._mtime, self._changed = mtime, now
        recent = now - self._changed < _SETTLING or now - self._read > _AT_LEAST
        if not (recent or force):
            return False
        before, self._read = self.names, now
        self.names = frozenset(self.exchange.jobs())
        return self.names != before

    def forget(self, name: str) -> None:
        """Let a name be new again, when the names are read for the next time."""
        self.names -= {name}

    def expect_change(self) -> None:
        """Read the names again soon: something told that they changed."""
        self._changed = time.monotonic()
