"""From what a kernel says on iopub to records of the journal.

Kernels of all languages and ages talk here, so each output is made valid nbformat at this door;
nothing behind it needs to check again.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Sequence
from typing import Any

from ..protocol.journal.nesting import MAX_DEPTH, is_too_deep
from ..protocol.journal.validation import validated
from ..protocol.result.json_writer import is_json

Record = dict[str, Any]
Content = dict[str, Any]

MAX_STREAM_CHARS = 128 << 10
"""Characters of a stream in one record: in JSON always less than the 1 MiB of an answer."""
_KINDS = frozenset(
    [
        *("stream", "display_data", "execute_result", "error", "clear_output"),
        *("update_display_data", "comm_open", "comm_msg", "comm_close"),
    ]
)
"""What changes something in a notebook."""
_TOO_DEEP: Content = {}
_UNREADABLE: Content = {}
_DIGITS = 640
"""Of integers that Python takes however it is set."""


def records_of(
    kind: str, content: Content, cell: int, buffers: Sequence[bytes] = ()
) -> Iterator[Record]:
    """Yield the records of a message about `cell`; none if it changes nothing in a notebook.

    A long stream is several, so that none is too long to be read by itself. What is not as
    Jupyter's protocol has it is told of in its place, and the run goes on.
    """
    if kind not in _KINDS:
        return
    try:
        record = _record_of(kind, content, cell, buffers)
        is_valid = record is None or validated(record) is record
    except (AttributeError, KeyError, TypeError, ValueError):
        is_valid = False
    if content is _TOO_DEEP:
        record = _placeholder(kind, cell, f"nested more than {MAX_DEPTH} levels deep")
    elif content is _UNREADABLE or not is_valid:
        record = _placeholder(kind, cell, "not as Jupyter's protocol has it")
    if record is None:
        return
    text = record.get("output", {}).get("text", "")
    if len(text) <= MAX_STREAM_CHARS:
        yield record
        return
    for start in range(0, len(text), MAX_STREAM_CHARS):
        yield {
            **record,
            "output": {**record["output"], "text": text[start : start + MAX_STREAM_CHARS]},
        }


def _record_of(kind: str, content: Content, cell: int, buffers: Sequence[bytes]) -> Record | None:
    match kind:
        case "stream":
            name, text = str(content.get("name") or "stdout"), _text(content.get("text") or "")
            stream = {"output_type": kind, "name": name, "text": text}
            return {"k": "output", "i": cell, "output": stream}
        case "display_data" | "execute_result":
            output = {"output_type": kind, **_shown(content)}
            if kind == "execute_result":
                output["execution_count"] = count_of(content)
            return {"k": "output", "i": cell, "output": output, **_display_id(content)}
        case "error":
            error = {
                "output_type": kind,
                "ename": _text(content.get("ename", "")),
                "evalue": _text(content.get("evalue", "")),
                "traceback": lines_of(content),
            }
            return {"k": "output", "i": cell, "output": error}
        case "clear_output":
            return {"k": "clear", "i": cell, "wait": bool(content.get("wait"))}
        case "update_display_data":
            named = _display_id(content)
            return {"k": "update_display", **named, **_shown(content)} if named else None
        case "comm_open" | "comm_msg":
            return _widget(content, cell, buffers)
        case "comm_close":
            return {"k": "widget_close", "id": str(content["comm_id"])}
    return None


def count_of(content: Content) -> int | None:
    """Return the number of an execution, if a message tells it."""
    count = content.get("execution_count")
    if isinstance(count, bool) or not isinstance(count, int):
        return None
    return max(count, 0)


def lines_of(content: Content) -> list[str]:
    """Return the lines of the traceback that a message tells, if it does."""
    lines = content.get("traceback") or []
    return [_text(line) for line in (lines if isinstance(lines, list) else [lines])]


def unpack(parts: list[bytes], index: int) -> Content:
    """Take a part out of a message, and return it from its JSON, which is an object.

    What nobody could write again is left out. The part's bytes are gone before it is parsed.
    """
    text = parts.pop(index).decode(errors="replace")
    try:
        value = _parsed(text)
    except RecursionError:
        return _TOO_DEEP
    except ValueError:
        return _UNREADABLE
    if not isinstance(value, dict):
        return _UNREADABLE
    # Nothing can be deeper than what it opens: a count is cheaper than a walk through it all, and
    # not even that is needed for texts.
    may_be_deep = any(isinstance(inner, dict | list) for inner in value.values()) and (
        text.count("[") + text.count("{") > MAX_DEPTH
    )
    return _TOO_DEEP if may_be_deep and is_too_deep(value) else value


def _parsed(text: str) -> Any:
    """Return a value from its JSON. Raises ValueError for what is none, RecursionError."""
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        raise
    except ValueError:  # an integer with more digits than Python takes: a browser has infinity
        return json.loads(text, parse_int=lambda n: int(n) if len(n) < _DIGITS else float(n))


def _placeholder(kind: str, cell: int, why: str) -> Record:
    """Return what stands in the place of a message that cannot be kept."""
    text = f"[{kind} is {why}, and not kept]\n"
    return {
        "k": "output",
        "i": cell,
        "output": {"output_type": "stream", "name": "stderr", "text": text},
    }


def _widget(content: Content, cell: int, buffers: Sequence[bytes]) -> Record | None:
    """Return what a comm message changes in a widget's model, if it does.

    Other libraries send what they like: Bokeh's `push_notebook` texts.
    """
    data = content.get("data")
    if not isinstance(data, dict) or not isinstance(data.get("state"), dict):
        return None
    pairs = zip(data.get("buffer_paths") or (), buffers, strict=False)
    binary = [
        {"path": list(path), "encoding": "base64", "data": base64.b64encode(buffer).decode()}
        for path, buffer in pairs
    ]
    changed = {"k": "widget", "i": cell, "id": str(content["comm_id"]), "state": data["state"]}
    return {**changed, "buffers": binary} if binary else changed


def _display_id(content: Content) -> dict[str, str]:
    identifier = (content.get("transient") or {}).get("display_id")
    return {} if identifier is None else {"display_id": str(identifier)}


def _shown(content: Content) -> dict[str, Any]:
    data = {kind: _mime(kind, value) for kind, value in (content.get("data") or {}).items()}
    return {"data": data, "metadata": content.get("metadata") or {}}


def _mime(kind: str, value: Any) -> Any:
    """Return a value of a MIME bundle; only JSON types may hold something other than text."""
    if is_json(kind):
        return value
    if isinstance(value, list) and all(isinstance(line, str) for line in value):
        return "".join(value)
    return _text(value)


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)
