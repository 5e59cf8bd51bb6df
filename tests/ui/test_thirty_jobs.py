"""Thirty jobs in panel, table and details: in each theme, at 200 %, by keys alone, in Chinese."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from functools import partial

import pytest
from playwright.sync_api import Locator, Page, ViewportSize, expect

from tests.ui.lab import Lab
from tests.ui.old_jobs import add_old_jobs
from tests.ui.steps import END_TIMEOUT, THEMES, choose_theme, visit, wait_until
from tests.ui.test_details import SHOW as SHOW_DETAILS
from tests.ui.test_details import details, section
from tests.ui.test_everyone import (
    CUT_OFF,
    MACHINE,
    PANEL,
    SHOW_PANEL,
    SUBMIT,
    assert_accessible,
    assert_reachable,
    jobs_in_every_state,
)
from tests.ui.test_keyboard import press, press_until
from tests.ui.test_languages import assert_translated
from tests.ui.test_table import SHOW_TABLE, action, line, lines, table

COUNT = 30
TABLE = ".jp-ToJobTable"
DETAILS = ".jp-MainAreaWidget:not(.lm-mod-hidden) > .jp-ToJob-details"
ZOOMED: ViewportSize = {"width": 640, "height": 400}
"""What 200 % leaves of a window of 1280 by 800."""
USUAL: ViewportSize = {"width": 1400, "height": 900}
CLOSE_ALL = "() => jupyterapp.commands.execute('application:close-all')"
CHINESE = {"locale": "zh_CN"}


def thirty_jobs(lab: Lab, open_lab: Callable[[], Page]) -> tuple[Page, dict[str, str]]:
    """Have one job or more in each state, and older ones; return their names by state."""
    jobs = jobs_in_every_state(lab, open_lab())
    add_old_jobs(lab, jobs["succeeded"], COUNT - len(jobs))
    page = open_lab()
    page.evaluate(SHOW_PANEL)
    expect(page.locator(PANEL).get_by_role("article", name=jobs["held"])).to_be_attached()
    return page, jobs


def show_table(page: Page) -> None:
    page.evaluate(SHOW_TABLE, {})
    expect_all(page)


def expect_all(page: Page) -> None:
    """Wait for the table; rows out of sight are not in the page."""
    grid = page.locator(TABLE).get_by_role("grid")
    expect(grid).to_have_attribute("aria-rowcount", str(COUNT + 1))


def show_details(page: Page, name: str) -> Locator:
    page.evaluate(SHOW_DETAILS, name)
    view = page.locator(DETAILS)
    expect(view.get_by_role("heading", name=name)).to_be_visible()
    expect(view.get_by_text("sha256")).to_be_visible(timeout=END_TIMEOUT)  # its record is there
    return view


def is_whole(view: Locator) -> bool:
    """Tell whether nothing of a view is cut off."""
    return bool(view.evaluate(CUT_OFF) == [])


@pytest.mark.timeout(1200)
@pytest.mark.parametrize("lab", [MACHINE], indirect=True)
def test_in_each_theme_and_size(
    lab: Lab, open_lab: Callable[[], Page], screenshot: Callable[[str], None]
) -> None:
    page, jobs = thirty_jobs(lab, open_lab)
    show_table(page)
    table(page).get_by_role("checkbox", name="Select all shown jobs").check()
    for theme in THEMES:
        choose_theme(page, theme)
        assert_accessible(page, PANEL, TABLE)
        screenshot(f"thirty-table-{theme}")
    page.set_viewport_size(ZOOMED)
    fits = "table => table.scrollWidth <= table.clientWidth"
    wait_until(lambda: table(page).evaluate(fits), "the table needs to be scrolled sideways")
    for label in ("Open", "Rerun", "Cancel", "Delete…"):
        expect(action(page, label)).to_be_in_viewport(ratio=0.9)
    screenshot("thirty-table-zoomed")
    page.set_viewport_size(USUAL)

    for state in ("failed", "running", "queued", "held"):
        view = show_details(page, jobs[state])
        for theme in THEMES:
            choose_theme(page, theme)
            assert_accessible(page, DETAILS)
            screenshot(f"thirty-{state}-{theme}")
        page.set_viewport_size(ZOOMED)
        wait_until(partial(is_whole, view), "the details are cut off")
        assert_reachable(view)
        screenshot(f"thirty-{state}-zoomed")
        page.set_viewport_size(USUAL)
    cancel_and_open_several(page, jobs)


def cancel_and_open_several(page: Page, jobs: dict[str, str]) -> None:
    """Each action takes those of the selected jobs to which it applies."""
    show_table(page)
    table(page).get_by_role("checkbox", name="Select all shown jobs").uncheck()
    # A kernel may start for a minute, which the first one's may have done by now.
    starting = page.evaluate(SUBMIT, {"path": "reports/slow/start.ipynb", "flavor": "small"})
    expect(line(page, starting)).to_contain_text("Starting", timeout=END_TIMEOUT)
    unfinished = [starting, *(jobs[state] for state in ("running", "queued"))]
    for name in (*unfinished, jobs["succeeded"], jobs["failed"]):
        line(page, name).get_by_role("checkbox").check()
    expect(table(page).get_by_role("status")).to_have_text("5 selected")
    expect(action(page, "Rerun")).to_have_text("Rerun (2)")
    action(page, "Cancel").click()
    page.get_by_role("dialog").get_by_role("button", name="Cancel 3 Jobs").click()
    for name in unfinished:
        expect(line(page, name)).to_contain_text("Cancelled", timeout=END_TIMEOUT)
    for name in unfinished:
        line(page, name).get_by_role("checkbox").uncheck()
    action(page, "Open").click()
    for name in (jobs["succeeded"], jobs["failed"]):
        expect(page.get_by_role("tab", name=f"{name}.ipynb")).to_be_attached()


@pytest.mark.timeout(1200)
@pytest.mark.parametrize("lab", [MACHINE], indirect=True)
def test_by_keys_alone_and_in_chinese(
    lab: Lab, open_lab: Callable[[], Page], screenshot: Callable[[str], None]
) -> None:
    page, jobs = thirty_jobs(lab, open_lab)
    failed = jobs["failed"]
    find_and_read_by_keys(page, failed)
    settings = lab.base / "settings" / "@jupyterlab" / "translation-extension"
    settings.mkdir(parents=True, exist_ok=True)
    (settings / "plugin.jupyterlab-settings").write_text(json.dumps(CHINESE))
    visit(page, lab.url)
    page.evaluate(SHOW_PANEL)
    expect(page.locator(PANEL).get_by_role("article", name=failed)).to_be_attached()
    assert_translated(page.locator(PANEL), CHINESE["locale"])
    show_table(page)
    assert_translated(page.locator(TABLE), CHINESE["locale"])
    screenshot("thirty-table-zh_CN")
    for state in ("failed", "running", "queued", "held"):
        view = show_details(page, jobs[state])
        for fold in view.locator(".jp-ToJob-fold").all():
            fold.click()
        expect(view.locator(".jp-ToJob-snapshot .jp-Cell").first).to_be_visible()
        assert_translated(view, CHINESE["locale"])
        screenshot(f"thirty-{state}-zh_CN")


def find_and_read_by_keys(page: Page, name: str) -> None:
    """From the panel to the table, there to a job, and to all that its details have."""
    page.evaluate(CLOSE_ALL)
    page.locator(PANEL).get_by_role("searchbox").focus()  # from here on there is no mouse
    press_until(page, "Shift+Tab", page.locator(PANEL).get_by_role("button", name="Table"))
    press(page, "Enter")
    expect_all(page)
    wait_until(
        lambda: table(page).evaluate("node => node.contains(document.activeElement)"),
        "the table has not got the focus",
    )
    # A row has the focus, or the search field if the rows were not there yet.
    press_until(page, "Shift+Tab", table(page).get_by_role("searchbox", name="Search jobs"))
    page.keyboard.type(name)
    expect(lines(page)).to_have_count(1)
    press_until(page, "Tab", line(page, name))
    press(page, "Space")
    expect(table(page).get_by_role("status")).to_have_text("1 selected")
    press_until(page, "Tab", line(page, name).get_by_role("button", name=name, exact=True))
    press(page, "Enter")

    view = details(page, name)
    expect(view).to_be_focused()
    cells = section(view, "What each cell used").get_by_role("button").last
    expect(cells).to_be_visible()  # else its place is passed before it is there
    expect(view.get_by_role("button", name="HTML without Code")).to_be_visible()
    press_until(page, "Tab", view.get_by_role("button", name="Open Source"))
    press_until(page, "Tab", view.get_by_role("button", name="More…"))
    press(page, "Enter", "ArrowDown")
    expect(page.locator(".lm-Menu-item.lm-mod-active")).to_be_visible()
    press(page, "Escape")
    expect(view.get_by_role("button", name="More…")).to_be_focused()
    press_until(page, "Tab", cells)
    press(page, "Enter")
    press_until(page, "Tab", view.get_by_role("button", name="HTML without Code"))
    press_until(page, "Tab", view.get_by_role("button", name="Log", exact=True))
    press(page, "Enter")
    log = view.get_by_role("region", name=f"Text that {name} printed")
    expect(log).to_be_visible()
    press(page, "Tab")
    expect(log).to_be_focused()
    expect(log).to_contain_text("could not convert string to float")
    press_until(page, "Tab", view.get_by_role("button", name="What changed since"))
    press(page, "Enter")
    expect(view.get_by_text(re.compile("is still as it was submitted"))).to_be_visible()
    press_until(page, "Tab", view.get_by_role("button", name="The notebook as it was submitted"))
    press(page, "Enter")
    expect(view.locator(".jp-ToJob-snapshot .jp-Cell").first).to_be_visible()
    press(page, "Tab")
    expect(view.get_by_role("region", name=f"Cells of {name}")).to_be_focused()
    assert_accessible(page, ".jp-ToJob-details-head", ".jp-ToJob-log", ".jp-ToJob-fold")
