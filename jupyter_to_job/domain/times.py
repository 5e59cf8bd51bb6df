"""Points in time as documents and REST carry them: UTC, RFC 3339, milliseconds, `Z`."""

from __future__ import annotations

from datetime import datetime, timezone


def rfc3339(moment: datetime) -> str:
    """Return `moment` (timezone-aware) as e.g. `2026-11-21T09:30:00.000Z`."""
    return moment.astimezone(timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def now() -> str:
    """Return the present moment in that form."""
    return rfc3339(datetime.now(timezone.utc))
