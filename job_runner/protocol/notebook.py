"""Notebooks as plain JSON (nbformat 4): what the fold starts from, and how a result is written.

The nbformat library would validate and copy everything again with each call; here a notebook is
valid because each output was made valid when it came from the kernel.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from .records import is_notebook

Cell = dict[str, Any]
Notebook = dict[str, Any]

# The types that nbformat stores as lists of lines, besides everything that is `text/...`.
_MULTILINE = {"application/javascript", "image/svg+xml"}
_LANGUAGE_TEXTS = ("name", "file_extension", "mimetype", "pygments_lexer")
_CHUNK = 1 << 20
# Python's encoder writes what JSON has no word for. Text ends with its quote, so these are numbers.
_NOT_A_NUMBER = re.compile(r"(NaN|-?Infinity)$")
_ENDS = ("N", "y")


def blank(snapshot: Notebook) -> Notebook:
    """Return a copy of a notebook without outputs; an empty one if it is not in nbformat 4."""
    if not is_notebook(snapshot):
        return {"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": []}
    return copy_of({"nbformat_minor": 5, "metadata": {}, **snapshot})


def copy_of(notebook: Notebook) -> Notebook:
    """Return a copy without outputs, in which metadata, cells and outputs can be changed."""
    cells = []
    for cell in notebook["cells"]:
        copied = {**cell, "metadata": _copy_metadata(cell["metadata"])}
        if cell["cell_type"] == "code":
            copied["outputs"], copied["execution_count"] = [], None
        cells.append(copied)
    return {**notebook, "metadata": _copy_metadata(notebook["metadata"]), "cells": cells}


def _copy_metadata(metadata: dict[str, Any]) -> dict[str, Any]:
    if isinstance(metadata.get("papermill"), dict):
        return {**metadata, "papermill": dict(metadata["papermill"])}
    return dict(metadata)


def valid_language(info: dict[str, Any]) -> dict[str, Any]:
    """Return what a kernel says of its language without what nbformat does not allow."""
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


def to_bytes(notebook: Notebook) -> bytes:
    """Return the file for a notebook, laid out as nbformat writes it (one line of text a line)."""
    return b"".join(to_chunks(notebook))


def to_chunks(notebook: Notebook) -> Iterator[bytes]:
    """Yield the file for a notebook in pieces, so that a large one is not in memory once more."""
    encoder = json.JSONEncoder(indent=1, sort_keys=True, ensure_ascii=False)
    cells = _Lazily(notebook["cells"])
    text: list[str] = []
    size = 0
    for piece in encoder.iterencode({**notebook, "cells": cells}):
        text.append(_NOT_A_NUMBER.sub("null", piece) if piece[-1:] in _ENDS else piece)
        size += len(piece)
        if size > _CHUNK:
            yield from _encode(text)
            text, size = [], 0
    yield from _encode([*text, "\n"])


class _Lazily(list[Any]):
    """Cells that are laid out for the file one by one, when the encoder comes to them."""

    def __iter__(self) -> Iterator[Any]:
        return map(_split_cell, super().__iter__())


class _Lines(list[str]):
    """A text as a list of its lines, which are made when the encoder comes to them."""

    def __iter__(self) -> Iterator[str]:
        for text in super().__iter__():
            start = 0
            while start < len(text):
                end = text.find("\n", start + _CHUNK) + 1 or len(text)
                yield from text[start:end].splitlines(keepends=True)
                start = end


def _encode(pieces: list[str]) -> Iterator[bytes]:
    # Lone surrogates have no place in UTF-8; everything else arrives as it is.
    small: list[str] = []
    for piece in pieces:
        if len(piece) < _CHUNK:
            small.append(piece)
            continue
        yield "".join(small).encode(errors="replace")
        small = []
        for start in range(0, len(piece), _CHUNK):
            yield piece[start : start + _CHUNK].encode(errors="replace")
    yield "".join(small).encode(errors="replace")


def _split_cell(cell: Cell) -> Cell:
    split = {**cell, "source": _lines(cell["source"])}
    if cell["cell_type"] == "code":
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
    if not isinstance(text, str):
        return text
    return _Lines((text,)) if text else []
