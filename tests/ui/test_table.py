"""The table of all jobs: to sort, search, choose columns, and act on several at once."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Locator, Page, expect

from tests.ui.lab import NOTHING_RUNS, Lab
from tests.ui.old_jobs import NOTEBOOKS, add_old_jobs
from tests.ui.steps import (
    END_TIMEOUT,
    THEMES,
    at_most,
    choose_theme,
    open_notebook,
    row,
    show,
    submit,
    wait_until,
)
from tests.ui.test_pressed import let_go, pressed

SUBMIT = "async job => (await jupyterapp.commands.execute('jupyter-to-job:submit', job)).name"
SHOW_TABLE = (
    "async args => { await jupyterapp.commands.execute('jupyter-to-job:show-table', args); }"
)


def table(page: Page) -> Locator:
    return page.get_by_role("region", name="Table of jobs")


def grid(page: Page) -> Locator:
    return table(page).get_by_role("grid", name="Jobs")


def line(page: Page, name: str) -> Locator:
    return grid(page).get_by_role("row", name=name, exact=True)


def lines(page: Page) -> Locator:
    return grid(page).locator("[data-name]")


def names(page: Page) -> list[str]:
    """The jobs from top to bottom."""
    found: list[str] = lines(page).evaluate_all(
        "rows => rows.sort((a, b) => a.ariaRowIndex - b.ariaRowIndex).map(r => r.dataset.name)"
    )
    return found


def action(page: Page, label: str) -> Locator:
    selected = table(page).get_by_role("group", name="Selected jobs")
    return selected.get_by_role("button", name=re.compile(rf"^{label}( \(\d+\))?$"))


def heading(page: Page, label: str) -> Locator:
    return grid(page).get_by_role("columnheader", name=label)


def submit_all(page: Page, *jobs: dict[str, Any]) -> list[str]:
    """Submit without a dialog, and return the names."""
    return [
        page.evaluate(SUBMIT, {"path": "reports/train.ipynb", "ask": False, **job}) for job in jobs
    ]


@pytest.mark.parametrize("lab", [NOTHING_RUNS], indirect=True)
def test_sort_search_and_choose_columns(
    lab: Lab, open_lab: Callable[[], Page], screenshot: Callable[[str], None]
) -> None:
    lab.write("reports/train.ipynb", "rate = 1", "print(rate)", tags=("parameters",))
    lab.write("reports/clean.ipynb", "print(1)")
    page = open_lab()
    fast, slow, middle, other = submit_all(
        page,
        {"name": "fast", "parameters": {"rate": 0.5, "epochs": 3}},
        {"name": "slow", "parameters": {"rate": 0.01, "epochs": 3}},
        {"name": "middle", "parameters": {"rate": 0.1, "epochs": 3}},
        {"name": "other", "path": "reports/clean.ipynb"},
    )
    panel = show(page)
    expect(row(panel, fast).get_by_text("rate=0.5", exact=True)).to_be_visible()
    expect(row(panel, fast).locator("time")).to_have_text(re.compile(r"\d\d:\d\d"))
    expect(row(panel, other).locator(".jp-ToJob-difference")).to_have_count(0)
    panel.get_by_role("searchbox", name="Search jobs").fill("rate=0.01")
    expect(panel.get_by_role("article")).to_have_count(1)
    panel.get_by_role("searchbox", name="Search jobs").fill("")

    panel.get_by_role("button", name="Table").click()
    expect(lines(page)).to_have_count(4)
    assert names(page) == [other, middle, slow, fast], "the newest first"
    expect(line(page, slow)).to_contain_text("rate=0.01")
    expect(line(page, slow)).to_contain_text("small · cpu")
    expect(line(page, slow)).to_contain_text("Succeeded")
    expect(table(page).get_by_text("4 jobs")).to_be_visible()
    screenshot("table")

    table(page).get_by_role("button", name="Columns").click()
    table(page).get_by_role("checkbox", name="rate").check()
    table(page).get_by_role("checkbox", name="Started").uncheck()
    screenshot("table-columns")
    page.keyboard.press("Escape")
    expect(table(page).get_by_role("checkbox", name="rate")).to_have_count(0)
    expect(heading(page, "Started")).to_have_count(0)
    sort = heading(page, "rate").get_by_role("button")
    sort.click()
    expect(heading(page, "rate")).to_have_attribute("aria-sort", "ascending")
    assert names(page) == [slow, middle, fast, other]
    sort.click()
    assert names(page) == [fast, middle, slow, other]

    table(page).get_by_role("searchbox", name="Search jobs").fill("rate=0.1")
    expect(lines(page)).to_have_count(1)
    expect(table(page).get_by_text("1 of 4 jobs")).to_be_visible()
    table(page).get_by_role("searchbox", name="Search jobs").fill("nothing like this")
    expect(table(page).get_by_text("No job matches.")).to_be_visible()
    table(page).get_by_role("searchbox", name="Search jobs").fill("")
    which = table(page).get_by_role("combobox", name="Which notebook")
    which.select_option("reports/clean.ipynb")
    expect(lines(page)).to_have_count(1)
    which.select_option("All notebooks")

    # Columns are kept for the user, and order and filter for the layout.
    wait_until(lambda: "parameter.rate" in kept_settings(lab), "the columns are not kept")
    page.goto(page.url.replace("?reset", ""))
    page.wait_for_function("() => window.jupyterapp !== undefined")
    page.evaluate("async () => { await window.jupyterapp.restored; }")
    page.evaluate(SHOW_TABLE, {})
    expect(heading(page, "rate")).to_be_visible()
    expect(lines(page)).to_have_count(4)


def kept_settings(lab: Lab) -> str:
    """What JupyterLab has written of the table's settings."""
    return "".join(
        path.read_text() for path in lab.base.glob("settings/**/table.jupyterlab-settings")
    )


@pytest.mark.parametrize("lab", [NOTHING_RUNS], indirect=True)
def test_several_jobs_at_once(
    lab: Lab, open_lab: Callable[[], Page], screenshot: Callable[[str], None]
) -> None:
    lab.write("reports/train.ipynb", "print(1)")
    page = open_lab()
    one, two, three, four = submit_all(
        page, *({"name": name} for name in ("one", "two", "three", "four"))
    )
    page.evaluate(SHOW_TABLE, {})
    expect(lines(page).filter(has_text="Succeeded")).to_have_count(4, timeout=END_TIMEOUT)
    for label in ("Open", "Rerun", "Cancel", "Delete…"):
        expect(action(page, label)).to_have_attribute("aria-disabled", "true")

    line(page, four).get_by_text("Succeeded").click()
    line(page, two).get_by_text("Succeeded").click(modifiers=["Shift"])
    expect(table(page).get_by_role("status")).to_have_text("3 selected")
    line(page, three).get_by_role("checkbox").click()
    expect(line(page, three)).to_have_attribute("aria-selected", "false")
    expect(action(page, "Rerun")).to_have_text("Rerun (2)")
    expect(action(page, "Cancel")).to_have_attribute("aria-disabled", "true")
    screenshot("table-selected")
    action(page, "Rerun").click()
    expect(lines(page)).to_have_count(6)

    table(page).get_by_role("searchbox", name="Search jobs").fill("three")
    table(page).get_by_role("checkbox", name="Select all shown jobs").check()
    table(page).get_by_role("searchbox", name="Search jobs").fill("")
    expect(table(page).get_by_role("status")).to_have_text("1 selected")
    line(page, one).get_by_role("checkbox").check()
    line(page, one).get_by_text("Succeeded").click(button="right")
    page.get_by_role("menuitem", name="Delete… (2)").click()
    question = page.get_by_role("dialog")
    expect(question.get_by_text("Delete 2 jobs?")).to_be_visible()
    question.get_by_role("button", name="Keep Them").click()
    expect(lines(page)).to_have_count(6)
    action(page, "Delete…").click()
    question.get_by_role("button", name="Delete 2 Jobs").click()
    expect(lines(page)).to_have_count(4)
    expect(line(page, three)).to_have_count(0)

    line(page, two).get_by_role("button", name="More actions").click()
    expect(page.get_by_role("menuitem", name="Show Logs")).to_be_visible()
    page.keyboard.press("Escape")


@pytest.mark.parametrize("lab", [NOTHING_RUNS], indirect=True)
def test_the_keyboard_reaches_everything_in_the_table(
    lab: Lab, open_lab: Callable[[], Page]
) -> None:
    lab.write("reports/train.ipynb", "print(1)")
    page = open_lab()
    one, two, three = submit_all(page, *({"name": name} for name in ("one", "two", "three")))
    page.evaluate(SHOW_TABLE, {})
    expect(lines(page).filter(has_text="Succeeded")).to_have_count(3, timeout=END_TIMEOUT)
    line(page, three).focus()
    page.keyboard.press("ArrowDown")
    expect(line(page, two)).to_be_focused()
    page.keyboard.press("Space")
    expect(line(page, two)).to_have_attribute("aria-selected", "true")
    page.keyboard.press("Shift+ArrowDown")
    expect(line(page, one)).to_be_focused()
    expect(table(page).get_by_role("status")).to_have_text("2 selected")
    page.keyboard.press("Home")
    expect(line(page, three)).to_be_focused()
    page.keyboard.press("Control+a")
    expect(table(page).get_by_role("status")).to_have_text("3 selected")
    page.keyboard.press("Escape")
    expect(table(page).get_by_role("status")).to_have_text("")
    for control in ("Select three", three, "More actions"):
        page.keyboard.press("Tab")
        name = re.compile(f"^{re.escape(control)}")
        reached = line(page, three).locator("button:focus, input:focus")
        expect(reached).to_have_accessible_name(name)
    page.keyboard.press("Enter")
    expect(page.get_by_role("menuitem", name="Show Logs")).to_be_visible()
    page.keyboard.press("Escape")
    page.keyboard.press("ArrowDown")
    expect(line(page, two)).to_be_focused()

    # What goes does not take the keyboard with it.
    page.keyboard.press("Space")
    page.keyboard.press("Delete")
    page.get_by_role("dialog").get_by_role("button", name="Delete 1 Job").click()
    expect(line(page, two)).to_have_count(0)
    expect(lines(page)).to_have_count(2)


@pytest.mark.parametrize("lab", [NOTHING_RUNS], indirect=True)
def test_the_table_for_everybody(
    lab: Lab, open_lab: Callable[[], Page], screenshot: Callable[[str], None]
) -> None:
    lab.write("reports/train.ipynb", "rate = 1", tags=("parameters",))
    page = open_lab()
    jobs = ({"name": f"j{rate}", "parameters": {"rate": rate}} for rate in range(30))
    submit_all(page, *jobs)
    page.evaluate(SHOW_TABLE, {})
    expect(table(page).get_by_text("30 jobs")).to_be_visible()
    table(page).get_by_role("checkbox", name="Select all shown jobs").check()
    for theme in THEMES:
        choose_theme(page, theme)
        found = Axe().run(page, context=[".jp-ToJobTable"])
        assert found.violations_count == 0, found.generate_report()
        screenshot(f"table-{theme}")
    table(page).get_by_role("button", name="Columns").click()
    found = Axe().run(page, context=[".jp-ToJobTable"])
    assert found.violations_count == 0, found.generate_report()
    page.keyboard.press("Escape")
    page.set_viewport_size({"width": 700, "height": 450})  # as 200 % zoom does
    fits = "table => table.scrollWidth <= table.clientWidth"
    wait_until(lambda: table(page).evaluate(fits), "the page needs to be scrolled sideways")
    expect(action(page, "Delete…")).to_be_in_viewport(ratio=0.9)
    screenshot("table-zoomed")


@pytest.mark.parametrize("lab", [NOTHING_RUNS], indirect=True)
def test_no_control_of_the_table_moves_while_news_arrive(
    lab: Lab, open_lab: Callable[[], Page]
) -> None:
    lab.write("reports/train.ipynb", "print(1)")
    page = open_lab()
    (first,) = submit_all(page, {"name": "first"})
    page.evaluate(SHOW_TABLE, {})
    expect(line(page, first).get_by_text("Succeeded")).to_be_visible(timeout=END_TIMEOUT)
    controls = table(page).locator("button, input, select").filter(visible=True).element_handles()
    assert len(controls) >= 20
    for index, control in enumerate(controls):
        with pressed(page, control):
            with page.expect_response(re.compile(r"/api/jobs\?name=")):
                (added,) = submit_all(page, {"name": f"news-{index}"})
            page.wait_for_timeout(200)  # in which the table would show it
            expect(line(page, added)).to_have_count(0)
        let_go(page)
        expect(line(page, added)).to_be_attached()
        expect(table(page).get_by_text(f"{index + 2} jobs")).to_be_visible()


MANY = 10_000
SMOOTH = 50
"""Milliseconds that the page may pause, at most."""

WATCH_PAUSES = """() => {
    window.pauses = [];
    new PerformanceObserver(list => list.getEntries().forEach(
        ({ duration }) => window.pauses.push(Math.round(duration)))).observe({ type: 'longtask' });
}"""
"""Notes each task of the page that takes longer than 50 ms."""

TAKE_PAUSES = """() => new Promise(done => requestAnimationFrame(() => setTimeout(() => {
    done(Math.max(0, ...window.pauses)); window.pauses = []; }, 50)))"""
"""Returns the longest pause since the last time."""

SCROLL = """() => new Promise(done => {
    const scroller = document.querySelector('.jp-ToJobTable-scroller');
    let frames = 0;
    const step = () => {
        scroller.scrollTop += 2000;
        (frames += 1) < 120 ? requestAnimationFrame(step) : done();
    };
    requestAnimationFrame(step);
})"""
"""Scrolls two screens a frame."""


@pytest.mark.timeout(900)
def test_ten_thousand_jobs_without_a_pause(
    lab: Lab, open_lab: Callable[[], Page], screenshot: Callable[[str], None]
) -> None:
    lab.write("reports/a.ipynb", "print(1)")
    page = open_lab()
    name = submit(page, open_notebook(page, "reports", "a.ipynb"))
    opening = row(show(page), name).get_by_role("button", name=re.compile("^Open the result"))
    expect(opening).to_be_visible(timeout=END_TIMEOUT)
    add_old_jobs(lab, name, MANY)
    open_lab()
    page.evaluate(WATCH_PAUSES)
    figures: dict[str, int] = {}

    def note(what: str) -> None:
        figures[what] = page.evaluate(TAKE_PAUSES)

    page.evaluate(SHOW_TABLE, {})
    expect(lines(page).first).to_be_visible()
    note("to open")
    expect(table(page).get_by_text("10,001 jobs")).to_be_visible(timeout=END_TIMEOUT)
    expect(table(page).get_by_text("Loading older jobs…")).to_have_count(0)
    note("to load all")
    for label in ("Name", "Notebook", "State", "Parameters that differ", "Submitted", "Duration"):
        heading(page, label).get_by_role("button").click()
        note(f"to sort by {label}")
    page.evaluate(SCROLL)
    note("to scroll")
    assert lines(page).count() < 120, "only what is in sight is in the page"
    search = table(page).get_by_role("searchbox", name="Search jobs")
    search.press_sequentially("study-7.ipynb rate=0.3")
    note("to search")
    expect(lines(page).first).to_contain_text("study-7.ipynb")
    search.fill("")
    note("to search no more")
    which = table(page).get_by_role("combobox", name="Which notebook")
    which.select_option("reports/study-3.ipynb")
    expect(grid(page)).to_have_attribute("aria-rowcount", str(MANY // NOTEBOOKS + 1))
    note("to filter")
    which.select_option("All notebooks")
    table(page).get_by_role("checkbox", name="Select all shown jobs").check()
    expect(table(page).get_by_role("status")).to_have_text("10,001 selected")
    note("to select all")
    lines(page).first.press("End")
    page.keyboard.press("PageUp")
    note("to page")
    screenshot("table-many")
    (lab.base / "figures.json").write_text(json.dumps(figures))
    for took in figures.values():
        assert took < at_most(SMOOTH), figures
