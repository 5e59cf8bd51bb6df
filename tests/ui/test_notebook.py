"""SUBMIT JOB in Notebook 7, where every notebook has a page of its own."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from tests.ui.lab import TOKEN, Lab
from tests.ui.steps import (
    END_TIMEOUT,
    asked,
    button,
    outputs,
    row,
    send_button,
    toast,
    told_name,
)


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


@pytest.mark.parametrize("lab", [{"program": "notebook"}], indirect=True)
def test_the_page_of_files_has_a_tab_of_jobs(
    lab: Lab, page: Page, screenshot: Callable[[str], None]
) -> None:
    lab.write("reports/study.ipynb", "print(6 * 7)")
    page.goto(f"http://127.0.0.1:{lab.port}/tree?token={TOKEN}")
    tab = page.locator(".jp-TreePanel").get_by_role("tab", name=re.compile("^Jobs"))
    tab.click(timeout=END_TIMEOUT)
    panel = page.get_by_role("tabpanel", name="Jobs")
    expect(panel.get_by_text("No jobs yet.")).to_be_visible()
    name = page.evaluate(
        "async () => (await jupyterapp.commands.execute('jupyter-to-job:submit',"
        " { path: 'reports/study.ipynb', ask: false })).name"
    )
    line = row(panel, name)
    expect(line.get_by_text(re.compile("^Succeeded"))).to_be_visible(timeout=END_TIMEOUT)
    screenshot("notebook-7-jobs")
    line.get_by_role("button", name="More actions").click()
    page.get_by_role("menuitem", name="Show Logs", exact=True).click()
    expect(page.get_by_role("log").get_by_text("42")).to_be_visible()
    screenshot("notebook-7-logs")
    page.locator(".jp-TreePanel").get_by_role("tab", name="Files").click()
    expect(panel).to_be_hidden()
    page.evaluate(
        "async name => { await jupyterapp.commands.execute('jupyter-to-job:show-jobs',"
        " { name }); }",
        name,
    )
    expect(line.locator("[data-main]")).to_be_focused()


@pytest.mark.parametrize("lab", [{"program": "notebook"}], indirect=True)
def test_a_notebooks_page_shows_the_log_below_it(
    lab: Lab, page: Page, screenshot: Callable[[str], None]
) -> None:
    lab.write("reports/study.ipynb", "print(6 * 7)")
    page.goto(f"http://127.0.0.1:{lab.port}/notebooks/reports/study.ipynb?token={TOKEN}")
    expect(button(page)).to_be_enabled(timeout=END_TIMEOUT)
    button(page).click()
    asked(page)
    send_button(page).click()
    name = told_name(page)
    expect(toast(page, re.compile(f"{name} finished in "))).to_be_visible(timeout=END_TIMEOUT)
    page.evaluate(
        "async name => { await jupyterapp.commands.execute('jupyter-to-job:logs', { name }); }",
        name,
    )
    expect(page.get_by_role("log").get_by_text("42")).to_be_in_viewport(ratio=1)
    screenshot("notebook-7-log-below")
