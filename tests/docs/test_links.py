"""Links inside of the project lead somewhere, and every page can be found."""

from __future__ import annotations

import re

import pytest

from .pages import DOCS, PAGES, Page, page


def _broken(link: str, source: Page) -> bool:
    """Tell whether a link of a page leads nowhere: no such file, or no such heading in it."""
    name, _, anchor = link.partition("#")
    target = (source.path.parent / name).resolve() if name else source.path
    if not target.exists():
        return True
    return bool(anchor) and anchor not in Page(target).anchors


@pytest.mark.parametrize("source", PAGES, ids=str)
def test_links_lead_somewhere(source: Page) -> None:
    inside = [link for link in source.links if not re.match(r"[a-z+]+:", link)]
    assert [link for link in inside if _broken(link, source)] == []


def test_a_broken_link_is_found() -> None:
    source = page("README.md")
    assert _broken("docs/nowhere.md", source)
    assert _broken("CONTRIBUTING.md#no-such-heading", source)
    assert not _broken("CONTRIBUTING.md#the-gates", source)


def test_every_page_is_in_the_list_of_pages() -> None:
    contents = page("docs/index.md")
    listed = {(DOCS / link.partition("#")[0]).resolve() for link in contents.links}
    pages = {path for path in DOCS.glob("*.md") if path != contents.path}
    assert pages - listed == set()


def test_nothing_of_the_place_where_it_was_written() -> None:
    private = re.compile(r"(?<![\w.])/(?:root|home/(?!ada\b)|workspace|mnt/)\w*")
    assert {str(p): paths for p in PAGES if (paths := private.findall(p.text))} == {}
