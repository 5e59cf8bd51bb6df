"""docs/openapi.yaml as tests use it: its operations, and validators of its answers."""

from __future__ import annotations

import functools
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from jsonschema import Draft202012Validator

ROOT = Path(__file__).parents[2]
FILE = ROOT / "docs" / "openapi.yaml"
_METHODS = ("get", "post", "delete")


@functools.cache
def document() -> dict[str, Any]:
    loaded: dict[str, Any] = yaml.safe_load(FILE.read_text())
    return loaded


@dataclass(frozen=True)
class Operation:
    """One route; `right` is what the authorizer is asked for."""

    method: str
    template: str
    right: str
    responses: dict[str, Any]

    def path(self, **values: str) -> str:
        return self.template.format(**{"name": "train-aaaaaaaa", "key": "k", **values})

    def __str__(self) -> str:
        return f"{self.method} {self.template}"


def operations() -> list[Operation]:
    return list(_operations())


def _operations() -> Iterator[Operation]:
    for template, item in document()["paths"].items():
        for method in _METHODS:
            if method in item:
                found = item[method]
                yield Operation(
                    method.upper(),
                    template.removeprefix("/"),
                    found["x-authorizer"],
                    found["responses"],
                )


def schema(name: str) -> dict[str, Any]:
    found: dict[str, Any] = document()["components"]["schemas"][name]
    return found


def validate(name: str, value: object) -> None:
    """Hold a value to a schema of the file."""
    components = {"components": document()["components"]}
    Draft202012Validator({"$ref": f"#/components/schemas/{name}", **components}).validate(value)


def validate_answer(operation: Operation, status: int, body: bytes, kind: str) -> None:
    """Hold an answer to what the file says of that status; others are errors."""
    response = operation.responses.get(str(status))
    if response is None:
        assert status >= 400, f"{operation} answers {status}, which is not in the file"
        validate("Failure", json.loads(body))
    elif "content" not in response:
        assert body == b"", f"{operation} has a body with {status}"
    else:
        content = response["content"][kind.split(";")[0]]
        if "json" in kind:
            components = {"components": document()["components"]}
            Draft202012Validator({**content["schema"], **components}).validate(json.loads(body))
