"""Makes the tables of docs/rest.md from docs/openapi.yaml: routes, and the objects of bodies."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import yaml

from .pages import DOCS

_DOCUMENT = yaml.safe_load((DOCS / "openapi.yaml").read_text(encoding="utf-8"))
_SCHEMAS = _DOCUMENT["components"]["schemas"]
_OBJECTS = [name for name, schema in _SCHEMAS.items() if "properties" in schema]
_METHODS = ("get", "post", "put", "patch", "delete")
_LIMITS = ("minimum", "maximum", "default", "format")


def reference() -> str:
    """Return all tables, as Markdown."""
    routes = "\n".join(_route(*operation) for operation in _operations())
    parts = [
        "### Routes",
        "| route | right | what it does | parameters | body | answers |\n"
        f"|---|---|---|---|---|---|\n{routes}",
        "### Objects",
        "A field in **bold** is always there.",
    ]
    for name in _OBJECTS:
        schema = _SCHEMAS[name]
        description = [schema["description"]] if "description" in schema else []
        parts += [f"#### {name}", *description, _fields(schema)]
    return "\n" + "\n\n".join(parts) + "\n\n"


def _operations() -> Iterator[tuple[str, str, dict[str, Any]]]:
    for path, item in _DOCUMENT["paths"].items():
        for method in _METHODS:
            if method in item:
                path_parameters = item.get("parameters", [])
                own_parameters = item[method].get("parameters", [])
                yield (
                    method.upper(),
                    path,
                    {**item[method], "parameters": [*path_parameters, *own_parameters]},
                )


def _route(method: str, path: str, operation: dict[str, Any]) -> str:
    parameters = (_resolve(parameter) for parameter in operation["parameters"])
    answers = (
        f"{status} {_content(answer)}".rstrip()
        for status, answer in operation["responses"].items()
        if status != "default"
    )
    cells = [
        f"`{method} {path}`",
        operation["x-authorizer"],
        operation["summary"],
        ", ".join(f"`{p['name']}`" for p in parameters if p["in"] != "path"),
        _content(operation.get("requestBody", {})),
        ", ".join(answers),
    ]
    return _row(cells)


def _content(part: dict[str, Any]) -> str:
    for media_type, content in part.get("content", {}).items():
        return _type(content["schema"]) if "$ref" in content["schema"] else f"`{media_type}`"
    return ""


def _fields(schema: dict[str, Any]) -> str:
    required = schema.get("required", ())
    rows = ["| field | type | meaning |", "|---|---|---|"]
    for name, field in schema["properties"].items():
        label = f"**`{name}`**" if name in required else f"`{name}`"
        rows.append(_row([label, _type(field), _meaning(_resolve(field))]))
    return "\n".join(rows)


def _type(schema: dict[str, Any]) -> str:
    """Return a schema's type in words, with a link if it is an object of its own."""
    name = schema.get("$ref", "").rpartition("/")[2]
    if name in _OBJECTS:
        return f"[{name}](#{name.lower()})"
    schema = _resolve(schema)
    if "anyOf" in schema:
        return " or ".join(map(_type, schema["anyOf"]))
    if "enum" in schema:
        return ", ".join(f"`{value or 'null'}`" for value in schema["enum"])
    if "const" in schema:
        return f"`{schema['const']}`"
    if "type" not in schema:
        return "any"
    if schema["type"] == "array":
        return f"list of {_type(schema['items'])}"
    return schema["type"] if isinstance(schema["type"], str) else " or ".join(schema["type"])


def _meaning(schema: dict[str, Any]) -> str:
    limits = ", ".join(f"{key} `{schema[key]}`" for key in _LIMITS if key in schema)
    return " ".join(filter(None, [schema.get("description"), f"({limits})" if limits else None]))


def _resolve(schema: dict[str, Any]) -> dict[str, Any]:
    """Return what a reference stands for; an object has a table of its own and is left alone."""
    if "$ref" not in schema:
        return schema
    _, _, kind, name = schema["$ref"].split("/")
    target: dict[str, Any] = {} if name in _OBJECTS else _DOCUMENT["components"][kind][name]
    return target


def _row(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"
