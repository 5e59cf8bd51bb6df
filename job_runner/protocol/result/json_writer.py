"""Writes parts of a notebook as the text of its file, in nbformat's layout.

Each line of text has a line of its own, so that files can be compared; a value of a JSON type is
one line, whatever its size. Python's encoder in C writes strings and those values: the encoder that
indents is in Python, and would take most of the time of a large result.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable
from json.encoder import encode_basestring
from typing import Any

_COMPACT = json.JSONEncoder(
    ensure_ascii=False, allow_nan=False, sort_keys=True, separators=(",", ":")
)
# The types that nbformat stores as lists of lines, besides everything that is `text/...`.
_MULTILINE = {"application/javascript", "image/svg+xml"}
_JSON = re.compile(r"application/(.*\+)?json")
_LINE = re.compile(r".*\n|.+")

OUTPUT_INDENT = 4
"""Spaces before an output of a cell."""


quote = encode_basestring
"""Return a text as a JSON string."""


def compact(value: Any) -> str:
    """Return a value in one line. NaN and the infinities become null."""
    try:
        return _COMPACT.encode(value)
    except ValueError:
        return _COMPACT.encode(finite(value))


def finite(value: Any) -> Any:
    """Return a copy with null for NaN and the infinities."""
    match value:
        case float() if not math.isfinite(value):
            return None
        case dict():
            return {key: finite(inner) for key, inner in value.items()}
        case list() | tuple():
            return [finite(inner) for inner in value]
    return value


def format_value(value: Any, indent: int) -> str:
    """Return a value with a line for each of its entries, indented from the second line on."""
    if isinstance(value, dict) and value:
        entries = (f"{quote(key)}: {_entry(key, value[key], indent + 1)}" for key in sorted(value))
        return _block("{}", entries, indent)
    if isinstance(value, list | tuple) and value:
        return _block("[]", (format_value(inner, indent + 1) for inner in value), indent)
    return compact(value)


def format_output(output: dict[str, Any]) -> str:
    """Return an output of a cell that is not a stream."""
    entries = []
    for key in sorted(output):
        format_field = format_mime_bundle if key == "data" else format_value
        entries.append(f"{quote(key)}: {format_field(output[key], OUTPUT_INDENT + 1)}")
    return " " * OUTPUT_INDENT + _block("{}", entries, OUTPUT_INDENT)


def format_mime_bundle(data: dict[str, Any], indent: int) -> str:
    """Return a MIME bundle."""
    entries = (f"{quote(kind)}: {_mime(kind, data[kind], indent + 1)}" for kind in sorted(data))
    return _block("{}", entries, indent) if data else "{}"


def format_text(text: Any, indent: int) -> str:
    """Return a text as a list of its lines; a list of lines as it is."""
    return format_value(_LINE.findall(text) if isinstance(text, str) else text, indent)


def format_lines(text: str, indent: int) -> str:
    """Return the lines of a text as JSON strings, with the separators of a list between them."""
    return f",\n{' ' * indent}".join(map(quote, _LINE.findall(text)))


def is_json(kind: str) -> bool:
    """Tell whether nbformat takes a MIME type for JSON, so that its values may be anything."""
    return _JSON.fullmatch(kind) is not None


def _block(ends: str, entries: Iterable[str], indent: int) -> str:
    between = "\n" + " " * (indent + 1)
    return f"{ends[0]}{between}{f',{between}'.join(entries)}\n{' ' * indent}{ends[1]}"


def _mime(kind: str, value: Any, indent: int) -> str:
    if kind.startswith("text/") or kind in _MULTILINE:
        return format_text(value, indent)
    return _entry(kind, value, indent)


def _entry(key: str, value: Any, indent: int) -> str:
    return compact(value) if is_json(key) else format_value(value, indent)
