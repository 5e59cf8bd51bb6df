"""Parameters of `-p NAME VALUE`, `-r NAME TEXT` and `--params-file F`, with their types."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from job_runner.protocol.parameters import NotRepresentable, parse_value

from ...domain.errors import BadInput
from ...domain.submission_rules import MAX_DEPTH, check_parameters

_TIMESTAMP = "tag:yaml.org,2002:timestamp"


def collect_parameters(
    file: Path | None, parsed: Iterable[tuple[str, str]], texts: Iterable[tuple[str, str]]
) -> dict[str, Any]:
    """Read a file of parameters, and merge as `merge_parameters` does. Raises BadInput."""
    parameters = {} if file is None else require_parameters(file, read_yaml(file))
    return merge_parameters(parameters, parsed, texts)


def merge_parameters(
    parameters: dict[str, Any], parsed: Iterable[tuple[str, str]], texts: Iterable[tuple[str, str]]
) -> dict[str, Any]:
    """Return the parameters of a file, overridden by those of the command line.

    `parsed` are names with a value that may be JSON, `texts` names with plain text. Raises
    BadInput.
    """
    try:
        values = {name: parse_value(text) for name, text in parsed}
    except NotRepresentable as error:
        raise BadInput(f"{error}.") from error
    merged = {**parameters, **values, **dict(texts)}
    check_parameters(merged)  # before the first notebook of a batch is submitted
    return merged


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
    """Return what a file of JSON or YAML holds, as JSON has it. Raises BadInput."""
    try:
        data = file.read_bytes()
    except OSError as error:
        raise BadInput(f"Cannot read the parameters in {file}: {error.strerror}.") from error
    try:
        return json.loads(data)  # YAML takes some of its numbers, such as 1e-05, for text
    except ValueError:
        return _yaml(data, file)
    except RecursionError as error:
        raise too_deep(file) from error


def too_deep(file: Path) -> BadInput:
    """Return the error for a file of parameters that no reader has the stack for."""
    return BadInput(
        f"{file} is nested deeper than {MAX_DEPTH}, or holds itself.", "Send a file along."
    )


def _yaml(data: bytes, file: Path) -> Any:
    """Return the document of YAML as JSON has it. Raises BadInput."""
    import yaml

    class Loader(yaml.SafeLoader):
        """Leaves a date as it was written, as papermill does."""

        yaml_implicit_resolvers = {  # noqa: RUF012 - as in its base
            character: [(tag, pattern) for tag, pattern in resolvers if tag != _TIMESTAMP]
            for character, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
        }

    try:
        # Other values that JSON lacks (a number as a key) become text, as in papermill.
        document = _with_plain_keys(yaml.load(data, Loader))  # noqa: S506 - it is a SafeLoader
        return json.loads(json.dumps(document, default=str))
    except RecursionError as error:
        raise too_deep(file) from error
    # PyYAML lets the last two out for a value that its tag does not fit.
    except (ValueError, yaml.YAMLError, LookupError, AttributeError) as error:
        raise BadInput(f"{file} is neither YAML nor JSON: {_fault(error)}.") from error


def _with_plain_keys(value: Any) -> Any:
    """Return a value whose keys are of the types that JSON makes text of: others are text here."""
    match value:
        case dict():
            return {
                key if isinstance(key, str | int | float | None) else str(key): _with_plain_keys(v)
                for key, v in value.items()
            }
        case list() | tuple():
            return [_with_plain_keys(inner) for inner in value]
    return value


def require_parameters(file: Path, document: Any) -> dict[str, Any]:
    """Return what a file of parameters holds. Raises BadInput where that is no mapping."""
    if not isinstance(document, dict):
        raise BadInput(
            f"{file} holds no parameters.", "Write `name: value` lines, or a JSON object."
        )
    return document
