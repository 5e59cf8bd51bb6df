"""Why a job waits, and when it may start: in the panel, and in the dialog before it is sent."""

from __future__ import annotations

import json
import re
import urllib.request
from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.ui.lab import TOKEN, TWO_FLAVORS, Lab
from tests.ui.steps import (
    END_TIMEOUT,
    ask,
    choose_theme,
    dialog,
    flavor,
    open_notebook,
    row,
    show,
    toast,
    wait_until,
)

SUBMIT = """async path => (await jupyterapp.commands.execute('jupyter-to-job:submit',
    { path, ask: false })).name"""
UNTIL_TOLD = """import pathlib, time
time.sleep(1)
while pathlib.Path('hold').exists():
    time.sleep(0.05)"""
ONE_AT_A_TIME = {**TWO_FLAVORS, "variables": {"JUPYTER_TO_JOB_CAPACITY": "cpu=1,memory=8Gi"}}


def forecast(lab: Lab) -> dict[str, Any]:
    """Return what the server says of a job before it is sent."""
    request = urllib.request.Request(
        f"http://127.0.0.1:{lab.port}/jupyter-to-job/api/preflight",
        json.dumps({"notebook": "reports/study.ipynb"}).encode(),
        {"Authorization": f"token {TOKEN}", "Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=30) as answer:
        wait: dict[str, Any] = json.load(answer)["wait"]
    return wait


@pytest.mark.parametrize("lab", [ONE_AT_A_TIME], indirect=True)
def test_a_waiting_job_says_for_what_and_how_long(
    lab: Lab, open_lab: Callable[[], Page], screenshot: Callable[[str], None]
) -> None:
    lab.write("reports/study.ipynb", UNTIL_TOLD)
    page = open_lab()
    first = page.evaluate(SUBMIT, "reports/study.ipynb")
    expect(toast(page, f"{first} finished")).to_be_visible(timeout=END_TIMEOUT)
    wait_until(lambda: forecast(lab)["run"] is not None, "nothing is estimated")
    (lab.root / "reports" / "hold").touch()
    names = [page.evaluate(SUBMIT, "reports/study.ipynb") for _ in range(3)]
    panel = show(page)
    expect(row(panel, names[0]).get_by_text("Running").first).to_be_visible(timeout=END_TIMEOUT)
    last = row(panel, names[2])
    expect(last.get_by_text("Needs 1 CPU; free now: 0. 1 job is before it.")).to_be_visible()
    estimate = re.compile(r"Starts at about .*, estimated from 1 earlier run\.")
    expect(last.get_by_text(estimate)).to_be_visible()
    screenshot("panel-waits")
    choose_theme(page, "dark")
    screenshot("panel-waits-dark")

    page.get_by_role("tab", name="File Browser").click()
    ask(page, open_notebook(page, "reports", "study.ipynb"))
    told = dialog(page).get_by_text("Needs 1 CPU; free now: 0. 2 jobs are before it.")
    expect(told).to_contain_text(re.compile("Starts in about .* Runs about "))
    screenshot("dialog-waits-dark")
    parameters = dialog(page).locator("summary", has_text="Parameters")
    place = parameters.bounding_box()
    page.route("**/api/preflight*", lambda _: None)  # no answer comes
    flavor(page, "Long").check()
    expect(told).to_be_hidden()
    assert parameters.bounding_box() == place, "it moved away under the pointer"
    page.keyboard.press("Escape")
    (lab.root / "reports" / "hold").unlink()
