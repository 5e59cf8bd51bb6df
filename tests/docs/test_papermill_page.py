"""docs/papermill.md shows every behaviour that is tested, and every option that papermill has."""

from __future__ import annotations

import papermill.cli

from ..runner.papermill_behaviours import BEHAVIOURS
from .pages import page

PAGE = page("docs/papermill.md")


def test_what_is_the_same() -> None:
    documented = [row[0] for row in PAGE.table("## The same")]
    assert documented == [b.says for b in BEHAVIOURS if not b.differs]


def test_what_differs_and_why() -> None:
    rows = PAGE.table("## Different, and why")
    assert [row[0] for row in rows] == [b.says for b in BEHAVIOURS if b.differs]
    assert [row for row in rows if min(map(len, row)) < 10] == []


def test_every_option_of_papermill() -> None:
    """One that a newer papermill brings is missed here."""
    options = {p.opts[0] for p in papermill.cli.papermill.params if p.opts[0].startswith("-")}
    assert set(PAGE.first_names("## Its options")) == options
