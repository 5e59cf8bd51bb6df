"""Notebooks as plain JSON of nbformat 4: the start of the fold, and the file of a result.

The nbformat library would validate and copy everything with each call. Here a notebook is valid
because each output was made valid when it came from the kernel.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any

from ..journal.validation import has_valid_id, is_notebook
from . import json_writer
from .spool import Extent
from .spooled_outputs import SpooledOutputs

Cell = dict[str, Any]
Notebook = dict[str, Any]

METADATA_KEY = "jupyter_to_job"
"""The key of our metadata in cells and notebook, such as their usage."""
_CHANGED = {"papermill", METADATA_KEY}
_LANGUAGE_TEXTS = ("name", "file_extension", "mimetype", "pygments_lexer")


def blank_notebook(snapshot: Notebook) -> Notebook:
    """Return a copy of a notebook without outputs; an empty one if it is not in nbformat 4."""
    if not is_notebook(snapshot):
        return {"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": []}
    return replace_invalid_ids(copy_notebook({"nbformat_minor": 5, "metadata": {}, **snapshot}))


def replace_invalid_ids(notebook: Notebook) -> Notebook:
    """Return a notebook whose cells have no id that nbformat forbids, as other editors write them.

    The new ids come from the place and the old id: whoever folds a journal again gets the same.
    """
    cells = []
    for index, cell in enumerate(notebook["cells"]):
        if not has_valid_id(cell):
            digest = hashlib.sha256(f"{index} {cell['id']!a}".encode())
            cell = {**cell, "id": digest.hexdigest()[:8]}
        cells.append(cell)
    return {**notebook, "cells": cells}


def copy_notebook(notebook: Notebook) -> Notebook:
    """Return a copy without outputs, whose metadata, cells and outputs can be changed."""
    cells = []
    for cell in notebook["cells"]:
        copied = {**cell, "metadata": _copy_metadata(cell["metadata"])}
        if cell["cell_type"] == "code":
            copied["outputs"], copied["execution_count"] = [], None
        cells.append(copied)
    return {**notebook, "metadata": _copy_metadata(notebook["metadata"]), "cells": cells}


def _copy_metadata(metadata: dict[str, Any]) -> dict[str, Any]:
    copied = dict(metadata)
    for name in _CHANGED & metadata.keys():
        if isinstance(metadata[name], dict):
            copied[name] = dict(metadata[name])
        else:  # not written by us
            del copied[name]
    return copied


def valid_language(info: dict[str, Any]) -> dict[str, Any]:
    """Return a kernel's language_info without the fields that nbformat does not allow."""
    if not isinstance(info.get("name"), str):
        return {}
    allowed = {**dict.fromkeys(_LANGUAGE_TEXTS, (str,)), "codemirror_mode": (str, dict)}
    return {k: v for k, v in info.items() if isinstance(v, allowed.get(k, object))}


def empty_code_cell(notebook: Notebook, identifier: str) -> Cell:
    """Return a code cell that is valid in `notebook`."""
    cell: Cell = {"cell_type": "code", "source": "", "metadata": {}, "outputs": []}
    cell["execution_count"] = None
    if notebook["nbformat_minor"] >= 5:
        cell["id"] = identifier
    return cell


def file_parts(notebook: Notebook) -> Iterator[str | bytes | Extent]:
    """Yield the file of a notebook: text, and extents of the spool with its outputs."""
    yield "{"
    for count, key in enumerate(sorted(notebook)):
        yield f"{',' if count else ''}\n {json_writer.quote(key)}: "
        if key == "cells":
            yield from _cells(notebook["cells"])
        else:
            yield json_writer.format_value(notebook[key], 1)
    yield "\n}\n"


def _cells(cells: list[Cell]) -> Iterator[str | bytes | Extent]:
    yield "["
    for count, cell in enumerate(cells):
        yield (",\n  {" if count else "\n  {")
        for number, key in enumerate(sorted(cell)):
            yield f"{',' if number else ''}\n   {json_writer.quote(key)}: "
            value = cell[key]
            if isinstance(value, SpooledOutputs):
                yield from _outputs(value)
            elif key == "source":
                yield json_writer.format_text(value, 3)
            else:
                yield json_writer.format_value(value, 3)
        yield "\n  }"
    yield "\n ]" if cells else "]"


def _outputs(outputs: SpooledOutputs) -> Iterator[str | bytes | Extent]:
    is_first = True
    yield "["
    for part in outputs.parts():
        if is_first:  # drop the comma of the separator
            part = part.skip(1) if isinstance(part, Extent) else part[1:]
        yield part
        is_first = False
    yield "]" if is_first else "\n   ]"
