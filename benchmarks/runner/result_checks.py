"""What came out: read the way a notebook's reader does, and compared with what was printed.

A find_fault is one short sentence; an empty one means that all is right.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import nbformat

Output = tuple[str, str]
"""(stdout | stderr | execute_result | display_data | error, its text)."""
Check = Callable[[list[list[Output]]], str]
"""Takes the outputs of each of our cells."""

_ADDED = {"papermill-error-cell-tag", "injected-parameters"}
"""Tags of cells that are not the notebook's own."""


def find_fault(path: Path, check: Check) -> str:
    """Return what is wrong with a result; empty if nothing is."""
    if not path.exists():
        return "no file"
    raw = path.read_bytes()
    if not raw:
        return "file of 0 bytes"
    try:
        read = json.loads(raw)
    except ValueError:
        return f"torn file of {len(raw):,} bytes"
    try:
        nbformat.validate(read)
    except nbformat.ValidationError as error:
        return f"not a notebook: {str(error).splitlines()[0]}"
    return check([displayed(cell) for cell in own_cells(read)])


def own_cells(read: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the code cells that the notebook had before it was run."""
    return [
        cell
        for cell in read["cells"]
        if cell["cell_type"] == "code" and not _ADDED & set(cell["metadata"].get("tags", ()))
    ]


def displayed(cell: dict[str, Any]) -> list[Output]:
    """Return a cell's outputs as JupyterLab shows them: neighbouring streams are one."""
    merged: list[tuple[str, list[str]]] = []
    for output in cell["outputs"]:
        kind, text = _plain(output)
        if merged and kind in ("stdout", "stderr") and merged[-1][0] == kind:
            merged[-1][1].append(text)
        else:
            merged.append((kind, [text]))
    return [(kind, overwritten("".join(texts))) for kind, texts in merged]


def _plain(output: dict[str, Any]) -> Output:
    kind = output["output_type"]
    if kind == "stream":
        return output["name"], _joined(output["text"])
    if kind == "error":
        return "error", output["ename"]
    return kind, _joined(output["data"].get("text/plain", ""))


def _joined(text: str | list[str]) -> str:
    return text if isinstance(text, str) else "".join(text)


def overwritten(text: str) -> str:
    """Let each carriage return go back to its line's start, as a terminal and JupyterLab do."""
    if "\r" not in text:
        return text
    return "\n".join(_overwritten_line(line) for line in text.split("\n"))


def _overwritten_line(line: str) -> str:
    seen = ""
    for piece in line.split("\r"):
        seen = piece + seen[len(piece) :]
    return seen


def exactly(expected: Callable[[], Sequence[Sequence[Output]]]) -> Check:
    """Return a check for these outputs, cell by cell, in this order."""

    def check(found: list[list[Output]]) -> str:
        wanted = expected()
        if len(found) != len(wanted):
            return f"{len(found)} of {len(wanted)} cells"
        for number, (want, have) in enumerate(zip(wanted, found, strict=True), 1):
            if list(want) != have:
                return f"cell {number}: {_difference(want, have)}"
        return ""

    return check


def _difference(want: Sequence[Output], have: Sequence[Output]) -> str:
    """Say in a few words how two lists of outputs differ."""
    if len(want) != len(have):
        return f"{len(have):,} of {len(want):,} outputs"
    for (kind, text), (other, seen) in zip(want, have, strict=True):
        if kind != other:
            return f"{other} instead of {kind}"
        if text != seen:
            lines, all_lines = seen.count("\n"), text.count("\n")
            if lines != all_lines:
                return f"{lines:,} of {all_lines:,} lines"
            return f"ends in {seen[-20:]!r}"
    return "all right"
