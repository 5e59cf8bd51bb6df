"""Checks a catalog by the models and rules. Each fault has its place and a hint."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import yaml
from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from ..domain.errors import Fault
from .catalog import Catalog
from .models import Allowed, Default, Device, Flavor, Toleration
from .rules import ALLOWED_HINT, Finding, check_rules, name_hint
from .yaml_reader import clip, find_places, plain_value

_Path = tuple[Any, ...]
_MODELS: tuple[tuple[int, str, str, type[BaseModel]], ...] = (
    (0, "", "the catalog", Catalog),
    (1, "default", "`default`", Default),
    (2, "flavors", "a flavor", Flavor),
    (2, "devices", "a device", Device),
    (3, "flavors", "`allowed`", Allowed),
    (4, "devices", "a toleration", Toleration),
)
"""By length and first key of its path: a model, and its name in messages."""


def check(root: yaml.Node) -> tuple[Catalog | None, list[Fault]]:
    """Return the catalog in `root` and all that is wrong with it, in the file's order."""
    catalog = None
    findings: list[Finding] = []
    document = plain_value(root)
    try:
        catalog = Catalog.model_validate(document)
    except ValidationError as error:
        findings = [_finding(details) for details in error.errors(include_url=False)]
    findings += check_rules(document)
    return catalog, sorted({_fault(root, finding) for finding in findings})


def _fault(root: yaml.Node, finding: Finding) -> Fault:
    key, value = find_places(root, finding.path)
    return Fault(*(key if finding.at_key else value), finding.message, finding.hint)


def _finding(error: ErrorDetails) -> Finding:
    """Put one of pydantic's errors into the words of the file."""
    path, kind, context = tuple(error["loc"]), error["type"], error.get("ctx", {})
    name = clip(str(path[-1])) if path else "the catalog"
    if kind == "wrong":
        if name == "[key]":
            return Finding(path[:-1], context["message"], context["hint"], at_key=True)
        label = "" if isinstance(path[-1], int) else f"`{name}`: "
        message = label + context["message"]
        return Finding(path, message, context["hint"], at_key=error["input"] is None)
    if kind == "extra_forbidden":
        return Finding(path, *_unknown_key(path), at_key=True)
    if kind == "missing":
        owner, _ = _model_at(path[:-1])
        return Finding(path, f"`{name}` is missing from {owner}.", "Add it.", at_key=True)
    if kind == "literal_error":
        hint = f"Write {context['expected']}."
        return Finding(path, f"`{name}`: {clip(repr(error['input']))} is not allowed.", hint)
    if kind in _TYPES:
        expected, hint = _TYPES[kind]
        hint = ALLOWED_HINT if name == "allowed" else hint
        message = f"`{name}` must be {expected}, and is {_KINDS[type(error['input'])]}."
        return Finding(path, message, hint, at_key=error["input"] is None)
    if kind == "too_short":
        return Finding(path, f"`{name}` is empty.", "List one at least.")
    if kind == "less_than_equal":
        return Finding(path, f"`{name}` is more than {context['le']}.", "Write less.")
    return Finding(path, f"`{name}`: {error['msg']}.", "Correct it.")


_KINDS = {str: "text", type(None): "empty", list: "a list", dict: "a mapping"}
_TYPES = {
    "string_type": ("text", "Write one value behind the colon."),
    "dict_type": ("a mapping", "Write key: value lines below it, or {} for none."),
    "model_type": ("a mapping", "Write key: value lines below it, or {} for none."),
    "tuple_type": ("a list", "Write it in brackets: [a, b]."),
}


def _model_at(path: Sequence[Any]) -> tuple[str, type[BaseModel]]:
    for length, section, label, model in _MODELS:
        if len(path) == length and (not section or path[0] == section):
            return label, model
    return "what is above", BaseModel


def _unknown_key(path: _Path) -> tuple[str, str]:
    """Return message and hint for a last key of `path` that the model does not have."""
    owner, model = _model_at(path[:-1])
    key = str(path[-1])
    hint = f"Delete it, or name it `x-{clip(key)}` if it is for you."
    for _, _, label, candidate in _MODELS:
        if label in ("a flavor", "a device", "the catalog") and key in candidate.model_fields:
            hint = f"It belongs to {label}."
    return f"`{clip(key)}` is no key of {owner}.", name_hint(key, model.model_fields, hint)
