"""The tables of docs/protocol.md, for the tests that hold them to the code and to real jobs."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

PAGE = Path(__file__).parents[1] / "docs" / "protocol.md"


@dataclass(frozen=True)
class Fields:
    """Names of fields: those that are always there, and those that may be (`name`?)."""

    required: frozenset[str]
    optional: frozenset[str]


def names(cell: str) -> Fields:
    """Return the names in backticks in a table's cell."""
    found = re.findall(r"`([^`]+)`(\?)?", cell)
    return Fields(
        frozenset(name for name, mark in found if not mark),
        frozenset(name for name, mark in found if mark),
    )


def rows(heading: str) -> list[list[str]]:
    """Return the cells of the first table after a heading, without its own head."""
    section = PAGE.read_text().split(f"{heading}\n", 1)[1]
    table = re.search(r"(?:^\|.*\n)+", section, re.MULTILINE)
    assert table is not None, heading
    lines = table[0].splitlines()[2:]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def document_fields(heading: str) -> frozenset[str]:
    """Return the fields of the document that a section describes."""
    return frozenset().union(*(names(row[0]).required for row in rows(heading)))


def record_fields() -> dict[str, Fields]:
    """Return the fields of each kind of record."""
    table = rows("## The journal")
    return {kind: names(row[1]) for row in table for kind in names(row[0]).required}
