"""Finds what is not UTF-8 before it is sent to a gateway, which takes nothing else.

On Linux the name of a file, a variable and an argument are bytes, and JSON may have half of a pair
of surrogates. A run on this machine gets all of them as they are.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from ...domain.errors import BadInput
from ...domain.names import printable

_FILES = frozenset(["workspace", "notebook", "inputs", "output", "results"])
_NOT_SENT_AS_TEXT = frozenset(["content", "packages", "idempotency_key"])
_ONE_OF = {"parameters": "parameter", "env": "variable", "inputs": "input"}


def require_utf8(fields: Mapping[str, Any]) -> None:
    """Raise BadInput for the first field of a submission that is not UTF-8, and name it.

    `inputs` are the paths of the files.
    """
    for field, value in fields.items():
        if field in _NOT_SENT_AS_TEXT:
            continue
        for thing, content in _things(field, value):
            try:
                json.dumps(content, ensure_ascii=False, default=str).encode()
            except UnicodeEncodeError as error:
                raise BadInput(
                    f"The {thing} is not UTF-8, and the gateway takes nothing else.",
                    "Rename it." if field in _FILES else "Write it in UTF-8.",
                ) from error


def _things(field: str, value: Any) -> Iterator[tuple[str, Any]]:
    """Yield the parts of a field, each with its name for a message.

    The name leaves out the value of a variable: it may be a secret.
    """
    kind = _ONE_OF.get(field, field.replace("_", " "))
    match value:
        case dict():
            for name, inner in value.items():
                yield f"{kind} {printable(name)}", [name, inner]
        case list() | tuple():
            for item in value:
                yield f"{kind} {printable(str(item))}", item
        case str():
            yield f"{kind} {printable(value)}", value
