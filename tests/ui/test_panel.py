"""The jobs panel as a user meets it: what runs, what waits, what became of it, and what to do."""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Callable

import psutil
import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Locator, Page, Request, expect

from tests.ui.lab import DARK, Lab
from tests.ui.steps import (
    END_TIMEOUT,
    at_most,
    dialog,
    open_notebook,
    outputs,
    send_button,
    submit,
    toast,
    wait_for_layout,
    wait_until,
)

UNTIL_TOLD = """import pathlib, time
while not pathlib.Path('go').exists():
    time.sleep(0.05)
print('went on')"""
"""A cell that runs until the test puts a file beside the notebook."""

ANSWERED_WITHIN = 1000
"""Milliseconds from the question for the jobs to the answer's end."""

ONE_SLOT = {"variables": {"JUPYTER_TO_JOB_CAPACITY": "cpu=1,memory=4Gi"}}
"""A machine that runs one job at a time."""


def show(page: Page) -> Locator:
    """Open the panel by its tab, as a user does."""
    page.get_by_role("tab", name=re.compile("^Jobs")).click()
    found = page.get_by_role("region", name="Jobs")
    expect(found).to_be_visible()
    return found


def badge(page: Page) -> Locator:
    return page.locator("li.lm-TabBar-tab[data-id='jupyter-to-job-jobs']")


def row(panel: Locator, name: str) -> Locator:
    return panel.get_by_role("article", name=name, exact=True)


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


def assert_accessible(page: Page) -> None:
    """No finding of axe in the panel."""
    results = Axe().run(page, context=".jp-ToJob-panel")
    assert results.violations_count == 0, results.generate_report()


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
    assert_accessible(page)
    screenshot("panel-running")

    last.get_by_role("button", name=f"Cancel {third}").click()  # nothing to lose: no question
    expect(last.get_by_text("Cancelled", exact=True)).to_be_visible()
    expect(badge(page)).to_have_attribute("data-unfinished", "2")

    (lab.root / "reports" / "go").touch()
    ended(running, "Succeeded")
    ended(waiting, "Failed")
    expect(waiting.get_by_text("A cell raised an error.")).to_be_visible()
    expect(running.get_by_text(re.compile(r"^Used [0-9.]+ of 1 CPU, .+ of 2 GiB"))).to_be_visible()
    expect(badge(page)).to_have_attribute("data-unfinished", "")
    assert_accessible(page)
    screenshot("panel-ended")
    page.set_viewport_size({"width": 700, "height": 450})  # as 200 % zoom does
    fits = "panel => panel.scrollWidth <= panel.clientWidth"
    wait_until(lambda: panel.evaluate(fits), "the panel needs to be scrolled sideways")
    expect(waiting.get_by_role("button", name="More actions")).to_be_visible()
    screenshot("panel-zoomed")
    page.set_viewport_size({"width": 1400, "height": 900})

    panel.get_by_role("combobox", name="Which jobs").select_option("Failed or cancelled")
    expect(panel.get_by_role("article")).to_have_count(2)
    panel.get_by_role("searchbox", name="Search jobs").fill("raised")
    expect(panel.get_by_role("article")).to_have_count(1)
    panel.get_by_role("searchbox", name="Search jobs").fill("nothing is like this")
    expect(panel.get_by_text("No job is like that.")).to_be_visible()
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
    assert_accessible(page)
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
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    more = row(panel, names[0]).get_by_role("button", name="More actions")
    expect(more).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.get_by_role("menuitem", name="Show Logs")).to_be_visible()
    page.keyboard.press("Escape")
    expect(more).to_be_focused()


def test_it_is_right_again_after_a_reload_and_a_killed_server(
    lab: Lab, open_lab: Callable[[], Page], screenshot: Callable[[str], None]
) -> None:
    lab.write("reports/long.ipynb", "print('began')", UNTIL_TOLD)
    page = open_lab()
    name = submit(page, open_notebook(page, "reports", "long.ipynb"))
    panel = show(page)
    expect(row(panel, name).get_by_text("cell 2 of 2")).to_be_visible(timeout=END_TIMEOUT)

    wait_for_layout(lab, '"current":"jupyter-to-job-jobs"', "notebook:reports/long.ipynb")
    page.goto(lab.url.replace("reset&", ""))
    page.wait_for_function("() => window.jupyterapp !== undefined")
    page.evaluate("async () => { await window.jupyterapp.restored; }")
    expect(panel).to_be_visible()  # the panel is open again
    expect(row(panel, name).get_by_text("cell 2 of 2")).to_be_visible()
    expect(page.locator(".jp-NotebookPanel .jp-Notebook .jp-Cell").first).to_be_visible()

    # JupyterLab says that the server is gone, too, and in the middle of the page.
    page.add_locator_handler(
        page.get_by_role("dialog"), lambda: page.keyboard.press("Escape"), no_wait_after=True
    )
    assert lab.process is not None
    os.kill(lab.process.pid, signal.SIGKILL)
    lab.process.wait()
    expect(panel.get_by_text("There is no connection to the server.")).to_be_visible()
    screenshot("panel-lost")
    assert [p for p in psutil.process_iter() if lab.owns(p) and "job_runner" in _command(p)]

    lab.start()
    # By its event: JupyterLab's own dialog comes and goes over the page, and moves what is below.
    panel.get_by_role("button", name="Try Again").dispatch_event("click")
    expect(panel.get_by_text("There is no connection")).to_have_count(0)
    asked: list[Request] = []
    page.on("request", lambda request: asked.append(request))
    page.clock.install()
    open_lab()
    panel = show(page)
    expect(row(panel, name).get_by_text("cell 2 of 2")).to_be_visible()
    expect(badge(page)).to_have_attribute("data-unfinished", "1")
    answered = next(r for r in asked if "/api/jobs" in r.url).timing
    assert answered["responseEnd"] < at_most(ANSWERED_WITHIN), answered

    (lab.root / "reports" / "go").touch()
    ended(row(panel, name), "Succeeded")
    delivered(row(panel, name))
    assert outputs(lab.root / "reports" / f"{name}.ipynb") == "began\nwent on\n"
    before = len([r for r in asked if "jupyter-to-job/api" in r.url])
    with page.expect_request(re.compile("/api/kernels")):  # JupyterLab's own poll
        page.clock.fast_forward("05:00")  # nothing happens, so nothing may be asked
    assert len([r for r in asked if "jupyter-to-job/api" in r.url]) == before


def _command(process: psutil.Process) -> str:
    try:
        return " ".join(process.cmdline())
    except psutil.Error:
        return ""


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
    page.get_by_role("tab", name="File Browser").click()
    name = submit(page, open_notebook(page, "reports", "a.ipynb"))
    show(page)
    result = lab.root / "reports" / f"{name}.ipynb"
    wait_until(result.exists, "nothing was delivered")
    expect(row(panel, name).get_by_text("Queued")).to_be_visible()
    panel.get_by_role("button", name="Refresh").click()
    ended(row(panel, name), "Succeeded")
    assert_accessible(page)
    screenshot("panel-no-events")


@pytest.mark.parametrize(
    "lab",
    [{"arguments": ["--ServerApp.jpserver_extensions={'jupyter_to_job.server': False}"]}],
    indirect=True,
)
def test_without_the_server_part_the_panel_says_so(lab: Lab, open_lab: Callable[[], Page]) -> None:
    panel = show(open_lab())
    told = panel.get_by_role("alert")
    expect(told).to_contain_text("The server part of Jupyter to Job is not installed")
    expect(told.get_by_role("button", name="Try Again")).to_be_visible()
