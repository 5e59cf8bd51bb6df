"""The settled jobs, of which nothing is left to do, so that nobody reads their directories again.

A job that is deleted and submitted again under its idempotency key has the same name. Both may
happen between two polls: then only the file of the request tells the new job from the old one.
"""

from __future__ import annotations

import os
from collections.abc import KeysView, Set
from itertools import islice

from job_runner.protocol import layout

from ..exchange import FileExchange
from ..exchange.stamps import format_stamp, stamp_of

MAX_LOOKS = 100
"""Settled jobs that one poll compares with their directories: on a network file system always, and
elsewhere while jobs are added or removed."""


class SettledJobs:
    """The names of the settled jobs of one exchange, each with the stamp of its request."""

    def __init__(self, exchange: FileExchange) -> None:
        self._exchange = exchange
        self._stamps: dict[str, str | None] = {}
        """The job to compare next comes first."""
        self._root_stamp: str | None = None
        self._comparisons_due = 0

    def __len__(self) -> int:
        return len(self._stamps)

    @property
    def names(self) -> KeysView[str]:
        """The names."""
        return self._stamps.keys()

    def add(self, name: str, stamp: str | None) -> None:
        """Add a job; `stamp` is what `request_stamp` returned before the job was read."""
        self._stamps[name] = stamp

    def drop_others(self, names: Set[str]) -> None:
        """Forget the jobs that are not in `names`."""
        self._stamps = {name: stamp for name, stamp in self._stamps.items() if name in names}

    def forget_replaced(self, looks: int = MAX_LOOKS) -> bool:
        """Forget jobs whose names other jobs have now; tell whether there was one.

        A call compares at most `looks` jobs, and none if all have been compared since the exchange
        changed. On a network file system nobody knows that.
        """
        stamp = stamp_of(self._exchange.root) if self._exchange.is_local else None
        if stamp is None or stamp != self._root_stamp:
            self._root_stamp, self._comparisons_due = stamp, len(self._stamps)
        share = list(islice(self._stamps, min(looks, self._comparisons_due)))
        self._comparisons_due -= len(share)
        stamps = {name: self._stamps.pop(name) for name in share}
        same = {n: s for n, s in stamps.items() if s == request_stamp(self._exchange, n)}
        self._stamps.update(same)
        return len(same) < len(stamps)


def request_stamp(exchange: FileExchange, name: str) -> str | None:
    """Return the stamp of a job's request; None if there is none.

    The same job has another stamp once it is cleared, or after a restore of the exchange.
    """
    path = f"{exchange.root}/{name}/{layout.REQUEST}"
    try:
        return format_stamp(os.stat(path))  # noqa: PTH116 - text, where there are many
    except OSError:
        return None
