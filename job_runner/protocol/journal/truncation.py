"""What log and notebook say where something of a run is missing, because it was too much."""

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


def cut_notice(record: Record) -> str:
    """Return the line for a record of the kind `cut`: a gateway took no more of this journal."""
    return f"\n[... the journal of this run ends here: {cut_reason(record)} ...]\n"


def cut_reason(record: Record) -> str:
    """Return why a journal was cut, as a part of a sentence."""
    limit = format_bytes(record["limit"])
    match record.get("of"):
        case "record":
            return f"it has a record of more than {limit}"
        case "attempt":
            return f"it is over the {limit} that are kept of one attempt"
    return f"only {limit} of it could be put together"


def omitted_notice(record: Record) -> str:
    """Return the line for a record that its reader does not take into memory."""
    return f"\n[... a record of {format_bytes(record['bytes'])} is too large to be shown ...]\n"
