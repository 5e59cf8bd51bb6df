"""The notebook to execute, as papermill prepares it: parameters, metadata, no outputs.

papermill is imported inside the functions, so that the kernel can start meanwhile.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

from ..diagnosis import endings
from ..diagnosis.cell_place import CellPlace
from ..protocol.journal.nesting import MAX_DEPTH, is_too_deep
from ..protocol.journal.validation import is_notebook
from ..protocol.parameters import find_unrepresentable
from ..protocol.progress import INJECTED_TAG, Places
from ..protocol.result.notebook import METADATA_KEY, replace_invalid_ids
from .inspect import declared_parameters
from .lazy_imports import import_papermill

Notebook = dict[str, Any]

_SKIP_TAG = "skip-execution"
"""nbclient, and with it papermill, does not execute a cell with this tag."""
_PENDING = {
    "duration": None,
    "end_time": None,
    "exception": None,
    "start_time": None,
    "status": "pending",
}
"""papermill's metadata of a cell that has not run."""


def prepare_notebook(
    snapshot: Path,
    parameters: dict[str, Any],
    kernel: str,
    *,
    language: str | None,
    names: tuple[str, str],
) -> tuple[Notebook, Places]:
    """Return the notebook to execute, as papermill makes it, and where its cells come from.

    `language` is the kernel's; where it is None the notebook's counts. `names` are the paths of
    source and result, which papermill records in the notebook's metadata. The places are those of
    `protocol.progress.source_places`. Raises RunFailed.
    """
    if number := find_unrepresentable(parameters):
        raise endings.bad_notebook(f"a parameter holds {number}, which JSON has no number for")
    import_papermill()
    from nbformat.v4.rwbase import strip_transient
    from papermill.execute import prepare_notebook_metadata, remove_error_markers
    from papermill.iorw import load_notebook_node
    from papermill.parameterize import parameterize_notebook

    try:
        # nbformat strips these fields when it writes a notebook, and we write it ourselves.
        node = strip_transient(load_notebook_node(str(snapshot)))
        earlier = _number_cells(node)
        if parameters:
            _warn_of_unknown(parameters, declared_parameters(node, kernel, language))
            node = parameterize_notebook(node, parameters, kernel_name=kernel, language=language)
        node = remove_error_markers(prepare_notebook_metadata(node, *names))
        # papermill puts a new cell in the place of one that an earlier run had added.
        places = tuple(cell.metadata.pop(METADATA_KEY, earlier) for cell in node.cells)
        for cell in node.cells:
            cell.metadata.papermill = _PENDING.copy()
            if cell.cell_type == "code":
                cell.outputs, cell.execution_count = [], None
        node.metadata.pop(METADATA_KEY, None)  # an earlier run's
        document: Notebook = json.loads(json.dumps(node))
        if is_too_deep(document):
            raise ValueError(f"it is nested more than {MAX_DEPTH} levels deep")
        if not is_notebook(document):  # nbformat only warns of what it finds
            raise ValueError("a cell has a type or a text that no notebook may have")
        document = replace_invalid_ids(document)
        _refuse_half_characters(document, places)
    except Exception as error:  # papermill and nbformat raise anything for a malformed notebook
        raise endings.bad_notebook(f"{type(error).__name__}: {error}") from error
    return document, places


def _number_cells(node: Any) -> int | None:
    """Write into each cell's metadata where it is; return where an earlier run's parameters are."""
    for index, cell in enumerate(node.cells):
        cell.metadata[METADATA_KEY] = index
    tagged = (i for i, c in enumerate(node.cells) if INJECTED_TAG in c.metadata.get("tags", ()))
    return next(tagged, None)


def _refuse_half_characters(notebook: Notebook, places: Places) -> None:
    """Raise ValueError for code with a lone surrogate: ipykernel never replies to such a cell."""
    for place in code_cells(notebook, places):
        try:
            "".join(notebook["cells"][place.index]["source"]).encode()
        except UnicodeEncodeError as error:
            half = ascii(error.object[error.start])
            raise ValueError(f"{place.describe()} holds half of a character, {half}") from error


def code_cells(notebook: Notebook, places: Iterable[int | None]) -> list[CellPlace]:
    """Return the cells that are executed: code, not empty, not tagged to skip."""
    executed = []
    for index, (cell, place) in enumerate(zip(notebook["cells"], places, strict=True)):
        is_executed = (
            cell["cell_type"] == "code"
            and "".join(cell["source"]).strip()
            and _SKIP_TAG not in cell["metadata"].get("tags", ())
        )
        if is_executed:
            executed.append(CellPlace(index, 0 if place is None else place + 1))
    if executed:
        executed[-1] = replace(executed[-1], is_last=True)
    return executed


def _warn_of_unknown(parameters: dict[str, Any], declared: list[Any] | None) -> None:
    """Log which parameters the notebook does not declare, in papermill's words."""
    from papermill.log import logger

    if declared is not None:
        names = {parameter.name for parameter in declared}
        for name in [name for name in parameters if name not in names]:
            logger.warning(f"Passed unknown parameter: {name}")
