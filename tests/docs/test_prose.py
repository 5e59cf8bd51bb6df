"""Lines of the pages have at most 120 columns, tables apart, and the changelog one line an item."""

from __future__ import annotations

import re

import pytest

from .pages import PAGES, Page, page

COLUMNS = 120
SECTIONS = {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}


@pytest.mark.parametrize("source", PAGES, ids=str)
def test_lines_are_short(source: Page) -> None:
    lines = enumerate(source.text.splitlines(), 1)
    assert [n for n, line in lines if len(line) > COLUMNS and not line.startswith("|")] == []


def test_each_change_is_one_sentence_on_one_line() -> None:
    changes = page("CHANGELOG.md").text.partition("## [Unreleased]")[2].splitlines()
    wrong = [line for line in changes if line and not re.match(r"- [A-Z`].*\.$|#", line)]
    assert wrong == []


def test_sections_are_those_of_keep_a_changelog() -> None:
    headings = re.findall(r"^### (.+)$", page("CHANGELOG.md").text, re.MULTILINE)
    assert set(headings) <= SECTIONS
