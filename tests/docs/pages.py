"""The project's pages, taken apart: code blocks, code in the text, tables, headings, links."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
_FENCE = re.compile(r"^```([^\n`]*)\n(.*?)^```[ ]*$", re.MULTILINE | re.DOTALL)
_SPAN = re.compile(r"(?<!`)(`+)(?!`)(.+?)(?<!`)\1(?!`)")
_LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")


@dataclass(frozen=True)
class Block:
    """A fenced block: its language (often empty), its text, and the line that it begins at."""

    language: str
    text: str
    line: int


@dataclass(frozen=True)
class Page:
    """One Markdown file."""

    path: Path

    def __str__(self) -> str:
        return self.path.relative_to(ROOT).as_posix()

    @cached_property
    def text(self) -> str:
        """All of it."""
        return self.path.read_text(encoding="utf-8")

    @cached_property
    def blocks(self) -> tuple[Block, ...]:
        """The fenced blocks, in order."""
        return tuple(
            Block(m[1].strip(), m[2], self.text.count("\n", 0, m.start()) + 1)
            for m in _FENCE.finditer(self.text)
        )

    @cached_property
    def prose(self) -> str:
        """The text without its fenced blocks."""
        return _FENCE.sub("", self.text)

    @cached_property
    def spans(self) -> tuple[str, ...]:
        """The code in the text: what stands in backticks."""
        return tuple(m[2].strip().replace(r"\|", "|") for m in _SPAN.finditer(self.prose))

    @cached_property
    def links(self) -> tuple[str, ...]:
        """The targets of links, as written."""
        return tuple(m[1] for m in _LINK.finditer(_SPAN.sub("", self.prose)))

    @cached_property
    def anchors(self) -> frozenset[str]:
        """What `#...` may name here: GitHub's rule for headings."""
        headings = re.findall(r"^#+ (.+)$", self.prose, re.MULTILINE)
        return frozenset(_anchor(heading) for heading in headings)

    def table(self, heading: str) -> list[list[str]]:
        """Return the cells of the first table after a heading (`## Title`), without its head."""
        assert f"{heading}\n" in self.text, f"{self} has no {heading!r}"
        section = self.text.split(f"{heading}\n", 1)[1]
        table = re.search(r"(?:^\|.*\n)+", section, re.MULTILINE)
        assert table is not None, f"{self}: no table after {heading!r}"
        return [_cells(line) for line in table[0].splitlines()[2:]]

    def first_names(self, heading: str) -> list[str]:
        """Return what stands in backticks in the first cells of a table, in order."""
        return [name for row in self.table(heading) for name in re.findall(r"`([^`]+)`", row[0])]


def _cells(line: str) -> list[str]:
    inner = line.strip().removeprefix("|").removesuffix("|")
    return [c.strip().replace(r"\|", "|") for c in re.split(r"(?<!\\)\|", inner)]


def _anchor(heading: str) -> str:
    plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).strip().lower()
    return re.sub(r"[^\w\- ]", "", plain).replace(" ", "-")


def _files() -> Iterator[Path]:
    yield from ROOT.glob("*.md")
    for folder in ("docs", "examples", "k8s", "tests", "benchmarks"):
        yield from (p for p in (ROOT / folder).rglob("*.md") if "_build" not in p.parts)


PAGES = tuple(Page(path) for path in sorted(_files()))
"""Every page that people read."""


def page(name: str) -> Page:
    """Return a page by its path from the root."""
    return Page(ROOT / name)
