"""How a parameter's value is read from a command line; the same for runner and submitter."""

from __future__ import annotations

import json
from typing import Any

_PYTHON = {"True": True, "False": False, "None": None}


def parse_value(text: str) -> Any:
    """Return the value: JSON if it parses as JSON, Python's three constants, else the text."""
    if text in _PYTHON:
        return _PYTHON[text]
    try:
        return json.loads(text, parse_constant=_refuse)
    except (ValueError, RecursionError):
        return text


def _refuse(name: str) -> None:
    raise ValueError(f"{name} is no JSON")
