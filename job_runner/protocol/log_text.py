"""What a run printed, from its records: the text of `logs`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from .journal.truncation import cut_notice, dropped_notice
from .journal.validation import damage_notice, validated
from .units import format_bytes

Record = dict[str, Any]


def log_text(records: Iterable[Record]) -> Iterator[str]:
    """Yield the text output and tracebacks, in the order of the records."""
    for record in map(validated, records):
        if record.get("k") == "damaged":
            yield "\n" + damage_notice(record)
        elif record.get("k") == "omitted" and record.get("of") == "output":
            yield f"[{format_bytes(record['bytes'])} of output: see the notebook]\n"
        elif record.get("k") == "dropped":
            yield dropped_notice(record)
        elif record.get("k") == "cut":
            yield cut_notice(record)
        elif record.get("k") == "output":
            yield from _text_of(record["output"])


def _text_of(output: dict[str, Any]) -> Iterator[str]:
    match output.get("output_type"):
        case "stream":
            yield output["text"]
        case "error":
            lines = output["traceback"] or [f"{output['ename']}: {output['evalue']}"]
            yield "\n".join(lines) + "\n"
        case "execute_result" | "display_data":
            text = output["data"].get("text/plain")
            if text:
                yield ("".join(text) if isinstance(text, list) else text) + "\n"
