"""The types of the catalog's fields: each checks the file's value, and explains the right form.

The loader passes scalars as text: `cpu: 1.50` stays `1.50` and a label `on` stays `on`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from typing import Annotated, Any, TypeVar

from pydantic import BeforeValidator, WithJsonSchema
from pydantic_core import PydanticCustomError

from ..domain.errors import BadInput
from ..domain.quantities import parse_duration, parse_quantity

_Parsed = TypeVar("_Parsed")
_Schema = dict[str, Any]

MAX_NUMBER = 32
"""Characters of a number, quantity or duration at most."""
_LABEL = r"([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)"
_KEY = rf"([a-z0-9]([-a-z0-9.]{{0,251}}[a-z0-9])?/)?{_LABEL}"


def _quantity(value: Any) -> Any:
    _parse(parse_quantity, value)
    return value


def _positive_quantity(value: Any) -> Any:
    if _parse(parse_quantity, value) == 0:
        raise _error("This must be more than 0.", "Say how much a job gets.")
    return value


def _count(value: Any) -> int:
    if not re.fullmatch(r"[0-9]{1,9}", str(value), re.ASCII):
        raise _error(f"{_describe(value)} is no whole number.", "Write 0, 1, 2 and so on.")
    return int(value)


def _flag(value: Any) -> bool:
    if str(value) not in ("true", "false"):
        raise _error(f"{_describe(value)} is neither yes nor no.", "Write true or false.")
    return str(value) == "true"


def _parse(parse: Callable[[str], _Parsed], value: Any) -> _Parsed:
    """Parse a value as the command line does, with an error that keeps the hint."""
    if value is None:
        raise _error("There is no value.", "Write one behind the colon, or delete the line.")
    if not isinstance(value, str):
        raise _error(f"{_describe(value)} does not belong here.", "Write one value.")
    if len(value) > MAX_NUMBER:
        raise _error(f"A value of {len(value)} characters is too long.", "Shorten it.")
    try:
        return parse(value)
    except BadInput as error:
        raise _error(error.message, error.hint) from error


def _describe(value: Any) -> str:
    if isinstance(value, dict):
        return "A mapping"
    if isinstance(value, list):
        return "A list"
    return "Nothing" if value is None else repr(str(value)[:MAX_NUMBER])


def _error(message: str, hint: str) -> PydanticCustomError:
    return PydanticCustomError("wrong", "{message}", {"message": message, "hint": hint})


def _matches(pattern: str, form: str) -> BeforeValidator:
    """Return a validator for text that matches `pattern`; `form` describes such text."""
    regex = re.compile(pattern, re.ASCII)

    def check(value: Any) -> Any:
        if isinstance(value, str) and not regex.fullmatch(value):
            raise _error(f"{_describe(value)} is not allowed here.", f"Write {form}.")
        return value

    return BeforeValidator(check)


def _schema(pattern: str | None = None, *types: str) -> WithJsonSchema:
    """Return the JSON Schema for editors. YAML's numbers and booleans are text in the catalog."""
    schema: _Schema = {"type": ["string", *types] if types else "string"}
    return WithJsonSchema({**schema, "pattern": f"^({pattern})$"} if pattern else schema)


_AMOUNT = _schema(r"[0-9]+(\.[0-9]+)?(m|k|Ki|M|Mi|G|Gi|T|Ti|P|Pi)?", "number")
Quantity = Annotated[str, BeforeValidator(_quantity), _AMOUNT]
"""A Kubernetes quantity, kept as the admin wrote it."""
Amount = Annotated[str, BeforeValidator(_positive_quantity), _AMOUNT]
"""A quantity above zero."""
Seconds = Annotated[
    int,
    BeforeValidator(partial(_parse, parse_duration)),
    _schema(r"([0-9]+d)?([0-9]+h)?([0-9]+m)?([0-9]+s)?|[0-9]+", "integer"),
]
"""A duration such as `2h`, as seconds."""
Count = Annotated[int, BeforeValidator(_count), WithJsonSchema({"type": "integer", "minimum": 0})]
Flag = Annotated[bool, BeforeValidator(_flag), WithJsonSchema({"type": "boolean"})]
Text = Annotated[str, _schema(None, "number", "boolean")]
Name = Annotated[
    str, _matches(_LABEL, "a name of at most 63 letters, digits, `-`, `_` and `.`"), _schema(_LABEL)
]
"""The name of a flavor or device; it becomes the value of a label."""
Word = Annotated[str, _matches(r"\S{1,512}", "a word without spaces"), _schema(r"\S+")]
Resource = Annotated[
    str,
    _matches(rf"(?=[^/]+/){_KEY}", "a resource as a node offers it, such as `nvidia.com/gpu`"),
    _schema(_KEY),
]
LabelKey = Annotated[str, _matches(_KEY, "a label's key, such as `team` or `example.com/team`")]
LabelValue = Annotated[
    str,
    _matches(f"({_LABEL})?", "a label's value: at most 63 letters, digits, `-`, `_` and `.`"),
    _schema(f"{_LABEL}|", "number", "boolean"),
]
Variable = Annotated[str, _matches(r"[-._a-zA-Z][-._a-zA-Z0-9]*", "a variable's name")]
Labels = dict[LabelKey, LabelValue]
