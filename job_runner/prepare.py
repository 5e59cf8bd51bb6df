"""papermill's rules before the first cell: load, upgrade, inject parameters, clear old markers.

papermill is imported here and nowhere earlier, so that the kernel can be starting meanwhile.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from .reasons import End, bad_notebook

Notebook = dict[str, Any]


def kernel_name(snapshot: bytes, override: str | None) -> str:
    """Return the kernel to start: the override, else what the notebook names, else python3.

    Raises RunFailed for bytes that are no notebook. Cheap: needed before papermill is.
    """
    try:
        metadata = json.loads(snapshot).get("metadata", {})
    except (ValueError, AttributeError) as error:
        raise bad_notebook(error) from error
    return str(override or metadata.get("kernelspec", {}).get("name") or "python3")


def prepare(
    snapshot: Path, parameters: dict[str, Any], kernel: str, *, source: str, result: str
) -> Notebook:
    """Return the notebook to execute, as papermill makes it. Raises RunFailed.

    `source` and `result` are the names that papermill records in the notebook's metadata.
    """
    import nbformat
    from papermill.execute import prepare_notebook_metadata, remove_error_markers
    from papermill.iorw import load_notebook_node
    from papermill.parameterize import parameterize_notebook

    try:
        node = load_notebook_node(str(snapshot))
        language = None if node.metadata.get("kernelspec", {}).get("language") else "python"
        if parameters:
            node = parameterize_notebook(node, parameters, kernel_name=kernel, language=language)
        node = remove_error_markers(prepare_notebook_metadata(node, source, result))
        for cell in node.cells:
            cell.metadata.papermill = dict.fromkeys(
                ("duration", "end_time", "exception", "start_time")
            ) | {"status": "pending"}
            if cell.cell_type == "code":
                cell.outputs, cell.execution_count = [], None
        nbformat.validate(node)
    except Exception as error:
        raise bad_notebook(f"{type(error).__name__}: {error}") from error
    document: Notebook = json.loads(json.dumps(node))
    return document


def code_cells(notebook: Notebook) -> list[int]:
    """Return the indices of the cells that are executed: code with something in it."""
    return [
        index
        for index, cell in enumerate(notebook["cells"])
        if cell["cell_type"] == "code" and "".join(cell["source"]).strip()
    ]


def banner(notebook: Notebook, end: End) -> list[tuple[int, dict[str, Any]]]:
    """Return papermill's error banner as cells to insert, in order: [(position, cell), ...]."""
    from nbformat.v4 import new_markdown_cell
    from papermill.execute import (
        ERROR_ANCHOR_MSG,
        ERROR_MARKER_TAG,
        ERROR_MESSAGE_TEMPLATE,
        ERROR_STYLE,
    )

    if end.reason is None:
        return []
    metadata = {"tags": [ERROR_MARKER_TAG]}
    cells: list[tuple[int, dict[str, Any]]] = []
    if end.cell is not None:
        cells.append((end.cell, new_markdown_cell(ERROR_ANCHOR_MSG, metadata=metadata)))
    if end.reason == "CellError":
        text = ERROR_MESSAGE_TEMPLATE % end.execution_count
    else:
        text = f"<span {ERROR_STYLE}>{_escape(end)}</span>"
    cells.append((0, new_markdown_cell(text, metadata=metadata)))
    if (notebook.get("nbformat"), notebook.get("nbformat_minor", 0)) < (4, 5):
        for _, cell in cells:
            cell.pop("id", None)
    return cells


def _escape(end: End) -> str:
    import html

    return html.escape(f"{end.reason}: {end.message}")
