"""papermill's rules before the first cell and after the last: parameters, metadata, error banner.

papermill is imported inside the functions, so that the kernel can be starting meanwhile.
"""

from __future__ import annotations

import html
import importlib.util
import json
import sys
import uuid
from pathlib import Path, PurePosixPath
from typing import Any

from ..diagnosis import endings
from ..diagnosis.endings import End
from ..protocol.journal.nesting import MAX_DEPTH, is_too_deep
from ..protocol.parameters import find_unrepresentable
from ..protocol.result.notebook import METADATA_KEY
from .lazy_imports import stub_unused_imports, without_remote_storage

Notebook = dict[str, Any]
BannerCell = tuple[int, dict[str, Any]]

PLAIN_PATH = "plain_path"
"""In request.json: the path of a plain run's result, as it was given."""
_MARKDOWN = frozenset("\\`*_[]$~")
_DEFAULT_KERNEL, _DEFAULT_LANGUAGE = "python3", "python"
_SKIP_TAG = "skip-execution"
"""nbclient's, and so papermill's: such a cell is passed by."""


def kernel_name(snapshot: bytes, override: str | None) -> str:
    """Return the kernel to start: the override, else what the notebook names, else python3.

    Raises RunFailed for bytes that are no notebook. Cheap: needed before papermill is.
    """
    try:
        metadata = json.loads(snapshot).get("metadata", {})
        return str(override or metadata.get("kernelspec", {}).get("name") or _DEFAULT_KERNEL)
    except (ValueError, AttributeError, RecursionError) as error:
        raise endings.bad_notebook(error) from error


def import_papermill() -> None:
    """Import papermill and nbformat: what takes long of what is needed to prepare a notebook."""
    stub_unused_imports()
    try:
        with without_remote_storage():
            _import_papermill()
    except ImportError:  # somebody's extension of papermill needs one
        _import_papermill()


def _import_papermill() -> None:
    import nbformat.v4.rwbase  # noqa: F401
    import papermill.execute
    import papermill.iorw
    import papermill.parameterize  # noqa: F401


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
        raise endings.bad_notebook(f"a parameter holds {odd}, which JSON has no number for")
    import_papermill()
    from nbformat.v4.rwbase import strip_transient
    from papermill.execute import prepare_notebook_metadata, remove_error_markers
    from papermill.iorw import load_notebook_node
    from papermill.parameterize import parameterize_notebook

    try:
        # What nbformat drops when it writes a notebook: we write it ourselves.
        node = strip_transient(load_notebook_node(str(snapshot)))
        if parameters:
            _warn_of_unknown(parameters, declared_parameters(node, kernel, language))
            node = parameterize_notebook(node, parameters, kernel_name=kernel, language=language)
        node = remove_error_markers(prepare_notebook_metadata(node, *names))
        for cell in node.cells:
            cell.metadata.papermill = _PENDING.copy()
            cell.metadata.pop(METADATA_KEY, None)
            if cell.cell_type == "code":
                cell.outputs, cell.execution_count = [], None
        node.metadata.pop(METADATA_KEY, None)  # an earlier run's
        document: Notebook = json.loads(json.dumps(node))
        if is_too_deep(document):
            raise ValueError(f"it is nested more than {MAX_DEPTH} levels deep")
    except (
        Exception
    ) as error:  # papermill and nbformat raise whatever a strange notebook makes them
        raise endings.bad_notebook(f"{type(error).__name__}: {error}") from error
    return document


def code_cells(notebook: Notebook) -> list[int]:
    """Return the indices of the cells that are executed: code, not empty, not tagged to skip."""
    return [
        index
        for index, cell in enumerate(notebook["cells"])
        if cell["cell_type"] == "code"
        and "".join(cell["source"]).strip()
        and _SKIP_TAG not in cell["metadata"].get("tags", ())
    ]


def paths(request: dict[str, Any]) -> tuple[str, str]:
    """Return the names of source and result, as papermill's metadata tells them."""
    source = PurePosixPath(request["notebook"])
    beside = source.parent / f"{request['name']}.ipynb"
    return str(source), request.get(PLAIN_PATH) or str(beside)


def provenance(request: dict[str, Any]) -> dict[str, Any]:
    """Return what a result says of where it came from: enough to run it again. {} for two files.

    Never `env`: its values are nobody's business.
    """
    if PLAIN_PATH in request:
        return {}
    came_from = {
        "job": request["name"],
        "notebook": request["notebook"],
        "snapshot_sha256": request.get("snapshot_sha256"),
        "flavor": request.get("flavor"),
        "device": request.get("device"),
        "parameters": request.get("parameters") or {},
        "inputs": [item["path"] for item in request.get("inputs") or ()],
        "isolated": bool(request.get("isolated")),
        "kernel": request.get("kernel"),
        "max_runtime": request.get("max_runtime"),
        "submitted": request.get("submitted"),
    }
    return {"provenance": came_from}


def banner(end: End) -> list[BannerCell]:
    """Return papermill's error banner as cells to insert, in order: [(position, cell), ...].

    Its tag makes papermill (and us) remove it when the result is run again.
    """
    if end.reason is None:
        return []
    import_papermill()
    from papermill.execute import (
        ERROR_ANCHOR_MSG,
        ERROR_MARKER_TAG,
        ERROR_MESSAGE_TEMPLATE,
        ERROR_STYLE,
    )

    text = f"<span {ERROR_STYLE}>{_literally(f'{end.reason}: {end.message}')}</span>"
    if end.reason == "CellError" and end.execution_count is not None:
        text = ERROR_MESSAGE_TEMPLATE % end.execution_count
        if end.advice:
            text += f"\n\n<span {ERROR_STYLE}>{_literally(end.advice)}</span>"
    placed: list[BannerCell] = []
    if end.cell is not None:
        placed.append((end.cell, _marker(ERROR_ANCHOR_MSG, ERROR_MARKER_TAG)))
    return [*placed, (0, _marker(text, ERROR_MARKER_TAG))]


def _literally(text: str) -> str:
    """Return text that a Markdown cell shows as it is: what it holds may be anybody's."""
    return "".join(f"&#{ord(c)};" if c in _MARKDOWN else html.escape(c) for c in text)


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
    stub_unused_imports()
    path = notebook.resolve(strict=True)
    try:
        found = declared_parameters(_node(path), None, None)
    except Exception as error:  # see `prepare`
        raise endings.bad_notebook(f"{type(error).__name__}: {error}") from error
    if found is None:
        return None
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


class _Node(dict[str, Any]):
    """Part of a notebook, with attributes as nbformat's have."""

    def __getattr__(self, name: str) -> Any:
        return self[name]


def _node(path: Path) -> Any:
    """Return a notebook as papermill does, so far as its parameters are concerned.

    Somebody waits for the answer before a dialog: one in nbformat 4 is read without nbformat, and
    of papermill only what is needed is imported, not the storages and engines with it.
    """
    node = json.loads(path.read_bytes(), object_hook=_Node)
    if node["nbformat"] != 4:
        import_papermill()
        from papermill.iorw import load_notebook_node

        # A node instead of a path: papermill would take braces in a file's name for parameters.
        return load_notebook_node(str(path))
    spec = importlib.util.find_spec("papermill")
    if spec is not None:
        sys.modules.setdefault("papermill", importlib.util.module_from_spec(spec))
    for cell in node.cells:
        cell.metadata.setdefault("tags", [])
        cell["source"] = "".join(cell.source)
    return node


def declared_parameters(node: Any, kernel: str | None, language: str | None) -> list[Any] | None:
    """Return the parameters that a notebook declares; None where nobody can tell, see `inspect`.

    `kernel` and `language` None: what the notebook itself says.
    """
    from papermill.exceptions import PapermillException
    from papermill.translators import papermill_translators
    from papermill.utils import find_first_tagged_cell_index

    own_kernel, own_language = _kernel_and_language(node)
    index = find_first_tagged_cell_index(node, "parameters")
    try:
        translator = papermill_translators.find_translator(
            kernel or own_kernel, language or own_language
        )
        return list(translator.inspect(node.cells[index])) if index >= 0 else []
    except (PapermillException, NotImplementedError):
        return None


def _warn_of_unknown(parameters: dict[str, Any], declared: list[Any] | None) -> None:
    """Say which parameters the notebook does not declare, in papermill's words."""
    from papermill.log import logger

    if declared is not None:
        known = {each.name for each in declared}
        for name in [name for name in parameters if name not in known]:
            logger.warning(f"Passed unknown parameter: {name}")


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
