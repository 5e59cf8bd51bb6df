"""What the page shows when things end that it relies on: itself, its server, a folder, a file."""

from __future__ import annotations

import os
import re
import signal
import time
from collections.abc import Callable

import psutil
import pytest
from playwright.sync_api import Browser, Page, Request, Route, expect

from tests.ui.chromium import WINDOW, be_patient
from tests.ui.lab import Lab
from tests.ui.steps import (
    END_TIMEOUT,
    NO_POLL,
    ask,
    asked,
    at_most,
    button,
    close_for_good,
    dialog,
    file_item,
    jobs_panel,
    open_notebook,
    outputs,
    row,
    send_button,
    show,
    submit,
    toast,
    visit,
    wait_for_kernel,
    wait_for_layout,
    wait_until,
    word_of_lost_connection,
)

UNTIL_TOLD = """import pathlib, time
while not pathlib.Path('{0}').exists():
    time.sleep(0.05)
print('{0}')"""
"""A cell that runs until the test puts a file beside the notebook."""

RIGHT_WITHIN = 1000
"""Milliseconds from the page's opening, or the connection's, until the panel is right."""

API = "/jupyter-to-job/api/"
NO_CONNECTION = "There is no connection to the server."


NO_SERVER_PART = {"arguments": ["--ServerApp.jpserver_extensions={'jupyter_to_job.server': False}"]}
WHY_HELD = re.compile("Not delivered: .*reports")
LARGE = 1000 << 20
PIECE = 1 << 20
"""Bytes of an input, and of what is copied of it at a time."""
SLOW_COPY = """import time
import jupyter_to_job.workspace.freezing.freeze as freeze

read = freeze._chunks

def read_slowly(item, file):
    for chunk in read(item, file):
        time.sleep(0.3)
        yield chunk

freeze._chunks = read_slowly
"""
"""Has the copy go on for as long as a test takes, with a report of every piece."""


def assert_right(page: Page, *texts: str) -> None:
    """From now on it takes the panel at most a second to show these texts, and no trouble."""
    began = time.monotonic()
    page.wait_for_function(
        """texts => {
            const panel = document.querySelector('.jp-ToJob-panel');
            return panel !== null && panel.querySelector('.jp-ToJob-notice') === null
                && texts.every(text => panel.innerText.includes(text));
        }""",
        arg=list(texts),
    )
    took = 1000 * (time.monotonic() - began)
    assert took < at_most(RIGHT_WITHIN), f"{texts} after {took:.0f} ms"


def runners(lab: Lab) -> list[int]:
    """The processes that execute this server's jobs."""
    found = []
    for process in psutil.process_iter():
        try:
            if lab.owns(process) and "job_runner" in process.cmdline():
                found.append(process.pid)
        except psutil.Error:
            continue
    return found


def end_server(lab: Lab, number: signal.Signals) -> None:
    assert lab.process is not None
    os.kill(lab.process.pid, number)
    lab.process.wait()


def test_a_job_outlives_page_browser_and_server_and_the_panel_is_right_again(
    lab: Lab, browser: Browser, page: Page, screenshot: Callable[[str], None]
) -> None:
    lab.write("reports/long.ipynb", *map(UNTIL_TOLD.format, ("one", "two", "three")))
    lab.write("reports/other.ipynb", "print(1)")
    told = lab.root / "reports"
    first = be_patient(browser.new_context(**WINDOW))
    before = first.new_page()
    visit(before, lab.url)
    name = submit(before, open_notebook(before, "reports", "long.ipynb"))
    show(before)
    expect(row(before, name).get_by_text("cell 1 of 3")).to_be_visible(timeout=END_TIMEOUT)

    wait_for_layout(lab, '"current":"jupyter-to-job-jobs"', "notebook:reports/long.ipynb")
    visit(before, lab.url.replace("reset&", ""))  # a reload
    assert_right(before, name, "cell 1 of 3")
    expect(before.locator(".jp-NotebookPanel .jp-Notebook .jp-Cell").first).to_be_visible()

    first.close()  # the browser is gone
    (told / "one").touch()
    page.clock.install()
    visit(page, lab.url)
    panel = open_notebook(page, "reports", "other.ipynb")
    wait_for_kernel(page)  # a server that ends while it connects a kernel may hang
    show(page)
    expect(row(page, name).get_by_text("cell 2 of 3")).to_be_visible(timeout=END_TIMEOUT)

    row(page, name).get_by_role("button", name=f"Watch {name} live").click()
    live = page.get_by_role("region", name=f"{name}, as it runs")
    expect(live.get_by_text("one", exact=True)).to_be_visible()
    end_server(lab, signal.SIGTERM)
    word = word_of_lost_connection(page)  # it would close a menu if it came later
    expect(word).to_be_visible(timeout=END_TIMEOUT)
    close_for_good(word)
    expect(jobs_panel(page).get_by_text(NO_CONNECTION)).to_be_visible()
    expect(live.get_by_role("alert")).to_contain_text(NO_CONNECTION)
    screenshot("panel-lost")
    page.get_by_role("tab", name="other.ipynb").click()
    panel.locator(".jp-Cell .cm-content").first.click()
    page.keyboard.type("# unsaved")
    button(panel).click()
    told_why = page.get_by_role("dialog").filter(has_text="Not submitted: There is no connection")
    page.get_by_role("dialog").get_by_role("button", name="Close").click()  # JupyterLab's own
    told_why.get_by_role("button", name="Close").click()
    page.get_by_role("tab", name="File Browser").click()
    file_item(page, "long.ipynb").click(button="right")
    page.get_by_role("menuitem", name="SUBMIT JOB").click()
    expect(dialog(page).get_by_role("alert")).to_contain_text(NO_CONNECTION)
    dialog(page).get_by_text("Cancel", exact=True).click()
    assert runners(lab), "the run has ended with the server"
    (told / "two").touch()
    lab.start()
    show(page)  # opened again, which is reason enough to look
    assert_right(page, name, "cell 3 of 3")
    page.get_by_role("tab", name=name).click()
    expect(live.get_by_text("two", exact=True)).to_be_visible()
    expect(live.get_by_role("alert")).to_have_count(0)
    page.evaluate("() => jupyterapp.shell.currentWidget.close()")

    end_server(lab, signal.SIGKILL)
    expect(jobs_panel(page).get_by_text(NO_CONNECTION)).to_be_visible()
    assert runners(lab), "the run has died with the server"
    (told / "three").touch()
    wait_until(lambda: lab.is_delivered(name), "nothing was delivered without a server")
    expect(row(page, name).get_by_text("cell 3 of 3")).to_be_visible()  # nobody could tell
    asked: list[Request] = []
    page.on("request", lambda request: asked.append(request))
    lab.start()
    page.clock.fast_forward("01:00")  # to the next try of itself
    assert_right(page, name, "Succeeded after", "Open")
    assert outputs(told / f"{name}.ipynb") == "one\ntwo\nthree\n"
    with page.expect_request(re.compile("/api/kernels")):  # JupyterLab's own poll
        page.clock.fast_forward("05:00")  # nothing happens, so nothing may be asked
    ours = [request.url.rpartition(API)[2] for request in asked if API in request.url]
    assert len(ours) == 1 and ours[0].startswith("jobs?limit="), ours


@pytest.mark.parametrize("lab", [NO_SERVER_PART], indirect=True)
def test_an_absent_server_part_is_said(lab: Lab, open_lab: Callable[[], Page]) -> None:
    lab.write("reports/study.ipynb", "print(1)")
    page = open_lab()
    button(open_notebook(page, "reports", "study.ipynb")).click()
    alert = dialog(page).get_by_role("alert")
    expect(alert).to_contain_text("The server part of Jupyter to Job is not installed")
    expect(alert).to_contain_text("install jupyter-to-job there and restart it")
    expect(send_button(page)).to_be_disabled()
    dialog(page).get_by_text("Cancel", exact=True).click()
    notice = show(page).get_by_role("alert")
    expect(notice).to_contain_text("The server part of Jupyter to Job is not installed")
    expect(notice.get_by_role("button", name="Try Again")).to_be_visible()


def test_an_old_server_part_is_said(lab: Lab, page: Page) -> None:
    lab.write("reports/study.ipynb", "print(1)")

    def ask_for_what_is_new(route: Route) -> None:
        # The server's own answer to a route that it does not have.
        route.continue_(url=re.sub(r"api/(\w+)", r"api/\1-of-tomorrow", route.request.url))

    page.route(re.compile("/jupyter-to-job/api/(jobs|preflight)"), ask_for_what_is_new)
    visit(page, lab.url)
    panel = open_notebook(page, "reports", "study.ipynb")
    button(panel).click()
    alert = dialog(page).get_by_role("alert")
    expect(alert).to_contain_text("older than this page: restart Jupyter Server, then reload")
    expect(send_button(page)).to_be_disabled()
    dialog(page).get_by_text("Cancel", exact=True).click()
    run_last = "([id, path]) => jupyterapp.commands.execute(id, { path, ask: false })"
    assert page.evaluate(run_last, ["jupyter-to-job:submit", "reports/study.ipynb"]) is None
    expect(toast(page, "older than this page")).to_be_visible()
    expect(show(page).get_by_role("alert")).to_contain_text("older than this page")
    page.unroute_all()  # it was restarted
    jobs_panel(page).get_by_role("button", name="Try Again").click()
    expect(jobs_panel(page).get_by_text("No jobs yet.")).to_be_visible()


def test_a_held_result_is_said_and_delivered_later(
    lab: Lab, open_lab: Callable[[], Page], screenshot: Callable[[str], None]
) -> None:
    lab.write("reports/study.ipynb", UNTIL_TOLD.format("go"))
    folder, away = lab.root / "reports", lab.root / "renamed"
    page = open_lab()
    name = submit(page, open_notebook(page, "reports", "study.ipynb"))
    show(page)
    expect(row(page, name).get_by_text("Running")).to_be_visible(timeout=END_TIMEOUT)
    page.evaluate(NO_POLL)  # the file browser shows that folder, and would say that it is gone
    folder.rename(away)  # the run goes on in it
    (away / "go").touch()
    expect(row(page, name).get_by_text("Succeeded after")).to_be_visible(timeout=END_TIMEOUT)
    expect(row(page, name).get_by_text(WHY_HELD)).to_be_visible(timeout=END_TIMEOUT)
    expect(toast(page, "but its notebook could not be delivered")).to_be_visible()
    screenshot("panel-held")

    deliver = row(page, name).get_by_role("button", name=f"Deliver {name}")
    deliver.click()  # too early: no silent button
    expect(toast(page, re.compile("^Not delivered: .*reports"))).to_be_visible()
    away.rename(folder)
    deliver.click()
    delivered = toast(page, f"The result of {name} was delivered")
    expect(delivered).to_be_visible()
    expect(row(page, name).get_by_text("Not delivered")).to_have_count(0)
    assert outputs(folder / f"{name}.ipynb") == "go\n"
    delivered.get_by_role("button", name="Open").click()
    result = page.locator(".jp-NotebookPanel:not(.lm-mod-hidden)")
    expect(result.locator(".jp-OutputArea-output").first).to_contain_text("go")


@pytest.mark.parametrize("lab", [{"config": SLOW_COPY}], indirect=True)
def test_a_large_copy_is_shown_and_called_off(
    lab: Lab, open_lab: Callable[[], Page], screenshot: Callable[[str], None]
) -> None:
    lab.write("reports/study.ipynb", "print(1)")
    with (lab.root / "reports" / "large.bin").open("wb") as large:
        large.truncate(LARGE)  # a file with no blocks is copied byte by byte all the same
    page = open_lab()
    ask(page, open_notebook(page, "reports", "study.ipynb"))
    files = dialog(page).locator("details").filter(has_text=re.compile("^Files"))
    files.locator("summary").click()
    files.get_by_label("Isolated").check()
    files.get_by_label("Add a file").fill("reports/large.bin")
    files.get_by_role("button", name="Add").click()
    asked(page)
    send_button(page).click()
    bar = dialog(page).get_by_role("progressbar", name="Copying files")
    expect(bar).to_be_visible()
    page.wait_for_function("() => document.querySelector('progress').value > 0")
    first = bar.evaluate("bar => bar.value")
    page.wait_for_function("first => document.querySelector('progress').value > first", arg=first)
    assert 0 < first < bar.evaluate("bar => bar.max") == LARGE
    screenshot("dialog-copying")
    with page.expect_request(re.compile("/submissions/")):
        dialog(page).get_by_text("Cancel", exact=True).click()
    expect(dialog(page).get_by_text("Called off: nothing was submitted.")).to_be_visible()
    kept = [path for path in lab.base.glob("data/**/*") if path.is_file()]
    assert not [path for path in kept if path.name == "request.json"], "a job was recorded"
    assert sum(path.stat().st_size for path in kept) < PIECE, "the copy was left behind"
    dialog(page).get_by_text("Cancel", exact=True).click()
    expect(show(page).get_by_text("No jobs yet.")).to_be_visible()
