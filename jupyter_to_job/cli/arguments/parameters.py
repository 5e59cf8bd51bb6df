"""`-p NAME VALUE`, `-r NAME TEXT`, `--params-file F`: values with the types people meant."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from job_runner.protocol.parameters import NotRepresentable, parse_value

from ...domain.errors import BadInput
from ...domain.submission_rules import check_parameters


def collect(
    file: Path | None, typed: Iterable[tuple[str, str]], raw: Iterable[tuple[str, str]]
) -> dict[str, Any]:
    """Merge all sources, the command line winning over the file. Raises BadInput."""
    parameters: dict[str, Any] = {}
    if file is not None:
        parameters.update(_read(file))
    try:
        parameters.update({name: parse_value(text) for name, text in typed})
    except NotRepresentable as error:
        raise BadInput(f"{error}.") from error
    parameters.update(dict(raw))
    check_parameters(parameters)  # before the first notebook of a batch is sent
    return parameters


def _fault(error: Exception) -> str:
    """Return what YAML says, in one line and with the place in the file."""
    mark, what = getattr(error, "problem_mark", None), getattr(error, "problem", None)
    return f"line {mark.line + 1}, column {mark.column + 1}: {what}" if mark else str(error)


def _read(file: Path) -> dict[str, Any]:
    import yaml

    try:
        document = yaml.safe_load(file.read_bytes())
    except OSError as error:
        raise BadInput(f"Cannot read the parameters in {file}: {error.strerror}.") from error
    except (ValueError, yaml.YAMLError) as error:
        raise BadInput(f"{file} is neither YAML nor JSON: {_fault(error)}.") from error
    if not isinstance(document, dict):
        raise BadInput(
            f"{file} holds no parameters.", "Write `name: value` lines, or a JSON object."
        )
    # What YAML knows and JSON does not (a date, a number as a key) becomes text, as in papermill.
    parameters: dict[str, Any] = json.loads(json.dumps(document, default=str))
    return parameters
