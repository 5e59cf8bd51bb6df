"""Tables that fit a terminal: columns shrink or are dropped, the least important first."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TextIO

from rich.cells import cell_len, set_cell_size

from . import output

GAP = 2
ELLIPSIS = "…"


@dataclass
class Column:
    """A column of a table, and how it adapts to a narrow terminal.

    It shrinks down to `min_width` (None: never); its texts are cut at the end, or at the start if
    `keep_end`. If that is not enough, the column with the highest `drop` is left out first (0:
    never).
    """

    title: str
    texts: list[str]
    drop: int = 0
    min_width: int | None = None
    keep_end: bool = False

    def __post_init__(self) -> None:
        self.width = max(cell_len(text) for text in (self.title, *self.texts))
        self.least = self.width if self.min_width is None else min(self.min_width, self.width)


def width_of(stream: TextIO) -> int | None:
    """Return the columns of a terminal; None for a pipe or file, where nothing is cut."""
    return shutil.get_terminal_size().columns if stream.isatty() else None


def print_table(columns: Sequence[Column], stream: TextIO = sys.stdout) -> None:
    """Print a table to `stream`; empty columns are left out."""
    visible = [c for c in columns if any(c.texts)]
    max_width = width_of(stream)
    if max_width is not None:
        visible = _fit(visible, max_width)
    ellipsis = ELLIPSIS if (stream.encoding or "").lower().startswith("utf") else "~"
    lines = zip(
        *([_cut(text, c, ellipsis) for text in (c.title, *c.texts)] for c in visible), strict=True
    )
    for line in lines:
        text = (" " * GAP).join(line).rstrip()
        stream.write((output.plain(text) if stream.isatty() else text) + "\n")


def _fit(columns: Sequence[Column], max_width: int) -> list[Column]:
    """Make the columns fit: optional ones shrink, or are dropped; the others shrink last."""
    visible = list(columns)
    for column in sorted((c for c in columns if c.drop), key=lambda c: -c.drop):
        if sum((c.least if c.drop else c.width) + GAP for c in visible) - GAP <= max_width:
            break
        visible.remove(column)
    excess = sum(c.width + GAP for c in visible) - GAP - max_width
    for column in sorted(visible, key=lambda c: (-c.drop, -c.width)):
        reduction = max(min(excess, column.width - column.least), 0)
        column.width -= reduction
        excess -= reduction
    return visible


def _cut(text: str, column: Column, ellipsis: str) -> str:
    """Return `text` cut or padded to exactly the column's width on the screen."""
    if cell_len(text) <= column.width:
        return set_cell_size(text, column.width)
    if not column.keep_end:
        return set_cell_size(text, column.width - 1) + ellipsis
    while cell_len(text) > column.width - 1:
        text = text[1:]
    return set_cell_size(ellipsis + text, column.width)
