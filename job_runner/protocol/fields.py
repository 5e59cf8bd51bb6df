"""Reads dataclasses from JSON, strictly: a damaged document is refused here, and nowhere later.

A value of another type than its field's is an error that names the field. Fields that a class does
not have are ignored at every depth, because a newer minor version may add some.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from types import NoneType, UnionType
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints, is_typeddict

_Fields = TypeVar("_Fields")

MAX_NUMBER = 1 << 63
"""Numbers at and beyond this are damage: no count, size or time is that large."""
_NAMES = {str: "text", bool: "true or false", int: "a whole number", float: "a number"}


class FieldError(ValueError):
    """A field is missing, or has a value of a wrong type."""


def read_fields(cls: type[_Fields], document: Mapping[str, Any], path: str = "") -> _Fields:
    """Return the dataclass that a JSON object stands for. Raises FieldError.

    Types of fields are those of JSON, Optional, `dict[str, X]`, `tuple[X, ...]`, `list[X]`, `Any`
    dataclasses and typed dicts. `path` begins the names of fields in messages.
    """
    return cls(**_values(cls, document, path))


def _values(cls: Any, document: Mapping[str, Any], path: str) -> dict[str, Any]:
    values = {}
    for name, hint, is_required in _fields_of(cls):
        if name in document:
            values[name] = _convert(hint, document[name], f"{path}{name}")
        elif is_required:
            raise FieldError(f"{path}{name} is missing")
    return values


@functools.cache
def _fields_of(cls: Any) -> list[tuple[str, Any, bool]]:
    """Return each field's name, its type, and whether it has no default."""
    hints = get_type_hints(cls)
    if is_typeddict(cls):
        return [(name, hint, name in cls.__required_keys__) for name, hint in hints.items()]
    return [
        (f.name, hints[f.name], f.default is MISSING and f.default_factory is MISSING)
        for f in fields(cls)
    ]


def _convert(hint: Any, value: Any, path: str) -> Any:
    """Return `value` as a field of type `hint` has it. Raises FieldError."""
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        if value is None and NoneType in arguments:
            return None
        return _convert(next(a for a in arguments if a is not NoneType), value, path)
    if hint is Any:
        return value
    if origin is dict and isinstance(value, dict):
        return {name: _convert(arguments[1], v, f"{path}.{name}") for name, v in value.items()}
    if origin in (list, tuple) and isinstance(value, list):
        return origin(_convert(arguments[0], v, f"{path}[{i}]") for i, v in enumerate(value))
    if (is_dataclass(hint) or is_typeddict(hint)) and isinstance(value, dict):
        return hint(**_values(hint, value, f"{path}."))
    if hint in (int, float) and _is_number(value) and (hint is float or isinstance(value, int)):
        return value
    if hint in (str, bool) and isinstance(value, hint):
        return value
    raise FieldError(f"{path} is not {_describe(hint, origin)}")


def _is_number(value: Any) -> bool:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return (
        is_number
        and (isinstance(value, int) or math.isfinite(value))
        and (-MAX_NUMBER < value < MAX_NUMBER)
    )


def _describe(hint: Any, origin: Any) -> str:
    return _NAMES.get(hint, "a list" if origin in (list, tuple) else "an object")
