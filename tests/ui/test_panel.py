"""The jobs panel as a user meets it: what runs, what waits, what became of it, and what to do."""

from __future__ import annotations

import json
import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.ui.lab import DARK, Lab
from tests.ui.old_jobs import NOTEBOOKS, add_old_jobs
from tests.ui.steps import (
    END_TIMEOUT,
    at_most,
    dialog,
    open_notebook,
    outputs,
    row,
    send_button,
    show,
    submit,
    toast,
    wait_until,
)

UNTIL_TOLD = """import pathlib, time
while not pathlib.Path('go').exists():
    time.sleep(0.05)
print('went on')"""
"""A cell that runs until the test puts a file beside the notebook."""

ONE_SLOT = {"variables": {"JUPYTER_TO_JOB_CAPACITY": "cpu=1,memory=4Gi"}}
"""A machine that runs one job at a time."""


def badge(page: Page) -> Locator:
    return page.locator("li.lm-TabBar-tab[data-id='jupyter-to-job-jobs']")


def act(page: Page, line: Locator, label: str) -> None:
    """Choose an action from a job's menu."""
    line.get_by_role("button", name="More actions").click()
    page.get_by_role("menuitem", name=label, exact=True).click()


def ended(line: Locator, how: str) -> None:
    expect(line.get_by_text(re.compile(f"^{how} after"))).to_be_visible(timeout=END_TIMEOUT)


def delivered(line: Locator) -> None:
    """Wait until the result can be opened."""
    button = line.get_by_role("button", name=re.compile("^Open the result"))
    expect(button).to_be_visible(timeout=END_TIMEOUT)


@pytest.mark.parametrize("lab", [ONE_SLOT], indirect=True)
def test_jobs_wait_run_and_end(
    lab: Lab, open_lab: Callable[[], Page], screenshot: Callable[[str], None]
) -> None:
    lab.write("reports/train.ipynb", "print('began')", UNTIL_TOLD)
    lab.write("reports/broken.ipynb", "1 / 0")
    page = open_lab()
    panel = show(page)
    expect(panel.get_by_text("No jobs yet.")).to_be_visible()
    expect(panel.get_by_text("click SUBMIT JOB in its toolbar")).to_be_visible()
    page.get_by_role("tab", name="File Browser").click()

    first = submit(page, open_notebook(page, "reports", "train.ipynb"))
    second = page.evaluate(
        "async () => (await jupyterapp.commands.execute('jupyter-to-job:submit',"
        " {path: 'reports/broken.ipynb', ask: false})).name"
    )
    third = page.evaluate(
        "async () => (await jupyterapp.commands.execute('jupyter-to-job:submit',"
        " {path: 'reports/train.ipynb', name: 'third', ask: false})).name"
    )
    show(page)
    running, waiting, last = row(panel, first), row(panel, second), row(panel, third)
    expect(running.get_by_role("progressbar")).to_have_attribute(
        "aria-valuetext", "cell 2 of 2", timeout=END_TIMEOUT
    )
    expect(running.get_by_text("Running")).to_be_visible()
    expect(waiting.get_by_text("Queued: next in line")).to_be_visible()
    expect(last.get_by_text("Queued: place 2 in line")).to_be_visible()
    expect(badge(page)).to_have_attribute("data-unfinished", "3")
    expect(page.get_by_role("tab", name="Jobs (3 unfinished)")).to_be_visible()
    screenshot("panel-running")

    last.get_by_role("button", name=f"Cancel {third}").click()  # nothing to lose: no question
    expect(last.get_by_text("Cancelled", exact=True)).to_be_visible()
    expect(badge(page)).to_have_attribute("data-unfinished", "2")

    (lab.root / "reports" / "go").touch()
    ended(running, "Succeeded")
    ended(waiting, "Failed")
    expect(
        waiting.get_by_text("Cell 1 (In [1]) raised ZeroDivisionError: division by zero.")
    ).to_be_visible()
    expect(running.get_by_text(re.compile(r"^Used [0-9.]+ of 1 CPU, .+ of 2 GiB"))).to_be_visible()
    with page.expect_download() as saved:
        running.get_by_role("button", name="More actions").click()
        page.get_by_role("menuitem", name="Download as HTML").click()
    assert saved.value.suggested_filename == f"{first}.html"
    assert "began" in saved.value.path().read_text()
    expect(badge(page)).to_have_attribute("data-unfinished", "")
    screenshot("panel-ended")
    page.set_viewport_size({"width": 700, "height": 450})  # as 200 % zoom does
    fits = "panel => panel.scrollWidth <= panel.clientWidth"
    wait_until(lambda: panel.evaluate(fits), "the panel needs to be scrolled sideways")
    expect(waiting.get_by_role("button", name="More actions")).to_be_visible()
    screenshot("panel-zoomed")
    page.set_viewport_size({"width": 1400, "height": 900})

    panel.get_by_role("combobox", name="Which jobs").select_option("Cancelled")
    expect(panel.get_by_role("article")).to_have_count(1)
    panel.get_by_role("combobox", name="Which jobs").select_option("Failed")
    expect(panel.get_by_role("article")).to_have_count(1)
    panel.get_by_role("searchbox", name="Search jobs").fill("raised")
    expect(panel.get_by_role("article")).to_have_count(1)
    panel.get_by_role("searchbox", name="Search jobs").fill("nothing is like this")
    expect(panel.get_by_text("No job matches.")).to_be_visible()
    panel.get_by_role("searchbox", name="Search jobs").fill("")
    panel.get_by_role("combobox", name="Which jobs").select_option("All jobs")
    panel.get_by_role("checkbox", name="Group by notebook").check()
    group = panel.get_by_role("button", name=re.compile("train.ipynb 2 jobs"))
    expect(group).to_have_attribute("aria-expanded", "true")
    group.click()
    expect(panel.get_by_role("article")).to_have_count(1)

    running_result = panel.get_by_role("button", name=re.compile("Open the result of broken"))
    running_result.click()
    result = page.locator(".jp-NotebookPanel:not(.lm-mod-hidden)")
    expect(result.get_by_text("ZeroDivisionError").first).to_be_visible()
    screenshot("panel-grouped")


@pytest.mark.parametrize("lab", [{"settings": DARK}], indirect=True)
def test_cancel_rerun_and_delete_ask_where_something_is_lost(
    lab: Lab, open_lab: Callable[[], Page], screenshot: Callable[[str], None]
) -> None:
    lab.write("reports/study.ipynb", "value = 1", "print(value)", UNTIL_TOLD, tags=("parameters",))
    page = open_lab()
    name = submit(page, open_notebook(page, "reports", "study.ipynb"))
    panel = show(page)
    line = row(panel, name)
    expect(line.get_by_text("cell 3 of 3")).to_be_visible(timeout=END_TIMEOUT)
    line.get_by_role("button", name=f"Cancel {name}").click()
    page.get_by_role("button", name="Go On Running").click()
    expect(line.get_by_text("Running")).to_be_visible()
    line.get_by_role("button", name=f"Cancel {name}").click()
    page.get_by_role("dialog").get_by_role("button", name="Cancel Job").click()
    ended(line, "Cancelled")
    result = lab.root / "reports" / f"{name}.ipynb"
    delivered(line)
    assert outputs(result) == "1\n", "what it wrote so far"

    (lab.root / "reports" / "go").touch()
    act(page, line, "Rerun with Changes…")
    expect(dialog(page).get_by_text(f"as it was frozen for {name}")).to_be_visible()
    section = dialog(page).locator("details").filter(has_text=re.compile("^Parameters"))
    section.locator("summary").click()
    section.get_by_label("value", exact=True).fill("42")
    screenshot("rerun-dark")
    send_button(page).click()
    expect(dialog(page)).to_have_count(0)
    again = panel.get_by_role("article").first.get_attribute("aria-label") or ""
    assert again != name
    ended(row(panel, again), "Succeeded")
    delivered(row(panel, again))
    assert outputs(lab.root / "reports" / f"{again}.ipynb") == "42\nwent on\n"

    act(page, row(panel, again), "Rerun")
    expect(panel.get_by_role("article")).to_have_count(3)
    third = panel.get_by_role("article").first.get_attribute("aria-label") or ""
    ended(row(panel, third), "Succeeded")
    delivered(row(panel, third))
    assert outputs(lab.root / "reports" / f"{third}.ipynb") == "42\nwent on\n"

    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    act(page, row(panel, again), "Copy Command")
    expect(toast(page, "Copied: jupyter-to-job submit")).to_be_visible()
    copied = page.evaluate("() => navigator.clipboard.readText()")
    assert copied.startswith("jupyter-to-job submit reports/study.ipynb -f small -d cpu")
    assert "-p value 42" in copied

    act(page, line, "Delete Job…")
    expect(page.get_by_role("dialog").get_by_text("A delivered notebook stays.")).to_be_visible()
    page.get_by_role("dialog").get_by_role("button", name="Delete Job").click()
    expect(line).to_have_count(0)
    assert result.exists()
    screenshot("panel-dark")


def test_the_keyboard_reaches_everything(lab: Lab, open_lab: Callable[[], Page]) -> None:
    lab.write("reports/a.ipynb", "print(1)")
    page = open_lab()
    names = page.evaluate(
        """async () => {
            const jobs = [];
            for (const name of ['one', 'two']) {
                jobs.push(await jupyterapp.commands.execute('jupyter-to-job:submit',
                    {path: 'reports/a.ipynb', name, ask: false}));
            }
            return jobs.map(({name}) => name);
        }"""
    )
    panel = show(page)
    delivered(row(panel, names[0]))
    delivered(row(panel, names[1]))
    panel.get_by_role("checkbox", name="Group by notebook").focus()
    page.keyboard.press("Tab")
    expect(row(panel, names[1]).get_by_role("button", name=names[1], exact=True)).to_be_focused()
    page.keyboard.press("ArrowDown")
    expect(row(panel, names[0]).get_by_role("button", name=names[0], exact=True)).to_be_focused()
    more = row(panel, names[0]).get_by_role("button", name="More actions")
    for action in ("Open the result of", "Submit the current version of"):
        page.keyboard.press("Tab")
        expect(row(panel, names[0]).get_by_role("button", name=action)).to_be_focused()
    page.keyboard.press("Tab")
    expect(more).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.get_by_role("menuitem", name="Show Logs")).to_be_visible()
    page.keyboard.press("Escape")
    expect(more).to_be_focused()

    # What goes does not take the keyboard with it.
    page.keyboard.press("Enter")
    page.keyboard.press("ArrowUp")
    page.keyboard.press("Enter")
    forget = page.get_by_role("dialog").get_by_role("button", name="Delete Job")
    forget.focus()
    page.keyboard.press("Enter")
    expect(row(panel, names[0])).to_have_count(0)
    expect(row(panel, names[1]).get_by_role("button", name=names[1], exact=True)).to_be_focused()


NO_EVENTS = """
from jupyter_server.auth.authorizer import Authorizer

class NoEvents(Authorizer):
    def is_authorized(self, handler, user, action, resource):
        return resource != "events"

c.ServerApp.authorizer_class = NoEvents
"""


@pytest.mark.parametrize("lab", [{"config": NO_EVENTS}], indirect=True)
def test_who_may_not_listen_is_told_and_refreshes(
    lab: Lab, open_lab: Callable[[], Page], screenshot: Callable[[str], None]
) -> None:
    lab.write("reports/a.ipynb", "print(1)")
    page = open_lab()
    panel = show(page)
    expect(panel.get_by_text("You are not allowed to listen to the events")).to_be_visible()
    name = page.evaluate(
        "async () => (await jupyterapp.commands.execute('jupyter-to-job:submit',"
        " {path: 'reports/a.ipynb', ask: false})).name"
    )
    result = lab.root / "reports" / f"{name}.ipynb"
    wait_until(result.exists, "nothing was delivered")
    expect(row(panel, name).get_by_text("Queued")).to_be_visible()
    panel.get_by_role("button", name="Refresh").click()
    ended(row(panel, name), "Succeeded")
    screenshot("panel-no-events")


MANY = 10_000
FRAMES = 120
SMOOTH = 50
"""Milliseconds that the page may take for a frame while a list of many is scrolled."""
AT_ONCE = 200
"""Milliseconds from a filter to what it leaves."""

SCROLL = """frames => new Promise(resolve => {
    const scroller = document.querySelector('.jp-ToJob-scroller');
    const took = [];
    let last = performance.now();
    const step = () => {
        const now = performance.now();
        took.push(now - last);
        last = now;
        scroller.scrollTop += 2000;
        took.length < frames ? requestAnimationFrame(step) : resolve(took.sort((a, b) => a - b));
    };
    requestAnimationFrame(step);
})"""
"""Scrolls two screens a frame, and returns how long the frames took, in order of that."""

TAKES = """([label, event, value]) => new Promise(resolve => {
    const field = document.querySelector(`.jp-ToJob-panel [aria-label="${label}"]`)
        ?? document.querySelector('.jp-ToJob-panel input[type=checkbox]');
    const kind = Object.getPrototypeOf(field);
    const began = performance.now();
    if (event === 'click') {
        field.click();
    } else {
        Object.getOwnPropertyDescriptor(kind, 'value').set.call(field, value);
        field.dispatchEvent(new Event(event, { bubbles: true }));
    }
    requestAnimationFrame(() => setTimeout(() => resolve(performance.now() - began)));
})"""
"""Changes a field as a user does, and returns how long it takes until that is shown."""


@pytest.mark.timeout(900)
def test_ten_thousand_jobs_are_as_smooth_as_fifty(
    lab: Lab, open_lab: Callable[[], Page], screenshot: Callable[[str], None]
) -> None:
    lab.write("reports/a.ipynb", "print(1)")
    page = open_lab()
    name = submit(page, open_notebook(page, "reports", "a.ipynb"))
    panel = show(page)
    delivered(row(panel, name))
    add_old_jobs(lab, name, MANY)
    open_lab()
    show(page)
    search = panel.get_by_role("searchbox", name="Search jobs")
    search.fill("study-7.ipynb")
    older = panel.get_by_role("button", name="Search Older Jobs")
    expect(older).to_be_visible()
    while older.count() > 0:  # 500 at a time
        with page.expect_response(re.compile("/api/jobs")):
            older.click()
        expect(panel.locator("[aria-disabled=true]")).to_have_count(0)
    expect(panel.locator("li[aria-setsize]").first).to_have_attribute(
        "aria-setsize", str(MANY // NOTEBOOKS)
    )
    search.fill("")
    expect(panel.locator("li[aria-setsize]").first).to_have_attribute("aria-setsize", str(MANY + 1))
    frames = page.evaluate(SCROLL, FRAMES)
    assert panel.locator("li[data-key]").count() < 100, "only what is in sight is in the page"
    figures = {
        "a frame, usually": frames[FRAMES // 2],
        "a frame, of twenty the longest": frames[FRAMES * 19 // 20],
        "to filter": page.evaluate(TAKES, ["Search jobs", "input", "study-3.ipynb"]),
        "to filter no more": page.evaluate(TAKES, ["Search jobs", "input", ""]),
        "to group": page.evaluate(TAKES, ["Group by notebook", "click", ""]),
    }
    panel.locator(".jp-ToJob-scroller").evaluate("list => { list.scrollTop = 0; }")
    expect(panel.get_by_role("button", name=re.compile(r"a\.ipynb 1 job"))).to_be_visible()
    screenshot("panel-many")
    (lab.base / "figures.json").write_text(json.dumps(figures))
    for what, took in figures.items():
        assert took < at_most(SMOOTH if "frame" in what else AT_ONCE), figures
