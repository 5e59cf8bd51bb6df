"""From what a kernel says on iopub to records of the journal.

Kernels of all languages and ages talk here, so each output is made valid nbformat at this door;
nothing behind it needs to check again.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Sequence
from typing import Any

from .protocol.nesting import DEEPEST, is_too_deep

Record = dict[str, Any]
Content = dict[str, Any]

PIECE = 128 << 10
"""Characters of a stream in one record: in JSON always less than the 1 MiB of an answer."""
_TOO_DEEP: Content = {}


def records_of(
    kind: str, content: Content, cell: int, buffers: Sequence[bytes] = ()
) -> Iterator[Record]:
    """Yield the records of a message about `cell`; none if it changes nothing in a notebook.

    A long stream is several, so that none is too long to be read by itself.
    """
    record = _record_of(kind, content, cell, buffers)
    if record is None:
        return
    text = record.get("output", {}).get("text", "")
    if len(text) <= PIECE:
        yield record
        return
    for start in range(0, len(text), PIECE):
        yield {**record, "output": {**record["output"], "text": text[start : start + PIECE]}}


def _record_of(kind: str, content: Content, cell: int, buffers: Sequence[bytes]) -> Record | None:
    if content is _TOO_DEEP:
        text = f"[{kind} is nested more than {DEEPEST} levels deep, and not kept]\n"
        kind, content = "stream", {"name": "stderr", "text": text}
    match kind:
        case "stream":
            text = _text(content.get("text", ""))
            stream = {"output_type": kind, "name": str(content.get("name", "stdout")), "text": text}
            return {"k": "output", "i": cell, "output": stream}
        case "display_data" | "execute_result":
            output = {"output_type": kind, **_shown(content)}
            if kind == "execute_result":
                output["execution_count"] = content.get("execution_count")
            return {"k": "output", "i": cell, "output": output, **_display_id(content)}
        case "error":
            error = {
                "output_type": kind,
                "ename": _text(content.get("ename", "")),
                "evalue": _text(content.get("evalue", "")),
                "traceback": [_text(line) for line in content.get("traceback") or ()],
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


def unpack(parts: list[bytes], index: int) -> Any:
    """Take a part out of a message, and return it from its JSON.

    What nobody could write again is left out. The part's bytes are gone before it is parsed.
    """
    part = parts.pop(index)
    # Nothing can be deeper than what it opens: a count is cheaper than a walk through it all.
    may_be_deep = part.count(b"[") + part.count(b"{") > DEEPEST
    text = part.decode(errors="replace")
    del part
    try:
        value = json.loads(text)
    except RecursionError:
        return _TOO_DEEP
    return _TOO_DEEP if may_be_deep and is_too_deep(value) else value


def _widget(content: Content, cell: int, buffers: Sequence[bytes]) -> Record | None:
    """Return what a comm message changes in a widget's model, if it does."""
    data = content.get("data") or {}
    if not isinstance(data.get("state"), dict):
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
    if kind == "application/json" or kind.endswith("+json"):
        return value
    if isinstance(value, list) and all(isinstance(line, str) for line in value):
        return "".join(value)
    return _text(value)


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)
