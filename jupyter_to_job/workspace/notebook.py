"""Tells a notebook that can run from anything else, with the place of the fault."""

from __future__ import annotations

import json
from typing import Any

from ..domain.errors import BadNotebook

_NEWEST = 4
_OLDEST = 3
"""What papermill upgrades by itself; older ones are rare enough to be saved once more by hand."""


def kernel_of(data: bytes, label: str) -> str | None:
    """Check that `data` is a notebook that can run, and return the kernel it names, if it does.

    Raises BadNotebook, with line and column where the JSON is broken.
    """
    document = _parse(data, label)
    version = document.get("nbformat") if isinstance(document, dict) else None
    if not isinstance(version, int) or isinstance(version, bool):
        raise BadNotebook(f"{label} is no notebook: it has no nbformat.")
    if version > _NEWEST:
        raise BadNotebook(
            f"{label} is in nbformat {version}, which is newer than {_NEWEST}.",
            "Save it in the older format.",
        )
    if version < _OLDEST:
        raise BadNotebook(
            f"{label} is in nbformat {version}, which is too old.", "Open it in Jupyter, save it."
        )
    _check_parts(document, version, label)
    metadata = document.get("metadata")
    spec = metadata.get("kernelspec") if isinstance(metadata, dict) else None
    name = spec.get("name") if isinstance(spec, dict) else None
    return name if isinstance(name, str) and name else None


def _parse(data: bytes, label: str) -> Any:
    if not data.strip():
        raise BadNotebook(f"{label} is no notebook: it is empty.", "Save it and submit again.")
    try:
        return json.loads(data.decode())
    except UnicodeDecodeError as error:
        raise BadNotebook(f"{label} is no notebook: it is not UTF-8 text.") from error
    except json.JSONDecodeError as error:
        raise BadNotebook(
            f"{label} is no notebook: broken JSON at line {error.lineno}, column {error.colno} "
            f"({error.msg})."
        ) from error
    except (ValueError, RecursionError) as error:  # a number, or a nesting, without end
        raise BadNotebook(f"{label} is no notebook: {error}.") from error


def _check_parts(document: dict[str, Any], version: int, label: str) -> None:
    """Check that the parts are there at all. The runner validates what they hold."""
    key = "cells" if version == _NEWEST else "worksheets"
    parts: tuple[tuple[str, type], ...] = ((key, list), ("metadata", dict), ("nbformat_minor", int))
    for part, kind in parts:
        if not isinstance(document.get(part), kind):
            raise BadNotebook(f"{label} is no notebook: it has no {part}.")
    for index, item in enumerate(document[key]):
        if not isinstance(item, dict) or (key == "cells" and "cell_type" not in item):
            raise BadNotebook(f"{label} is no notebook: {key}[{index}] is not one.")
