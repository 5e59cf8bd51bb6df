"""What a user hears of jobs without looking at them: from the computer, on return, at the edge."""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import BrowserType, Locator, Page, expect

from tests.ui.chromium import WHOLE, WINDOW, be_patient, keep_screenshot, launch_options
from tests.ui.lab import NOTHING_RUNS, Lab
from tests.ui.steps import (
    END_TIMEOUT,
    jobs_panel,
    row,
    show,
    toast,
    visit,
    wait_until,
)

RECORDED = """() => {
    const { Notification } = window;
    window.recorded = [];
    window.asked = 0;
    window.Notification = class extends Notification {
        constructor(title, options) {
            super(title, options);
            window.recorded.push({ title, ...options, notification: this });
        }
        static requestPermission() {
            window.asked += 1;
            return Notification.requestPermission();
        }
    };
    document.hasFocus = () => window.inFront === true;
}"""
"""Keeps the browser's own notifications; the page is not in front unless a test says so."""

TOLD = "() => window.recorded.map(({ title, body, tag }) => ({ title, body, tag }))"
CLICK = "at => window.recorded.at(at).notification.onclick(new Event('click'))"
SUBMIT = """async job => (await jupyterapp.commands.execute('jupyter-to-job:submit',
    { ask: false, ...job })).name"""
SETTINGS = "settings/jupyter-to-job/submit.jupyterlab-settings"

UNTIL_TOLD = """import pathlib, time
while not pathlib.Path('go').exists():
    time.sleep(0.05)"""


def bell(page: Page) -> Locator:
    return jobs_panel(page).get_by_role("button", name="Desktop Notifications of Jobs")


def saved(lab: Lab) -> dict[str, object]:
    """What the settings file holds; comments of JupyterLab's own stand before it."""
    path = lab.base / SETTINGS
    text = path.read_text() if path.exists() else "{}"
    values: dict[str, object] = {}
    with contextlib.suppress(json.JSONDecodeError):  # JupyterLab is writing it
        values = json.loads(re.sub(r"^\s*//.*$", "", text, flags=re.MULTILINE))
    return values


def told(page: Page, count: int) -> list[dict[str, str]]:
    """Wait for so many notifications of the computer."""
    page.wait_for_function(f"() => window.recorded.length >= {count}", timeout=END_TIMEOUT)
    found: list[dict[str, str]] = page.evaluate(TOLD)
    assert len(found) == count, found
    return found


@pytest.fixture
def whole_page(browser_type: BrowserType) -> Iterator[Page]:
    """A page of the whole browser: the shell denies notifications of the computer."""
    browser = browser_type.launch(**launch_options(WHOLE))
    context = be_patient(browser.new_context(**WINDOW))
    context.add_init_script(f"({RECORDED})()")
    yield context.new_page()
    browser.close()


def test_the_computer_tells_of_an_end_and_a_click_leads_there(lab: Lab, whole_page: Page) -> None:
    lab.write("reports/broken.ipynb", "raise ValueError('the token is 1234')")
    lab.write("reports/fine.ipynb", "1")
    page = whole_page
    page.context.grant_permissions(["notifications"])
    visit(page, lab.url)
    show(page)
    expect(bell(page)).to_have_attribute("aria-pressed", "false")
    page.evaluate(SUBMIT, {"path": "reports/fine.ipynb"})
    expect(toast(page, "finished in")).to_be_visible(timeout=END_TIMEOUT)
    assert page.evaluate("() => [window.asked, window.recorded.length]") == [0, 0]

    bell(page).click()
    expect(bell(page)).to_have_attribute("aria-pressed", "true")
    expect(toast(page, "Your computer tells you")).to_be_visible()
    keep_screenshot(page, "bell-on")
    wait_until(lambda: saved(lab).get("desktopNotifications") == "away", "it is not kept")
    name = page.evaluate(SUBMIT, {"path": "reports/broken.ipynb"})
    (first,) = told(page, 1)
    assert first["title"] == f"{name} failed"
    assert first["body"] == "reports/broken.ipynb\nA cell raised an error"
    assert "1234" not in json.dumps(first)

    page.get_by_role("tab", name="File Browser").click()
    expect(jobs_panel(page)).to_be_hidden()
    page.evaluate(CLICK, 0)
    main = row(jobs_panel(page), name).locator("[data-main]")
    expect(main).to_be_focused()

    page.evaluate("() => { window.inFront = true; }")
    name = page.evaluate(SUBMIT, {"path": "reports/fine.ipynb"})
    expect(toast(page, f"{name} finished in")).to_be_visible(timeout=END_TIMEOUT)
    page.wait_for_timeout(2000)  # the time in which one would come
    told(page, 1)
    page.evaluate("() => { window.inFront = false; }")
    bell(page).click()
    expect(bell(page)).to_have_attribute("aria-pressed", "false")
    wait_until(lambda: saved(lab).get("desktopNotifications") == "never", "it is not kept")


def test_a_browser_that_says_no_is_explained(lab: Lab, whole_page: Page) -> None:
    page = whole_page
    visit(page, lab.url)
    show(page)
    assert page.evaluate("() => window.asked") == 0
    page.evaluate(
        "() => Object.defineProperty(Notification, 'permission', { get: () => 'denied' })"
    )
    bell(page).click()
    expect(toast(page, "The browser blocks notifications")).to_be_visible()
    expect(bell(page)).to_have_attribute("aria-pressed", "false")


def test_what_ended_meanwhile_is_told_once(
    lab: Lab, open_lab: Callable[[], Page], screenshot: Callable[[str], None]
) -> None:
    lab.write("reports/slow.ipynb", UNTIL_TOLD)
    lab.write("reports/broken.ipynb", UNTIL_TOLD, "1 / 0")
    page = open_lab()
    show(page)
    names = [
        page.evaluate(SUBMIT, {"path": f"reports/{stem}.ipynb"}) for stem in ("slow", "broken")
    ]
    for name in names:
        expect(row(jobs_panel(page), name).get_by_text("Running").first).to_be_visible(
            timeout=END_TIMEOUT
        )
    known = "() => Object.entries(localStorage).filter(([key]) => key.includes('known')).join()"
    for name in names:
        page.wait_for_function(f"() => ({known})().includes('{name}')")
    page.goto("about:blank")
    (lab.root / "reports" / "go").touch()
    wait_until(lambda: all(map(lab.is_delivered, names)), "the jobs did not end")

    visit(page, lab.url)
    missed = toast(page, "While you were away 2 jobs ended: 1 succeeded, 1 failed")
    expect(missed).to_be_visible()
    missed.hover()  # it stays while the mouse is on it
    expect(page.locator(".Toastify__toast")).to_have_count(1)
    center = page.locator(".jp-Notification-Status")
    expect(center).to_contain_text(re.compile("[1-9]"))  # JupyterLab may have news of its own
    screenshot("missed")
    missed.get_by_role("button", name="Show Jobs").click()
    expect(jobs_panel(page)).to_be_visible()
    page.wait_for_timeout(1000)  # what it knows is kept a moment later
    visit(page, lab.url)
    expect(show(page).get_by_role("article")).to_have_count(2)
    expect(toast(page, "While you were away")).to_have_count(0)


def test_the_status_bar_counts_and_opens_the_jobs(
    lab: Lab, open_lab: Callable[[], Page], screenshot: Callable[[str], None]
) -> None:
    lab.write("reports/slow.ipynb", UNTIL_TOLD)
    page = open_lab()
    item = page.locator("#jp-main-statusbar").get_by_role("button", name=re.compile("^Jobs: "))
    expect(item).to_have_count(0)
    page.evaluate(SUBMIT, {"path": "reports/slow.ipynb"})
    expect(item).to_have_text("1 running", timeout=END_TIMEOUT)
    screenshot("status-bar")
    item.press("Enter")
    expect(jobs_panel(page)).to_be_visible()
    (lab.root / "reports" / "go").touch()
    expect(item).to_be_hidden(timeout=END_TIMEOUT)


@pytest.mark.parametrize("lab", [NOTHING_RUNS], indirect=True)
def test_the_launcher_has_a_card(
    lab: Lab, open_lab: Callable[[], Page], screenshot: Callable[[str], None]
) -> None:
    page = open_lab()
    card = page.locator(".jp-LauncherCard").filter(has_text=re.compile("^Jobs$"))
    expect(card).to_be_visible()
    screenshot("launcher")
    card.click()
    expect(jobs_panel(page)).to_be_visible()


QUIET_ENDS = {
    "settings": {"jupyter-to-job/submit": {"toasts": "failures", "confirmDelete": False}},
    **NOTHING_RUNS,
}


@pytest.mark.parametrize("lab", [QUIET_ENDS], indirect=True)
def test_settings_quiet_the_page_and_its_questions(lab: Lab, open_lab: Callable[[], Page]) -> None:
    lab.write("reports/a.ipynb", "1")
    page = open_lab()
    panel = show(page)
    name = page.evaluate(SUBMIT, {"path": "reports/a.ipynb"})
    expect(row(panel, name).get_by_text(re.compile("^Succeeded"))).to_be_visible()
    expect(page.locator(".Toastify__toast")).to_have_count(0)
    page.evaluate(
        "async name => { await jupyterapp.commands.execute('jupyter-to-job:delete', { name }); }",
        name,
    )
    expect(row(panel, name)).to_have_count(0)
    expect(page.get_by_role("dialog")).to_have_count(0)


def test_the_settings_are_in_the_editor(
    lab: Lab, open_lab: Callable[[], Page], screenshot: Callable[[str], None]
) -> None:
    page = open_lab()
    page.evaluate(
        "async () => { await jupyterapp.commands.execute('settingeditor:open',"
        " { query: 'Jupyter to Job' }); }"
    )
    editor = page.locator("#setting-editor")
    choice = editor.locator("select[id$=_desktopNotifications]")
    expect(choice.locator("option")).to_have_text(
        ["Never", "While Jupyter is not in front", "Always"]
    )
    screenshot("settings")
    folder = editor.locator("input[id$=_resultsFolder]")
    folder.fill("results/{notebook}/")
    folder.press("Tab")
    wait_until(lambda: saved(lab).get("resultsFolder") == "results/{notebook}/", "it is not kept")
