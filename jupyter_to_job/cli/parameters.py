"""`-p NAME VALUE`, `-r NAME TEXT`, `--params-file F`: values with the types people meant."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from ..domain.errors import BadInput

_CONSTANTS = {"True": True, "False": False, "None": None}


def value_of(text: str) -> Any:
    """Return JSON if `text` parses as JSON, Python's constants by name, else the text itself."""
    if text in _CONSTANTS:
        return _CONSTANTS[text]
    try:
        return json.loads(text)
    except ValueError:
        return text


def collect(
    file: Path | None, typed: Iterable[tuple[str, str]], raw: Iterable[tuple[str, str]]
) -> dict[str, Any]:
    """Merge all sources, the command line winning over the file. Raises BadInput."""
    parameters: dict[str, Any] = {}
    if file is not None:
        parameters.update(_read(file))
    parameters.update({name: value_of(text) for name, text in typed})
    parameters.update(dict(raw))
    return parameters


def _read(file: Path) -> dict[str, Any]:
    import yaml

    try:
        document = yaml.safe_load(file.read_text())
    except (OSError, yaml.YAMLError) as error:
        raise BadInput(f"Cannot read the parameters in {file}: {error}") from error
    if not isinstance(document, dict):
        raise BadInput(f"{file} holds no mapping of parameters.")
    return document
