"""Writes parts of a notebook as the text of its file, in nbformat's layout.

Each line of text has a line of its own, so that files can be compared; a value of a JSON type is
one line, whatever its size. Python's encoder in C writes strings and those values: the encoder that
indents is in Python, and would take most of the time of a large result.
"""

from __future__ import annotations

import io
import json
import math
import re
from collections.abc import Iterable, Iterator
from json.encoder import encode_basestring
from typing import Any

_COMPACT = json.JSONEncoder(
    ensure_ascii=False, allow_nan=False, sort_keys=True, separators=(",", ":")
)
# The types that nbformat stores as lists of lines, besides everything that is `text/...`.
_MULTILINE = {"application/javascript", "image/svg+xml"}
_JSON = re.compile(r"application/(.*\+)?json")

_LARGE = 1 << 20
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


def write_string(text: str) -> Iterator[str]:
    """Yield a text as a JSON string, a large one in pieces to save memory."""
    if len(text) <= _LARGE:
        yield quote(text)
        return
    yield '"'
    for start in range(0, len(text), _LARGE):
        yield quote(text[start : start + _LARGE])[1:-1]
    yield '"'


def write_value(value: Any, indent: int) -> Iterator[str]:
    """Yield a value with a line for each of its entries, indented from the second line on."""
    if isinstance(value, dict) and value:
        entries = (
            (f"{quote(key)}: ", _entry(key, value[key], indent + 1)) for key in sorted(value)
        )
        yield from _block("{}", entries, indent)
    elif isinstance(value, list | tuple) and value:
        yield from _block("[]", (("", write_value(inner, indent + 1)) for inner in value), indent)
    elif isinstance(value, str):
        yield from write_string(value)
    else:
        yield compact(value)


def write_output(value: dict[str, Any]) -> Iterator[str]:
    """Yield an output of a cell that is not a stream."""
    yield " " * OUTPUT_INDENT
    entries = (
        (
            f"{quote(key)}: ",
            (write_mime_bundle if key == "data" else write_value)(value[key], OUTPUT_INDENT + 1),
        )
        for key in sorted(value)
    )
    yield from _block("{}", entries, OUTPUT_INDENT)


def write_mime_bundle(data: dict[str, Any], indent: int) -> Iterator[str]:
    """Yield a MIME bundle."""
    if not data:
        yield "{}"
        return
    entries = ((f"{quote(kind)}: ", _mime(kind, data[kind], indent + 1)) for kind in sorted(data))
    yield from _block("{}", entries, indent)


def write_text(text: Any, indent: int) -> Iterator[str]:
    """Yield a text as a list of its lines; a list of lines as it is."""
    if not isinstance(text, str):
        yield from write_value(text, indent)
    elif text:
        yield "[\n" + " " * (indent + 1)
        yield from write_lines(text, indent + 1)
        yield "\n" + " " * indent + "]"
    else:
        yield "[]"


def write_lines(text: str, indent: int) -> Iterator[str]:
    """Yield the lines of a text as JSON strings, with the separators of a list between them."""
    between = f",\n{' ' * indent}"
    start = 0
    while start < len(text):
        end = text.find("\n", start + _LARGE) + 1 or len(text)
        if start:
            yield between
        some = text[start:end]
        if len(some) > 2 * _LARGE:
            for count, line in enumerate(io.StringIO(some, newline="\n")):
                yield between if count else ""
                yield from write_string(line)
        else:
            yield _few_lines(some, between)
        start = end


def _few_lines(text: str, between: str) -> str:
    if "\\" in text:
        return between.join(map(quote, io.StringIO(text, newline="\n")))
    # This is faster, and right only without backslashes: every `\n` is the end of a line.
    text_line = quote(text.removesuffix("\n")).replace("\\n", f'\\n"{between}"')
    return f'{text_line[:-1]}\\n"' if text.endswith("\n") else text_line


def encode_chunks(pieces: Iterable[str]) -> Iterator[bytes]:
    """Yield the bytes of a text that comes in pieces, small ones together.

    Lone surrogates, which UTF-8 does not have, become `?`.
    """
    small: list[str] = []
    size = 0
    for piece in pieces:
        small.append(piece)
        size += len(piece)
        if size >= _LARGE:
            yield "".join(small).encode(errors="replace")
            small, size = [], 0
    if size:
        yield "".join(small).encode(errors="replace")


def is_json(kind: str) -> bool:
    """Tell whether nbformat takes a MIME type for JSON, so that its values may be anything."""
    return _JSON.fullmatch(kind) is not None


def _block(ends: str, entries: Iterable[tuple[str, Iterator[str]]], indent: int) -> Iterator[str]:
    between = "\n" + " " * (indent + 1)
    yield ends[0]
    for count, (name, entry) in enumerate(entries):
        yield f"{',' if count else ''}{between}{name}"
        yield from entry
    yield "\n" + " " * indent + ends[1]


def _mime(kind: str, value: Any, indent: int) -> Iterator[str]:
    if kind.startswith("text/") or kind in _MULTILINE:
        return write_text(value, indent)
    return _entry(kind, value, indent)


def _entry(key: str, value: Any, indent: int) -> Iterator[str]:
    return iter((compact(value),)) if is_json(key) else write_value(value, indent)
