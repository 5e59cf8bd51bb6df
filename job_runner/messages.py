"""From what a kernel says on iopub to records of the journal.

Kernels of all languages and ages talk here, so each output is made valid nbformat at this door;
nothing behind it needs to check again.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from typing import Any

from .protocol.nesting import DEEPEST, is_too_deep

Record = dict[str, Any]
Content = dict[str, Any]

_TOO_DEEP: Content = {}


def record_of(
    kind: str, content: Content, cell: int, buffers: Sequence[bytes] = ()
) -> Record | None:
    """Return the record of a message about `cell`; None if it changes nothing in a notebook."""
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
            return _widget(content, buffers)
    return None


def unpack(part: bytes) -> Any:
    """Return a part of a message from its JSON. What nobody could write again is left out."""
    try:
        value = json.loads(part.decode(errors="replace"))
    except RecursionError:
        return _TOO_DEEP
    return _TOO_DEEP if is_too_deep(value) else value


def _widget(content: Content, buffers: Sequence[bytes]) -> Record | None:
    """Return what a comm message changes in a widget's model, if it does."""
    data = content.get("data") or {}
    if not isinstance(data.get("state"), dict):
        return None
    pairs = zip(data.get("buffer_paths") or (), buffers, strict=False)
    binary = [
        {"path": list(path), "encoding": "base64", "data": base64.b64encode(buffer).decode()}
        for path, buffer in pairs
    ]
    changed = {"k": "widget", "id": str(content["comm_id"]), "state": data["state"]}
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
