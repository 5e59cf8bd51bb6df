"""Tables that fit: on a narrow terminal columns shrink and go, the least important first."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TextIO

from rich.cells import cell_len, set_cell_size

GAP = 2
ELLIPSIS = "…"


@dataclass
class Column:
    """A column: its title, its texts, and what becomes of it where room is scarce.

    It shrinks down to a width of `least` (None: never), cut in front if `keep_end`. If that is not
    enough the column with the highest `drop` goes first (0: stays).
    """

    title: str
    texts: list[str]
    drop: int = 0
    least: int | None = None
    keep_end: bool = False

    width: int = 0

    def __post_init__(self) -> None:
        self.widen()

    def widen(self) -> None:
        """Take the width that all texts need."""
        self.width = max(cell_len(text) for text in (self.title, *self.texts))


def width_of(stream: TextIO) -> int | None:
    """Return the columns of a terminal, or None for a pipe or file, where nothing is cut."""
    return shutil.get_terminal_size().columns if stream.isatty() else None


def write(columns: Sequence[Column], stream: TextIO = sys.stdout) -> None:
    """Write a table to `stream`; an empty column is left out."""
    shown = [c for c in columns if any(c.texts)]
    room = width_of(stream)
    if room is not None:
        shown = _fitted(shown, room)
    ellipsis = ELLIPSIS if (stream.encoding or "").lower().startswith("utf") else "~"
    lines = zip(
        *([_cut(text, c, ellipsis) for text in (c.title, *c.texts)] for c in shown), strict=True
    )
    for line in lines:
        stream.write((" " * GAP).join(line).rstrip() + "\n")


def _fitted(columns: list[Column], room: int) -> list[Column]:
    """Make the columns fit: what may go shrinks, then goes; the others shrink last."""
    shown = list(columns)
    while True:
        for column in shown:
            column.widen()
        over = sum(c.width + GAP for c in shown) - GAP - room
        may_go = sorted((c for c in shown if c.drop), key=lambda c: -c.drop)
        for column in may_go or sorted(shown, key=lambda c: -c.width):
            over -= _shrink(column, over)
        if over <= 0 or not may_go:
            return shown
        shown.remove(may_go[0])


def _shrink(column: Column, over: int) -> int:
    """Take up to `over` from a column's width; return how much it was."""
    least = column.width if column.least is None else column.least
    taken = max(min(over, column.width - least), 0)
    column.width -= taken
    return taken


def _cut(text: str, column: Column, ellipsis: str) -> str:
    """Return `text` in exactly the column's width on the screen."""
    if cell_len(text) <= column.width:
        return set_cell_size(text, column.width)
    if not column.keep_end:
        return set_cell_size(text, column.width - 1) + ellipsis
    kept = text
    while cell_len(kept) > column.width - 1:
        kept = kept[1:]
    return set_cell_size(ellipsis + kept, column.width)
