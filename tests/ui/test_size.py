"""What the extension adds to a page at its start, and what waits until it is opened."""

from __future__ import annotations

import gzip
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page, Request, expect

from tests.ui.lab import NOTHING_RUNS, Lab
from tests.ui.test_details import SHOW as SHOW_DETAILS
from tests.ui.test_details import SUBMIT, details
from tests.ui.test_table import SHOW_TABLE, lines

MOST = 90_000
"""Bytes of our own code after gzip that a page loads before anything of ours is opened."""

OURS = re.compile(r"/extensions/jupyter-to-job/static/([^?/]+\.js)")


@pytest.mark.parametrize("lab", [NOTHING_RUNS], indirect=True)
def test_little_is_loaded_at_the_start(lab: Lab, page: Page, open_lab: Callable[[], Page]) -> None:
    lab.write("a.ipynb", "print(1)")
    loaded: set[str] = set()

    def note(request: Request) -> None:
        if found := OURS.search(request.url):
            loaded.add(found[1])

    page.on("request", note)
    open_lab()
    folder = Path(lab.python).parents[1] / "share/jupyter/labextensions/jupyter-to-job/static"
    sizes = {part: len(gzip.compress((folder / part).read_bytes())) for part in loaded}
    assert any(part.startswith("remoteEntry") for part in sizes)
    assert sum(sizes.values()) < MOST, sizes

    name = page.evaluate(SUBMIT, {"path": "a.ipynb", "ask": False})
    before_table = set(loaded)
    page.evaluate(SHOW_TABLE, {})
    expect(lines(page)).to_have_count(1)
    with_table = set(loaded)
    assert with_table > before_table, "the table came with the start"
    page.evaluate(SHOW_DETAILS, name)
    expect(details(page, name)).to_be_visible()
    assert loaded > with_table, "the details came with the start, or with the table"
