"""A pressed pointer: nothing moves under it, whatever arrives before it is released."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from playwright.sync_api import ElementHandle, Page, Route, expect

from tests.ui.lab import NOTHING_RUNS, Lab
from tests.ui.steps import (
    END_TIMEOUT,
    button,
    dialog,
    open_notebook,
    row,
    send_button,
    show,
    submit,
    told_name,
    until,
)

SUBMIT_FILE = """async name => (await jupyterapp.commands.execute('jupyter-to-job:submit',
    { path: 'reports/broken.ipynb', name, ask: false })).name"""
"""Submits without a dialog, so that the panel has news."""

CONTROLS = "button:not(.jp-Dialog-close-button), input:enabled, summary"
"""Those of the dialog, apart from JupyterLab's own that closes it when it is pressed."""

BROKEN = "raise ValueError('one of the many words ' * 20)"
"""A cell whose message is longer than the four lines that a row shows."""


FRAMES = "() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))"
"""Waits until the page has been drawn."""


@contextmanager
def pressed(page: Page, control: ElementHandle | None) -> Iterator[None]:
    """Press the pointer on a control, and hold it there; at the end nothing may have moved."""
    assert control is not None
    control.scroll_into_view_if_needed()
    page.evaluate(FRAMES)
    place = control.bounding_box()
    assert place is not None
    page.mouse.move(place["x"] + place["width"] / 2, place["y"] + min(place["height"] / 2, 20))
    page.mouse.down()
    yield
    page.evaluate(FRAMES)
    now = control.bounding_box()
    assert now == place, f"{control.evaluate('c => c.outerHTML')} moved while it was pressed"


def let_go(page: Page) -> None:
    """Release the pointer away from what it was pressed on, which is no click."""
    page.mouse.move(2, 2)
    page.mouse.up()
    if page.locator("select:focus").count() > 0:
        page.keyboard.press("Escape")  # it has opened its list


def test_one_click_opens_a_failed_job_with_a_long_message(
    lab: Lab, open_lab: Callable[[], Page], screenshot: Callable[[str], None]
) -> None:
    lab.write("reports/broken.ipynb", BROKEN)
    page = open_lab()
    name = submit(page, open_notebook(page, "reports", "broken.ipynb"))
    panel = show(page)
    line = row(panel, name)
    panel.get_by_role("searchbox").click()  # the row does not have the focus
    opening = line.get_by_role("button", name=re.compile("^Open the result"))
    expect(opening).to_be_visible(timeout=END_TIMEOUT)
    with pressed(page, opening.element_handle()):
        pass
    page.mouse.up()
    result = page.locator(".jp-NotebookPanel:not(.lm-mod-hidden)")
    expect(result.get_by_text("ValueError").first).to_be_visible()

    message = line.locator(".jp-ToJob-remark")
    cut = "p => p.scrollHeight > p.clientHeight"
    assert message.evaluate(cut)
    screenshot("panel-long-message")
    line.get_by_role("button", name=f"Show all of what {name} says").click()
    assert not message.evaluate(cut)
    line.get_by_role("button", name=f"Show less of what {name} says").click()
    assert message.evaluate(cut)


@pytest.mark.parametrize("lab", [NOTHING_RUNS], indirect=True)
def test_no_control_of_the_panel_moves_while_news_arrive(
    lab: Lab, open_lab: Callable[[], Page]
) -> None:
    lab.write("reports/broken.ipynb", BROKEN)
    page = open_lab()
    panel = show(page)
    first = page.evaluate(SUBMIT_FILE, "first")
    expect(row(panel, first).get_by_text(re.compile("^Succeeded"))).to_be_visible()
    controls = panel.locator("button, input, select").element_handles()
    assert len(controls) >= 5
    for index, control in enumerate(controls):
        with pressed(page, control):
            with page.expect_response(re.compile(r"/api/jobs\?name=")):
                added = page.evaluate(SUBMIT_FILE, f"news-{index}")
            expect(row(panel, added)).to_have_count(0)
        let_go(page)
        expect(row(panel, added)).to_be_visible()
        expect(row(panel, added).get_by_text(re.compile("^Succeeded"))).to_be_visible()


def test_no_control_of_the_panel_moves_while_news_are_announced(
    lab: Lab, open_lab: Callable[[], Page]
) -> None:
    lab.write("reports/broken.ipynb", "import time; time.sleep(600)")
    page = open_lab()
    panel = show(page)
    first = page.evaluate(SUBMIT_FILE, "first")
    expect(row(panel, first).get_by_role("progressbar")).to_be_visible(timeout=END_TIMEOUT)
    more = row(panel, first).get_by_role("button", name="More actions")
    with pressed(page, more.element_handle()):
        added = page.evaluate(SUBMIT_FILE, "added")
        spoken = panel.locator(".jp-ToJob-spoken")
        expect(spoken).to_contain_text(f"{added}: Running", timeout=END_TIMEOUT)
    let_go(page)
    expect(row(panel, added)).to_be_visible()


@pytest.mark.parametrize("lab", [NOTHING_RUNS], indirect=True)
def test_no_control_of_the_dialog_moves_while_answers_arrive(
    lab: Lab, open_lab: Callable[[], Page]
) -> None:
    lab.write("reports/study.ipynb", "rate = 1  # how fast", "print(rate)", tags=("parameters",))
    page = open_lab()
    panel = open_notebook(page, "reports", "study.ipynb")
    held: list[Route] = []
    page.route(re.compile("/api/(flavors|preflight)"), lambda route: held.append(route))
    button(panel).click()
    with pressed(page, send_button(page).element_handle()):
        until(page, lambda: held, "the catalog was not asked for")
        with page.expect_response(re.compile("/api/flavors")):
            held.pop().continue_()
    page.mouse.up()
    page.unroute_all()  # what was held goes on
    told_name(page)  # the click has sent
    expect(dialog(page)).to_have_count(0)

    page.route(re.compile("/api/preflight"), lambda route: held.append(route))
    held.clear()
    button(panel).click()
    expect(dialog(page).get_by_role("radio").first).to_be_visible()
    until(page, lambda: held, "nothing was asked")
    held.pop().continue_()
    expect(dialog(page).get_by_text("Checking…")).to_have_count(0)
    for summary in dialog(page).locator("summary").all():
        summary.click()
    typed = dialog(page).get_by_label("Name", exact=True)
    controls = dialog(page).locator(CONTROLS).element_handles()
    assert len(controls) >= 12
    for index, control in enumerate(controls):
        typed.fill(f"name {index}")
        until(page, lambda: held, "nothing was asked")
        with pressed(page, control):
            answer(page, held.pop(), 6 * (index % 2))
        let_go(page)
        expect(dialog(page).locator(".jp-ToJobDialog-problem")).to_have_count(6 * (index % 2))


def answer(page: Page, route: Route, count: int) -> None:
    """Answer preflight with so many problems."""
    problems: list[dict[str, Any]] = [
        {"code": "x", "message": f"Problem {number}.", "hint": "", "blocking": False}
        for number in range(count)
    ]
    response = route.fetch()
    with page.expect_response(re.compile("/api/preflight")):
        route.fulfill(json={**response.json(), "problems": problems})
