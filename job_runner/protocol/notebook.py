"""Notebooks as plain JSON (nbformat 4): what the fold starts from, and how a result is written.

The nbformat library would validate and copy everything again with each call; here a notebook is
valid because each output was made valid when it came from the kernel.
"""

from __future__ import annotations

import json
from typing import Any

Cell = dict[str, Any]
Notebook = dict[str, Any]

# The types that nbformat stores as lists of lines, besides everything that is `text/...`.
_MULTILINE = {"application/javascript", "image/svg+xml"}


def blank(snapshot: Notebook) -> Notebook:
    """Return a copy of a notebook without outputs; an empty one if it is not in nbformat 4."""
    if snapshot.get("nbformat") != 4 or not isinstance(snapshot.get("cells"), list):
        return {"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": []}
    copy: Notebook = json.loads(json.dumps(snapshot))
    copy.setdefault("nbformat_minor", 5)
    copy.setdefault("metadata", {})
    for cell in copy["cells"]:
        if cell.get("cell_type") == "code":
            cell["outputs"], cell["execution_count"] = [], None
    return copy


def empty_code_cell(notebook: Notebook, identifier: str) -> Cell:
    """Return a code cell that is valid in `notebook`."""
    cell: Cell = {"cell_type": "code", "source": "", "metadata": {}, "outputs": []}
    cell["execution_count"] = None
    if notebook["nbformat_minor"] >= 5:
        cell["id"] = identifier
    return cell


def to_bytes(notebook: Notebook) -> bytes:
    """Return the file for a notebook, laid out as nbformat writes it (one line of text a line)."""
    document = {**notebook, "cells": [_split_cell(cell) for cell in notebook["cells"]]}
    text = json.dumps(document, indent=1, sort_keys=True, ensure_ascii=False)
    # Lone surrogates have no place in UTF-8; everything else arrives as it is.
    return (text + "\n").encode("utf-8", errors="replace")


def _split_cell(cell: Cell) -> Cell:
    split = {**cell, "source": _lines(cell["source"])}
    if "outputs" in cell:
        split["outputs"] = [_split_output(output) for output in cell["outputs"]]
    return split


def _split_output(output: dict[str, Any]) -> dict[str, Any]:
    if output["output_type"] == "stream":
        return {**output, "text": _lines(output["text"])}
    if "data" not in output:
        return output
    data = {
        kind: _lines(value) if kind.startswith("text/") or kind in _MULTILINE else value
        for kind, value in output["data"].items()
    }
    return {**output, "data": data}


def _lines(text: Any) -> Any:
    return text.splitlines(keepends=True) if isinstance(text, str) else text
