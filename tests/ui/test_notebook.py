"""SUBMIT JOB in Notebook 7, where every notebook has a page of its own."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from tests.ui.lab import TOKEN, Lab
from tests.ui.steps import END_TIMEOUT, asked, button, outputs, send_button, toast, told_name


@pytest.mark.parametrize("lab", [{"program": "notebook"}], indirect=True)
def test_the_button_works_in_notebook_7(
    lab: Lab, page: Page, screenshot: Callable[[str], None]
) -> None:
    lab.write("reports/study.ipynb", "print(6 * 7)")
    page.goto(f"http://127.0.0.1:{lab.port}/notebooks/reports/study.ipynb?token={TOKEN}")
    expect(button(page)).to_be_enabled(timeout=END_TIMEOUT)
    button(page).click()
    asked(page)
    screenshot("notebook-7")
    send_button(page).click()
    name = told_name(page)

    finished = toast(page, re.compile(f"{name} finished in "))
    expect(finished).to_be_visible(timeout=END_TIMEOUT)
    assert outputs(lab.root / "reports" / f"{name}.ipynb") == "42\n"
    with page.context.expect_page() as opened:
        finished.get_by_role("button", name="Open").click()
    result = opened.value.locator(".jp-Notebook .jp-OutputArea-output").first
    expect(result).to_contain_text("42", timeout=END_TIMEOUT)
    assert opened.value.url.endswith(f"/notebooks/reports/{name}.ipynb")
