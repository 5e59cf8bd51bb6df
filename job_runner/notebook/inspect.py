"""The parameters that a notebook declares, as papermill infers them from its code."""

from __future__ import annotations

import ast
import importlib.util
import json
import sys
from pathlib import Path
from typing import Any

from ..diagnosis import endings
from .lazy_imports import import_papermill, stub_unused_imports
from .metadata import DEFAULT_KERNEL, DEFAULT_LANGUAGE


def inspect_parameters(notebook: Path) -> list[dict[str, Any]] | None:
    """Return a notebook's parameters as {name, type, default, help}; [] if it declares none.

    Return None where papermill cannot read the notebook's language: then no parameter may be called
    unknown. Raises RunFailed, OSError.
    """
    stub_unused_imports()
    path = notebook.resolve(strict=True)
    try:
        node = _read_node(path)
        declared = declared_parameters(node, None, None)
        long_texts = _long_texts(node) if declared else {}
    except Exception as error:  # papermill and nbformat raise anything for a malformed notebook
        raise endings.bad_notebook(f"{type(error).__name__}: {error}") from error
    if declared is None:
        return None
    unknown = {"None": None}  # papermill's word for a type that it could not infer
    return [
        {
            "name": parameter.name,
            "type": unknown.get(parameter.inferred_type_name, parameter.inferred_type_name),
            "default": long_texts.get(parameter.name, parameter.default),
            "help": parameter.help,
        }
        for parameter in declared
    ]


def declared_parameters(node: Any, kernel: str | None, language: str | None) -> list[Any] | None:
    """Return papermill's parameters of a notebook; None where it cannot read the language.

    Where `kernel` or `language` is None the notebook's own counts.
    """
    from papermill.exceptions import PapermillException
    from papermill.translators import papermill_translators
    from papermill.utils import find_first_tagged_cell_index

    notebook_kernel, notebook_language = _kernel_and_language(node)
    index = find_first_tagged_cell_index(node, "parameters")
    try:
        translator = papermill_translators.find_translator(
            kernel or notebook_kernel, language or notebook_language
        )
        return list(translator.inspect(node.cells[index])) if index >= 0 else []
    except (PapermillException, NotImplementedError):
        return None


def _long_texts(node: Any) -> dict[str, str]:
    """Return the defaults that are texts over several lines of Python, each as a literal in one.

    papermill joins the lines without their breaks, and cuts each at a #.
    """
    from papermill.utils import find_first_tagged_cell_index

    source = node.cells[find_first_tagged_cell_index(node, "parameters")].source
    try:
        statements = ast.parse(source).body if _kernel_and_language(node)[1] == "python" else []
    except (SyntaxError, ValueError, RecursionError, MemoryError):  # magics, for one
        return {}
    texts = {}
    for statement in statements:
        match statement:
            case (
                ast.Assign(targets=[ast.Name(name)], value=ast.Constant(str(text)) as constant)
                | ast.AnnAssign(target=ast.Name(name), value=ast.Constant(str(text)) as constant)
            ) if constant.end_lineno != constant.lineno:
                texts[name] = repr(text)
    return texts


class _Node(dict[str, Any]):
    """Part of a notebook, with attributes as nbformat's nodes have."""

    def __getattr__(self, name: str) -> Any:
        return self[name]


def _read_node(path: Path) -> Any:
    """Return a notebook as papermill reads it, as far as its parameters are concerned.

    A user waits for this answer before a dialog. So nbformat 4 is read without nbformat, and of
    papermill only the translators are imported, without storages and engines.
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


def _kernel_and_language(node: Any) -> tuple[str, str]:
    """Return the kernel and the language of a notebook's metadata, or the defaults."""
    spec = node.metadata.get("kernelspec", {})
    language = node.metadata.get("language_info", {}).get("name") or spec.get("language")
    return spec.get("name") or DEFAULT_KERNEL, language or DEFAULT_LANGUAGE
