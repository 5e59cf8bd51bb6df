"""Notebooks to submit, and what is looked for in their results."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import nbformat
from nbformat.v4 import new_code_cell, new_notebook

BANNER_TAG = "papermill-error-cell-tag"


def parameters(source: str) -> Any:
    """Return the cell that holds the defaults of parameters."""
    return new_code_cell(source, metadata={"tags": ["parameters"]})


def write(path: Path, *cells: Any, kernel: str | None = "python3") -> Path:
    """Write a notebook of code cells, given as cells or as their sources."""
    made = new_notebook(cells=[new_code_cell(c) if isinstance(c, str) else c for c in cells])
    if kernel:
        made.metadata.kernelspec = {"name": kernel, "display_name": kernel, "language": "python"}
    path.parent.mkdir(parents=True, exist_ok=True)
    nbformat.write(made, path)
    return path


def read(path: Path) -> Any:
    """Read a result, which must be valid."""
    node = nbformat.read(path, as_version=4)
    nbformat.validate(node)
    return node


def printed(path: Path) -> str:
    """Return all text that the notebook's cells printed, in order."""
    outputs = [o for c in read(path).cells if c.cell_type == "code" for o in c.outputs]
    return "".join(o.text for o in outputs if o.output_type == "stream")


def banner(path: Path) -> str:
    """Return the text of papermill's error banner; empty if there is none."""
    marked = [c for c in read(path).cells if BANNER_TAG in c.metadata.get("tags", [])]
    return "\n".join(c.source for c in marked)
