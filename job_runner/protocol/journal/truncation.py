"""What log and notebook say where output of a run was dropped, because it was over its cap."""

from __future__ import annotations

from typing import Any

from ..units import format_bytes

Record = dict[str, Any]


def dropped_notice(record: Record) -> str:
    """Return the line for a record of the kind `dropped`: at the cap, or of a cell that ended."""
    limit = format_bytes(record["limit"])
    lost = record.get("bytes")
    if lost is None:
        text = f"the output of this run reached its cap of {limit}"
        return f"\n[... {text}: from here on much of it may be dropped ...]\n"
    outputs = record.get("outputs") or 0
    text = f"{format_bytes(lost)} of this cell's output ({outputs:,} messages) dropped here"
    return f"\n[... {text}: the run is over its cap of {limit} ...]\n"
