"""The details of a job: everything that is known of it, and where that leads."""

from __future__ import annotations

import json
import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Locator, Page, Response, expect

from tests.ui.lab import Lab
from tests.ui.steps import END_TIMEOUT, choose_theme, toast, wait_until
from tests.ui.test_everyone import (
    MACHINE,
    STEPS,
    assert_accessible,
    assert_accessible_in_all_themes,
)
from tests.ui.test_pressed import let_go, pressed

SUBMIT = "async job => (await jupyterapp.commands.execute('jupyter-to-job:submit', job)).name"
SHOW = """async name => {
    await jupyterapp.commands.execute('jupyter-to-job:show-details', { name });
}"""
TRAIN = "import time\nfor step in range(3):\n    print('step', step)\n    time.sleep(1)"
MAKE = "from pathlib import Path\nPath('made.txt').write_text('made')"


def details(page: Page, name: str) -> Locator:
    return page.get_by_role("region", name=f"Details of {name}")


def section(view: Locator, title: str) -> Locator:
    return view.get_by_role("region", name=title, exact=True)


def test_details_of_a_job_that_succeeded(
    lab: Lab, open_lab: Callable[[], Page], screenshot: Callable[[str], None]
) -> None:
    source = lab.write("reports/train.ipynb", "rate = 1", TRAIN, MAKE)
    (lab.root / "reports" / "data.csv").write_text("a,b\n")
    page = open_lab()
    job = {
        "path": "reports/train.ipynb",
        "parameters": {"rate": 2},
        "inputs": ["reports/data.csv"],
        "isolated": True,
        "env": {"API_KEY": "very-secret"},
    }
    name = page.evaluate(SUBMIT, job)
    ended = toast(page, f"{name} finished")
    expect(ended).to_be_visible(timeout=END_TIMEOUT)
    ended.get_by_role("button", name="Details").click()  # every notification leads there
    view = details(page, name)
    expect(view.get_by_role("heading", name=name)).to_be_visible()
    expect(section(view, "Result").get_by_role("button")).to_have_text(f"reports/{name}.ipynb")
    expect(section(view, "Parameters")).to_contain_text("rate")
    used = section(view, "What each cell used")
    expect(used.get_by_role("row")).to_have_count(5)
    used.get_by_role("button", name="Time", exact=True).click()
    expect(used.get_by_role("row").nth(1)).to_contain_text("import time")
    expect(section(view, "Environment")).to_contain_text("API_KEY")
    assert "very-secret" not in view.inner_text()
    expect(section(view, "Kept")).to_contain_text("are kept until")
    expect(section(view, "Files that were sent along")).to_contain_text("reports/data.csv")
    page.evaluate("() => document.querySelectorAll('.Toastify__close-button')"
                  ".forEach(button => button.click())")  # fmt: skip
    assert_accessible_in_all_themes(page, ".jp-ToJob-details")
    choose_theme(page, "dark")
    screenshot("details-succeeded-dark")
    choose_theme(page, "light")
    screenshot("details-succeeded")

    view.get_by_role("button", name="Log", exact=True).click()
    expect(section(view, "Log")).to_contain_text("step 2")
    changed = json.loads(source.read_text())
    changed["cells"][1]["source"] = TRAIN.replace("sleep(1)", "sleep(0.5)")
    source.write_text(json.dumps(changed))
    view.get_by_role("button", name="What changed since").click()
    difference = section(view, "What changed since")
    expect(difference).to_contain_text("Cell 2 has changed")
    expect(difference).to_contain_text("time.sleep(0.5)")
    view.get_by_role("button", name="The notebook as it was submitted").click()
    snapshot = section(view, "The notebook as it was submitted")
    expect(snapshot.locator(".jp-Cell")).to_have_count(3)
    assert_accessible(page, ".jp-ToJob-details-head", ".jp-ToJob-changed-cell", ".jp-ToJob-log")
    difference.scroll_into_view_if_needed()
    screenshot("details-difference")

    with page.expect_download() as download:
        view.get_by_role("button", name="HTML without Code").click()
    assert download.value.suggested_filename == f"{name}.html"
    assert "step 2" in download.value.path().read_text()

    section(view, "Files that came back").get_by_role("button").first.click()
    expect(page.locator(".jp-FileEditor")).to_contain_text("made")


def test_details_of_a_job_that_failed(
    lab: Lab, open_lab: Callable[[], Page], screenshot: Callable[[str], None]
) -> None:
    lab.write("a.ipynb", "print('before')", "1 / 0", "print('after')")
    page = open_lab()
    name = page.evaluate(SUBMIT, {"path": "a.ipynb", "ask": False})
    failed = toast(page, f"{name} failed")
    expect(failed).to_be_visible(timeout=END_TIMEOUT)
    failed.get_by_role("button", name="Details").click()
    view = details(page, name)
    expect(view.get_by_role("status").first).to_contain_text("Failed")
    expect(view).to_contain_text("ZeroDivisionError")
    used = section(view, "What each cell used")
    expect(used.get_by_role("row")).to_have_count(3)
    expect(used.get_by_role("row").nth(2)).to_contain_text("Failed")
    page.evaluate("() => document.querySelectorAll('.Toastify__close-button')"
                  ".forEach(button => button.click())")  # fmt: skip
    assert_accessible_in_all_themes(page, ".jp-ToJob-details")
    choose_theme(page, "dark")
    screenshot("details-failed-dark")
    choose_theme(page, "light")
    screenshot("details-failed")

    def is_kept() -> bool:
        page.wait_for_timeout(50)
        saved = lab.base.rglob("*.jupyterlab-workspace")
        return any(name in file.read_text() for file in saved)

    wait_until(is_kept, "the tab was not saved")  # JupyterLab does that seconds later
    page.reload()  # it is there again
    expect(details(page, name)).to_contain_text("ZeroDivisionError", timeout=END_TIMEOUT)
    view = details(page, name)
    expect(view.get_by_role("button", name="Open Result")).to_be_visible()  # the list has it, too
    view.get_by_role("button", name="More…").click()
    page.get_by_role("menuitem", name="Delete Job…").click()
    page.get_by_role("button", name="Delete Job").click()
    expect(view).to_contain_text("This job was deleted.")


@pytest.mark.parametrize("lab", [MACHINE], indirect=True)
def test_no_control_of_the_details_moves_while_news_arrive(
    lab: Lab, open_lab: Callable[[], Page]
) -> None:
    lab.write("a.ipynb", STEPS)
    page = open_lab()
    name = page.evaluate(SUBMIT, {"path": "a.ipynb", "flavor": "small"})
    page.evaluate(SHOW, name)
    view = details(page, name)
    state = view.get_by_role("status").first
    expect(state).to_contain_text("Running", timeout=END_TIMEOUT)
    expect(section(view, "What each cell used").get_by_role("row")).to_have_count(2)
    controls = view.locator("button").filter(visible=True).element_handles()
    assert len(controls) >= 10
    for control in controls[:-1]:
        with pressed(page, control), page.expect_response(re.compile(f"{name}/record")):
            pass  # it prints all the time, which is news
        let_go(page)

    def tells_the_end(response: Response) -> bool:
        return "/api/jobs" in response.url and '"succeeded"' in response.text()

    with pressed(page, controls[-1]):
        with page.expect_response(tells_the_end):
            (lab.root / "go").touch()
        page.wait_for_timeout(200)  # in which the view would show it
        expect(state).to_contain_text("Running")
    let_go(page)
    expect(state).to_contain_text("Succeeded")
