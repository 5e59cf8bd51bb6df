"""A job that failed, its source mended, and the same again: without leaving the panel."""

from __future__ import annotations

import re
from collections.abc import Callable

from playwright.sync_api import Page, expect

from tests.ui.lab import Lab
from tests.ui.steps import END_TIMEOUT, outputs, row, show, wait_until

SUBMIT = """async () => (await jupyterapp.commands.execute('jupyter-to-job:submit', {
    path: 'reports/study.ipynb', parameters: { rate: 2 }, name: 'mine', priority: 1 })).name"""


def test_failed_mended_and_submitted_again(
    lab: Lab, open_lab: Callable[[], Page], screenshot: Callable[[str], None]
) -> None:
    lab.write("reports/study.ipynb", "rate = 1", "print(rat)", tags=("parameters",))
    page = open_lab()
    name = page.evaluate(SUBMIT)
    panel = show(page)
    line = row(panel, name)
    expect(line.get_by_text(re.compile("NameError"))).to_be_visible(timeout=END_TIMEOUT)
    expect(line.get_by_text("Cell 2 (In [3]) raised NameError")).to_be_visible()
    line.get_by_role("button", name="More actions").click()
    page.get_by_role("menuitem", name="Open Source").click()
    editor = page.locator(".jp-NotebookPanel:not(.lm-mod-hidden) .jp-Cell .cm-content").nth(1)
    expect(editor).to_have_text("print(rat)")
    editor.click()
    page.keyboard.press("Control+a")
    page.keyboard.type("print(rate)")  # it is not saved

    line.get_by_role("button", name=f"Submit the current version of {name}").click()
    expect(panel.get_by_role("article")).to_have_count(2)
    again = panel.get_by_role("article").first.get_attribute("aria-label") or ""
    assert again.startswith("mine-") and again != name
    ended = row(panel, again).get_by_text(re.compile("^Succeeded after"))
    expect(ended).to_be_visible(timeout=END_TIMEOUT)
    screenshot("panel-again")
    result = lab.root / "reports" / f"{again}.ipynb"
    wait_until(result.exists, "nothing was delivered")
    assert outputs(result) == "2\n"
