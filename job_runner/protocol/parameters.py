"""How a parameter's value is read from a command line; the same for runner and submitter.

JSON has no infinities and no NaN. `NaN` and `Infinity` are therefore text, as any other word. A
number that is too large for a float (`1e999`) is refused: as infinity it would make a result that
no notebook application can read, and as text it would silently be something else than a number.
"""

from __future__ import annotations

import json
import math
from typing import Any

_PYTHON = {"True": True, "False": False, "None": None}


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


def parse_object(data: bytes) -> dict[str, Any]:
    """Return the parameters that a JSON file holds. Raises ValueError."""
    document = json.loads(data, parse_constant=_refuse, parse_float=_finite)
    if not isinstance(document, dict):
        raise ValueError("the file of parameters holds no JSON object")
    return document


def find_unrepresentable(value: Any) -> str | None:
    """Return the first number in `value` that JSON does not have, as text; None: there is none."""
    found = [value]
    for inner in found:  # which grows on the way
        match inner:
            case float() if not math.isfinite(inner):
                return repr(inner)
            case dict():
                found += inner.values()
            case list():
                found += inner
    return None


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise NotRepresentable(f"{text[:40]} is too large for a number")
    return number


def _refuse(name: str) -> None:
    raise ValueError(f"{name} is no JSON")
