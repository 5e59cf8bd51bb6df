"""What the page tells of many jobs at once."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from tests.ui.lab import NOTHING_RUNS, Lab
from tests.ui.steps import jobs_panel, toast

SUBMIT = """async count => {
    for (let number = 0; number < count; number++) {
        await jupyterapp.commands.execute('jupyter-to-job:submit',
            { path: 'reports/a.ipynb', ask: false });
    }
}"""


@pytest.mark.parametrize("lab", [NOTHING_RUNS], indirect=True)
def test_the_newest_job_has_a_notification_and_the_others_share_one(
    lab: Lab, open_lab: Callable[[], Page], screenshot: Callable[[str], None]
) -> None:
    lab.write("reports/a.ipynb", "1")
    page = open_lab()
    page.evaluate(SUBMIT, 2)
    expect(toast(page, "Submitted as")).to_have_count(2)
    page.evaluate(SUBMIT, 3)
    told = toast(page, "4 jobs: 4 submitted")
    expect(told).to_be_visible()
    told.hover()  # it stays while the mouse is on it
    expect(toast(page, "Submitted as")).to_have_count(1)
    expect(page.locator(".Toastify__toast")).to_have_count(2)
    screenshot("toast-many")
    told.get_by_role("button", name="Show Jobs").click()
    expect(jobs_panel(page)).to_be_visible()
    expect(jobs_panel(page).get_by_role("article")).to_have_count(5)
