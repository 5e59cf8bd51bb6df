"""Holds plain values to the models and rules, and says of each fault where it is and what to do."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from ..domain.errors import Fault
from .catalog import Catalog
from .models import Allowed, Default, Device, Flavor, Toleration
from .rules import Finding, did_you_mean, findings
from .yaml_reader import Node, clip

_Path = tuple[Any, ...]
_MODELS: tuple[tuple[int, str, str, type[BaseModel]], ...] = (
    (0, "", "the catalog", Catalog),
    (1, "default", "`default`", Default),
    (2, "flavors", "a flavor", Flavor),
    (2, "devices", "a device", Device),
    (3, "flavors", "`allowed`", Allowed),
    (4, "devices", "a toleration", Toleration),
)
"""Length and beginning of the path of each model, what to call it."""


def check(root: Node) -> tuple[Catalog | None, list[Fault]]:
    """Return the catalog in `root` and all that is wrong with it, in the file's order."""
    catalog = None
    found: list[Finding] = []
    try:
        catalog = Catalog.model_validate(root.value)
    except ValidationError as error:
        found = [_finding(e) for e in error.errors(include_url=False)]
    found += findings(root.value)
    faults = {_placed(root, finding) for finding in found}
    return catalog, sorted(faults)


def _placed(root: Node, finding: Finding) -> Fault:
    key, value = root.find(finding.path)
    return Fault(*(key if finding.at_key else value), finding.message, finding.hint)


def _finding(error: ErrorDetails) -> Finding:
    """Say one of pydantic's errors in the words of the file."""
    path, kind, context = tuple(error["loc"]), error["type"], error.get("ctx", {})
    name = clip(str(path[-1])) if path else "the catalog"
    if kind == "wrong":
        if name == "[key]":
            return Finding(path[:-1], context["message"], context["hint"], at_key=True)
        said = (
            context["message"] if isinstance(path[-1], int) else f"`{name}`: {context['message']}"
        )
        return Finding(path, said, context["hint"], at_key=error["input"] is None)
    if kind == "extra_forbidden":
        return Finding(path, *_unknown(path), at_key=True)
    if kind == "missing":
        what, _ = _model_at(path[:-1])
        return Finding(path, f"`{name}` is missing from {what}.", "Add it.", at_key=True)
    if kind == "literal_error":
        hint = f"Write {context['expected']}."
        return Finding(path, f"`{name}`: {clip(repr(error['input']))} is not allowed.", hint)
    if kind in _WANTED:
        wanted, hint = _WANTED[kind]
        has = _KINDS[type(error["input"])]
        message = f"`{name}` must be {wanted}, and is {has}."
        return Finding(path, message, hint, at_key=error["input"] is None)
    if kind == "too_short":
        return Finding(path, f"`{name}` is empty.", "List one at least.")
    if kind == "less_than_equal":
        return Finding(path, f"`{name}` is more than {context['le']}.", "Write less.")
    return Finding(path, f"`{name}`: {error['msg']}.", "Correct it.")


_KINDS = {str: "text", type(None): "empty", list: "a list", dict: "a mapping"}
_WANTED = {
    "string_type": ("text", "Write one value behind the colon."),
    "dict_type": ("a mapping", "Write key: value lines below it, or {} for none."),
    "model_type": ("a mapping", "Write key: value lines below it, or {} for none."),
    "tuple_type": ("a list", "Write it in brackets: [a, b]."),
}


def _model_at(path: Sequence[Any]) -> tuple[str, type[BaseModel]]:
    for length, beginning, what, model in _MODELS:
        if len(path) == length and (not beginning or path[0] == beginning):
            return what, model
    return "what is above", BaseModel


def _unknown(path: _Path) -> tuple[str, str]:
    """Say that the last key of `path` is not known, and what could have been meant."""
    what, model = _model_at(path[:-1])
    key = str(path[-1])
    hint = f"Delete it, or name it `x-{clip(key)}` if it is for you."
    for _, _, other, there in _MODELS:
        if other in ("a flavor", "a device", "the catalog") and key in there.model_fields:
            hint = f"It belongs to {other}."
    return f"`{clip(key)}` is no key of {what}.", did_you_mean(key, list(model.model_fields), hint)
