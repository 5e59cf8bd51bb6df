"""Points in time as documents and REST carry them: UTC, RFC 3339, milliseconds, `Z`."""

from __future__ import annotations

import re
from datetime import datetime, timezone

_RFC3339 = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,6})?Z", re.ASCII)


def rfc3339(moment: datetime) -> str:
    """Return `moment` (timezone-aware) as e.g. `2026-11-21T09:30:00.000Z`."""
    return moment.astimezone(timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def from_unix(seconds: float) -> str:
    """Return unix seconds, as records of a journal have them, in that form."""
    return rfc3339(datetime.fromtimestamp(seconds, timezone.utc))


def parse(text: str) -> datetime:
    """Return the point in time that a document or REST names in that form. Raises ValueError."""
    if not _RFC3339.fullmatch(text):
        raise ValueError(f"{text!r} is no time in UTC")
    return datetime.fromisoformat(text.replace("Z", "+00:00"))  # Python 3.10 does not know Z


def now() -> str:
    """Return the present moment in that form."""
    return rfc3339(datetime.now(timezone.utc))
