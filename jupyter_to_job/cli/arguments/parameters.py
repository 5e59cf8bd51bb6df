"""Parameters of `-p NAME VALUE`, `-r NAME TEXT` and `--params-file F`, with their types."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from job_runner.protocol.parameters import NotRepresentable, parse_value

from ...domain.errors import BadInput
from ...domain.submission_rules import check_parameters


def collect_parameters(
    file: Path | None, parsed: Iterable[tuple[str, str]], texts: Iterable[tuple[str, str]]
) -> dict[str, Any]:
    """Merge the parameters of all sources; the command line overrides the file.

    `parsed` are names with a value that may be JSON, `texts` names with plain text. Raises
    BadInput.
    """
    parameters: dict[str, Any] = {}
    if file is not None:
        parameters.update(_read(file))
    try:
        parameters.update({name: parse_value(text) for name, text in parsed})
    except NotRepresentable as error:
        raise BadInput(f"{error}.") from error
    parameters.update(dict(texts))
    check_parameters(parameters)  # before the first notebook of a batch is submitted
    return parameters


def _fault(error: Exception) -> str:
    """Return the message of a YAML error in one line, with its place in the file."""
    mark, problem = getattr(error, "problem_mark", None), getattr(error, "problem", None)
    return f"line {mark.line + 1}, column {mark.column + 1}: {problem}" if mark else str(error)


def read_text(file: Path) -> str:
    """Return the text of a file of parameters. Raises BadInput."""
    try:
        return file.read_text(encoding="utf-8-sig")  # as spreadsheets write CSV
    except OSError as error:
        raise BadInput(f"Cannot read the parameters in {file}: {error.strerror}.") from error
    except ValueError as error:
        raise BadInput(f"{file} is no text in UTF-8: {error}.") from error


def read_yaml(file: Path) -> Any:
    """Return what a file of YAML or JSON holds, as JSON has it. Raises BadInput."""
    import yaml

    try:
        document = yaml.safe_load(file.read_bytes())
    except OSError as error:
        raise BadInput(f"Cannot read the parameters in {file}: {error.strerror}.") from error
    except (ValueError, yaml.YAMLError) as error:
        raise BadInput(f"{file} is neither YAML nor JSON: {_fault(error)}.") from error
    # Values that JSON lacks (a date, a number as a key) become text, as in papermill.
    return json.loads(json.dumps(document, default=str))


def _read(file: Path) -> dict[str, Any]:
    document = read_yaml(file)
    if not isinstance(document, dict):
        raise BadInput(
            f"{file} holds no parameters.", "Write `name: value` lines, or a JSON object."
        )
    return document
