"""The line: higher priority first, then first come first served."""

from __future__ import annotations

from collections.abc import Iterable

from ...exchange import Request


def in_line(waiting: Iterable[Request]) -> list[Request]:
    """Return the waiting requests, next first."""
    return sorted(waiting, key=lambda r: (-r.priority, r.submitted, r.name))
