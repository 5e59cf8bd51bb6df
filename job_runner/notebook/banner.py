"""papermill's error banner, for the notebook of a run that failed."""

from __future__ import annotations

import html
import uuid
from typing import Any

from ..diagnosis.endings import End
from .lazy_imports import import_papermill

BannerCell = tuple[int, dict[str, Any]]
"""A position among the notebook's cells, and the cell to insert there."""
_ERRORS = ("OutOfMemory", "GpuOutOfMemory", "InputRequested")
"""Reasons of exceptions, beside CellError."""
_CALM_STYLE = 'style="font-size:1.5em;"'
_MARKDOWN = frozenset("\\`*_[]$~")


def error_banner(end: End) -> list[BannerCell]:
    """Return the cells to insert, in order; none for a run that succeeded.

    Their tag makes papermill (and us) remove them when the result is run again.
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

    # Somebody stopped it, most often its own user: that is no error in red.
    style = _CALM_STYLE if end.reason == "Terminated" else ERROR_STYLE
    text = f"<span {style}>{_escape(f'{end.reason}: {end.message}')}</span>"
    # After an error that `%run` only shows the later cells ran.
    verb = "failed" if end.reason in _ERRORS else "stopped"
    anchor = f'<span id="papermill-error-cell" {style}>The run {verb} here:</span>'
    if end.reason == "CellError":
        anchor = ERROR_ANCHOR_MSG
        if end.execution_count is not None:
            text = ERROR_MESSAGE_TEMPLATE % end.execution_count
            if end.advice:
                text += f"\n\n<span {ERROR_STYLE}>{_escape(end.advice)}</span>"
    cells: list[BannerCell] = []
    if end.cell is not None:
        cells.append((end.cell, _marker(anchor, ERROR_MARKER_TAG)))
    return [*cells, (0, _marker(text, ERROR_MARKER_TAG))]


def _escape(text: str) -> str:
    """Return text that a Markdown cell shows literally: an exception's text may hold anything."""
    return "".join(f"&#{ord(c)};" if c in _MARKDOWN else html.escape(c) for c in text)


def _marker(source: str, tag: str) -> dict[str, Any]:
    return {
        "cell_type": "markdown",
        "id": uuid.uuid4().hex[:8],
        "metadata": {"tags": [tag]},
        "source": source,
    }
