"""papermill's rules before the first cell and after the last: parameters, metadata, error banner.

papermill is imported inside the functions, so that the kernel can be starting meanwhile.
"""

from __future__ import annotations

import html
import json
import sys
import uuid
from pathlib import Path
from types import ModuleType
from typing import Any, cast

from . import reasons
from .protocol.nesting import DEEPEST, is_too_deep
from .protocol.parameters import find_unrepresentable
from .reasons import End

Notebook = dict[str, Any]
Placed = tuple[int, dict[str, Any]]

_DEFAULT_KERNEL, _DEFAULT_LANGUAGE = "python3", "python"


def without_iri_formats() -> None:
    """Spare this process the import of a grammar for IRIs: about a second of each short job.

    jsonschema, which nbformat needs, imports it wherever it is installed (Jupyter Server brings it)
    to check formats that do not occur in notebooks, and does without where it is missing.
    """
    sys.modules.setdefault("rfc3987_syntax", cast(ModuleType, None))


def kernel_name(snapshot: bytes, override: str | None) -> str:
    """Return the kernel to start: the override, else what the notebook names, else python3.

    Raises RunFailed for bytes that are no notebook. Cheap: needed before papermill is.
    """
    try:
        metadata = json.loads(snapshot).get("metadata", {})
        return str(override or metadata.get("kernelspec", {}).get("name") or _DEFAULT_KERNEL)
    except (ValueError, AttributeError, RecursionError) as error:
        raise reasons.bad_notebook(error) from error


def prepare(
    snapshot: Path,
    parameters: dict[str, Any],
    kernel: str,
    *,
    language: str | None,
    names: tuple[str, str],
) -> Notebook:
    """Return the notebook to execute, as papermill makes it. Raises RunFailed.

    `language` is the kernel's, None if it is not known: then the notebook's. `names` are those of
    the source and of the result, which papermill records in the notebook's metadata.
    """
    if odd := find_unrepresentable(parameters):
        raise reasons.bad_notebook(f"a parameter holds {odd}, which JSON has no number for")
    without_iri_formats()
    from papermill.execute import prepare_notebook_metadata, remove_error_markers
    from papermill.iorw import load_notebook_node
    from papermill.parameterize import parameterize_notebook

    try:
        node = load_notebook_node(str(snapshot))
        if parameters:
            node = parameterize_notebook(node, parameters, kernel_name=kernel, language=language)
        node = remove_error_markers(prepare_notebook_metadata(node, *names))
        for cell in node.cells:
            cell.metadata.papermill = _PENDING.copy()
            if cell.cell_type == "code":
                cell.outputs, cell.execution_count = [], None
        document: Notebook = json.loads(json.dumps(node))
        if is_too_deep(document):
            raise ValueError(f"it is nested more than {DEEPEST} levels deep")
    except (
        Exception
    ) as error:  # papermill and nbformat raise whatever a strange notebook makes them
        raise reasons.bad_notebook(f"{type(error).__name__}: {error}") from error
    return document


def code_cells(notebook: Notebook) -> list[int]:
    """Return the indices of the cells that are executed: code with something in it."""
    return [
        index
        for index, cell in enumerate(notebook["cells"])
        if cell["cell_type"] == "code" and "".join(cell["source"]).strip()
    ]


def banner(end: End) -> list[Placed]:
    """Return papermill's error banner as cells to insert, in order: [(position, cell), ...].

    Its tag makes papermill (and us) remove it when the result is run again.
    """
    if end.reason is None:
        return []
    without_iri_formats()
    from papermill.execute import (
        ERROR_ANCHOR_MSG,
        ERROR_MARKER_TAG,
        ERROR_MESSAGE_TEMPLATE,
        ERROR_STYLE,
    )

    text = f"<span {ERROR_STYLE}>{html.escape(f'{end.reason}: {end.message}')}</span>"
    if end.reason == "CellError":
        text = ERROR_MESSAGE_TEMPLATE % end.execution_count
    placed: list[Placed] = []
    if end.cell is not None:
        placed.append((end.cell, _marker(ERROR_ANCHOR_MSG, ERROR_MARKER_TAG)))
    return [*placed, (0, _marker(text, ERROR_MARKER_TAG))]


def _marker(source: str, tag: str) -> dict[str, Any]:
    identifier = uuid.uuid4().hex[:8]
    return {
        "cell_type": "markdown",
        "id": identifier,
        "metadata": {"tags": [tag]},
        "source": source,
    }


def inspect(notebook: Path) -> list[dict[str, Any]] | None:
    """Return a notebook's parameters as {name, type, default, help}; [] if it declares none.

    None where nobody can tell, because papermill cannot read the notebook's language: then no
    parameter may be called unknown. Raises RunFailed, OSError.
    """
    without_iri_formats()
    from papermill.exceptions import PapermillException
    from papermill.iorw import load_notebook_node
    from papermill.translators import papermill_translators
    from papermill.utils import find_first_tagged_cell_index

    # A node instead of a path: papermill would take braces in a file's name for parameters.
    path = notebook.resolve(strict=True)
    try:
        node = load_notebook_node(str(path))
        index = find_first_tagged_cell_index(node, "parameters")
        translator = papermill_translators.find_translator(*_kernel_and_language(node))
        found = translator.inspect(node.cells[index]) if index >= 0 else []
    except (PapermillException, NotImplementedError):
        return None
    except Exception as error:  # see `prepare`
        raise reasons.bad_notebook(f"{type(error).__name__}: {error}") from error
    unknown = {"None": None}  # papermill's word for a type that it could not infer
    return [
        {
            "name": parameter.name,
            "type": unknown.get(parameter.inferred_type_name, parameter.inferred_type_name),
            "default": parameter.default,
            "help": parameter.help,
        }
        for parameter in found
    ]


def _kernel_and_language(node: Any) -> tuple[str, str]:
    """Return what a notebook says that it is for; the default kernel's where it says nothing."""
    spec = node.metadata.get("kernelspec", {})
    language = node.metadata.get("language_info", {}).get("name") or spec.get("language")
    return spec.get("name") or _DEFAULT_KERNEL, language or _DEFAULT_LANGUAGE


_PENDING = {
    "duration": None,
    "end_time": None,
    "exception": None,
    "start_time": None,
    "status": "pending",
}
