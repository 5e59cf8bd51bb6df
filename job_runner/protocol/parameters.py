"""Reads parameters' values: those typed on a command line, and defaults in a notebook's source.

JSON has no infinities and no NaN. `NaN` and `Infinity` are therefore text, as any other word. A
number that is too large for a float (`1e999`) is refused: as infinity it would make a result that
no notebook application can read, and as text it would silently be something else than a number.
"""

from __future__ import annotations

import ast
import json
import math
from typing import Any

_PYTHON = {"True": True, "False": False, "None": None}
_MAX_SAFE_INTEGER = 2**53 - 1
"""The largest integer that a browser holds exactly."""


class NotRepresentable(ValueError):
    """A number that no float can hold."""


def parse_value(text: str) -> Any:
    """Return the value: JSON if it parses as JSON, Python's three constants, else the text.

    Raises NotRepresentable.
    """
    if text in _PYTHON:
        return _PYTHON[text]
    try:
        return json.loads(text, parse_constant=_refuse, parse_float=_finite)
    except NotRepresentable:
        raise
    except (ValueError, RecursionError):
        return text


def parse_default(source: str | None) -> Any:
    """Return the value of a default that is a Python literal; None for any other source.

    Values that would change on their way to a browser count as others: sets, keys that are no
    text, numbers that a float cannot hold.
    """
    try:
        value = ast.literal_eval(source or "")
        return value if _is_exact_json(value) else None
    except (SyntaxError, ValueError, TypeError, RecursionError, MemoryError):
        return None


def _is_exact_json(value: Any) -> bool:
    match value:
        case None | bool() | str():
            return True
        case int():
            return abs(value) <= _MAX_SAFE_INTEGER
        case float():
            return math.isfinite(value)
        case list() | tuple():
            return all(map(_is_exact_json, value))
        case dict():
            return all(isinstance(k, str) and _is_exact_json(v) for k, v in value.items())
    return False


def parse_object(data: bytes) -> dict[str, Any]:
    """Return the parameters that a JSON file holds. Raises ValueError."""
    document = json.loads(data, parse_constant=_refuse, parse_float=_finite)
    if not isinstance(document, dict):
        raise ValueError("the file of parameters holds no JSON object")
    return document


def find_unrepresentable(value: Any) -> str | None:
    """Return the first number in `value` that JSON does not have, as text; None if all are fine."""
    queue = [value]
    for inner in queue:  # it grows meanwhile
        match inner:
            case float() if not math.isfinite(inner):
                return repr(inner)
            case dict():
                queue += inner.values()
            case list():
                queue += inner
    return None


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise NotRepresentable(f"{text[:40]} is too large for a number")
    return number


def _refuse(name: str) -> None:
    raise ValueError(f"{name} is no JSON")
