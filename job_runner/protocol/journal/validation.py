"""Checks that a record has the fields and types that its readers rely on.

The checksum of a line tells that it is unchanged, not that it makes sense: another version, or
somebody editing the file, may have written anything. An invalid record counts as a damaged line.
So readers go on whatever a journal holds, and their notebook is valid.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable
from typing import Any, TypeGuard

from .. import figures
from ..result.json_writer import is_json

Record = dict[str, Any]

_MAX_TIME = 253_402_300_799.0
"""The end of the year 9999, after which Python has no dates."""
_MAX_CELLS = 1_000_000
_MAX_INTEGER = (1 << 63) - 1
"""Of integers, because readers calculate with them."""
_CELL_ID = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_FIELDS = {
    "stream": {"name", "text"},
    "display_data": {"data", "metadata"},
    "execute_result": {"data", "metadata", "execution_count"},
    "error": {"ename", "evalue", "traceback"},
}
"""The fields of nbformat's outputs, which allows no others."""


def validated(record: Record) -> Record:
    """Return a valid record as it is, and an invalid one as damaged.

    An unknown kind is a newer runner's. It is valid, and readers skip it.
    """
    if _is_valid(record):
        return record
    return {"k": "damaged", "bytes": len(json.dumps(record, default=repr))}


def damage_notice(record: Record) -> str:
    """Return the text that readers show in place of a damaged line."""
    return f"[{record['bytes']} bytes of the journal are damaged here]\n"


def _is_valid(record: Any) -> bool:
    if not isinstance(record, dict) or not is_moment(record.get("t", 0)):
        return False
    kind = record.get("k")
    if not isinstance(kind, str):
        return False
    check = _CHECKS.get(kind)
    return check is None or check(record)


def is_notebook(value: Any) -> bool:
    """Tell whether a value has the shape of a notebook of nbformat 4, as far as it is read."""
    return (
        isinstance(value, dict)
        and value.get("nbformat") == 4
        and _is_count(value.get("nbformat_minor", 0), required=True)
        and isinstance(value.get("metadata", {}), dict)
        and isinstance(value.get("cells"), list)
        and all(map(_is_cell, value["cells"]))
    )


def is_moment(value: Any) -> bool:
    """Tell whether a value is a time as records have it: unix seconds, or None."""
    return value is None or (_is_number(value) and 0 <= value <= _MAX_TIME)


def _is_cell(value: Any) -> bool:
    return (
        isinstance(value, dict)
        and value.get("cell_type") in ("code", "markdown", "raw")
        and _is_text(value.get("source"))
        and isinstance(value.get("metadata"), dict)
        and isinstance(value.get("outputs", []), list)
    )


def has_valid_id(cell: Record) -> bool:
    """Tell whether a cell's id, if it has one, is as nbformat allows it."""
    identifier = cell.get("id", "a")
    return isinstance(identifier, str) and _CELL_ID.fullmatch(identifier) is not None


def is_output(value: Any) -> bool:
    """Tell whether a value is a valid output of nbformat 4."""
    if not isinstance(value, dict):
        return False
    kind = value.get("output_type")
    if not isinstance(kind, str) or value.keys() - {"output_type"} != _FIELDS.get(kind):
        return False
    match kind:
        case "stream":
            return isinstance(value["name"], str) and isinstance(value["text"], str)
        case "error":
            lines = value["traceback"]
            return isinstance(lines, list) and _are_texts((value["ename"], value["evalue"], *lines))
    return _is_count(value.get("execution_count")) and _is_display(value)


def _is_display(value: Record) -> bool:
    """Tell whether `data` is a MIME bundle; only JSON types may hold more than text."""
    data = value.get("data")
    if not isinstance(data, dict) or not isinstance(value.get("metadata"), dict):
        return False
    return all(_is_text(content) or is_json(kind) for kind, content in data.items())


def _is_prepared(record: Record) -> bool:
    notebook: Any = record.get("notebook")
    return (
        _is_count(record.get("cells_total"), required=True)
        and is_notebook(notebook)
        and {"metadata", "nbformat_minor"} <= notebook.keys()
        and all(map(has_valid_id, notebook["cells"]))
        and all(
            {"outputs", "execution_count"} <= cell.keys() and cell["outputs"] == []
            for cell in notebook["cells"]
            if cell["cell_type"] == "code"
        )
    )


def are_places(value: Any, cells: int) -> TypeGuard[list[int | None]]:
    """Tell whether a value says where each of so many cells is in the notebook that was sent."""
    return (
        isinstance(value, list)
        and len(value) == cells
        and all(place is None or _is_index(place) for place in value)
    )


def _is_kernel(record: Record) -> bool:
    info = record.get("language_info") or {}
    return _is_count(record.get("pid")) and isinstance(info, dict)


def _is_widget(record: Record) -> bool:
    buffers = record.get("buffers", [])
    return (
        _are_texts((record.get("id"),))
        and isinstance(record.get("state"), dict)
        and isinstance(buffers, list)
        and all(isinstance(b, dict) and _is_path(b.get("path")) for b in buffers)
        and (record.get("i") is None or _is_index(record["i"]))
    )


def _is_end(record: Record) -> bool:
    texts = (record.get("reason"), record.get("message"))
    banner = record.get("banner", [])
    return (
        isinstance(record.get("state"), str)
        and all(text is None or isinstance(text, str) for text in texts)
        and _is_count(record.get("exit_code"))
        and (record.get("cell") is None or _is_index(record["cell"]))
        and isinstance(banner, list)
        and all(isinstance(b, list) and len(b) == 2 and _is_index(b[0]) for b in banner)
        and all(_is_cell(cell) and cell["cell_type"] == "markdown" for _, cell in banner)
        and all(has_valid_id(cell) for _, cell in banner)
        and _are_figures(record.get("usage"), figures.OF_RUN)
    )


_CHECKS: dict[str, Callable[[Record], bool]] = {
    "start": lambda r: isinstance(r.get("sockets"), str | None),
    "kernel": _is_kernel,
    "prepared": _is_prepared,
    "cell_start": lambda r: _is_index(r.get("i")),
    "output": lambda r: (
        _is_index(r.get("i"))
        and is_output(r.get("output"))
        and isinstance(r.get("display_id"), str | None)
    ),
    "clear": lambda r: _is_index(r.get("i")),
    "update_display": lambda r: isinstance(r.get("display_id"), str) and _is_display(r),
    "widget": _is_widget,
    "widget_close": lambda r: isinstance(r.get("id"), str),
    "cell_end": lambda r: (
        _is_index(r.get("i"))
        and isinstance(r.get("ok"), bool)
        and _is_count(r.get("execution_count"))
        and _are_figures(r.get("usage"), figures.OF_CELL)
    ),
    "usage": lambda r: _are_figures(r, figures.OF_RUN),
    "damaged": lambda r: _is_count(r.get("bytes"), required=True),
    "omitted": lambda r: _is_count(r.get("bytes"), required=True),
    "dropped": lambda r: (
        _is_index(r.get("i"))
        and _is_count(r.get("limit"), required=True)
        and _is_count(r.get("bytes"))
        and _is_count(r.get("outputs"))
    ),
    "cut": lambda r: _is_count(r.get("limit"), required=True),
    "end": _is_end,
}


def _is_number(value: Any) -> bool:
    if isinstance(value, float):
        return math.isfinite(value)
    return isinstance(value, int) and not isinstance(value, bool) and abs(value) <= _MAX_INTEGER


def _is_count(value: Any, *, required: bool = False) -> bool:
    if value is None:
        return not required
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _MAX_INTEGER


def _is_index(value: Any) -> bool:
    return _is_count(value, required=True) and int(value) < _MAX_CELLS


def _are_figures(value: Any, names: Iterable[str]) -> bool:
    """Tell whether a value is a usage record, or None: these figures of it are numbers or None."""
    if value is None:
        return True
    return isinstance(value, dict) and all(
        value.get(name) is None or _is_number(value[name]) for name in names
    )


def _is_text(value: Any) -> bool:
    return isinstance(value, str) or (isinstance(value, list) and _are_texts(value))


def _are_texts(values: Any) -> bool:
    return all(isinstance(value, str) for value in values)


def _is_path(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(step, str | int) for step in value)
