"""Two users of one JupyterHub, in two browser windows: each has their own jobs, and loses none."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.cluster.box.boot import Box
from tests.cluster.box.wait import wait_for
from tests.cluster.hub import Hub, running_hub
from tests.cluster.lab import be_quiet
from tests.cluster.product import HOME, HUB, TEAM, DevPod
from tests.cluster.scenes import COUNT, SubmittedJob, notebook
from tests.ui.chromium import chromium, window
from tests.ui.steps import (
    END_TIMEOUT,
    open_file,
    open_notebook,
    row,
    show,
    submit,
    visit,
)

pytestmark = pytest.mark.side_by_side(-1)
ANSWER = """async name => {
    const { baseUrl } = jupyterapp.serviceManager.serverSettings;
    const headers = { 'X-XSRFToken': /_xsrf=([^;]+)/.exec(document.cookie)[1] };
    return (await fetch(`${baseUrl}jupyter-to-job/api/jobs/${name}`, { headers })).status;
}"""
"""What the user's own server answers to a question about a job."""


def test_two_users_and_a_culled_server(box: Box, dev_pod: DevPod) -> None:
    assert dev_pod.namespace == TEAM  # the controller is there
    with running_hub(box, "ada", "brian") as hub, chromium() as browser:
        name = check_two_users(hub, browser)
        job = SubmittedJob(DevPod(box, HUB, "jupyter-ada"), name)
        job.until_printed()
        hub.cull()
        job.let_end()
        result = box.run_dir / "volumes" / "claim-ada" / "work" / f"{name}.ipynb"
        wait_for("a courier has brought the result", result.exists, timeout=150)
        with window(browser, "ada-again") as page:
            hub.log_in(page, "ada")
            visit(page, hub.lab_url("ada"))
            line = row(show(page), name)
            expect(line.get_by_text(re.compile("^Succeeded after"))).to_be_visible()
            line.get_by_role("button", name=re.compile("^Open the result")).click()
            opened = page.locator(".jp-NotebookPanel:not(.lm-mod-hidden)")
            expect(opened.get_by_text(re.compile(r"^0\n1\n", re.MULTILINE))).to_be_visible()


def check_two_users(hub: Hub, browser: Browser) -> str:
    """Check that each user gets their own result and sees no other; leave a job of Ada running."""
    with window(browser, "ada") as ada, window(browser, "brian") as brian:
        pages = {"ada": ada, "brian": brian}
        names = {user: begin(hub, page, user) for user, page in pages.items()}
        for user, page in pages.items():
            name, other = names[user], names["brian" if user == "ada" else "ada"]
            panel = show(page)
            opening = row(panel, name).get_by_role("button", name=re.compile("^Open the result"))
            opening.click(timeout=END_TIMEOUT)  # a toast may be over before it is this page's turn
            result = page.locator(".jp-NotebookPanel:not(.lm-mod-hidden)")
            expect(result.get_by_text(f"of {user}", exact=True)).to_be_visible()
            expect(panel.get_by_role("article")).to_have_count(1)
            assert page.evaluate(ANSWER, name) == 200
            assert page.evaluate(ANSWER, other) == 404
        ada.get_by_role("tab", name="File Browser").click()
        return submit(ada, open_file(ada, "long.ipynb"))


def begin(hub: Hub, page: Page, user: str) -> str:
    """Log in and submit a notebook; return the job's name."""
    server = hub.log_in(page, user)
    be_quiet(server)
    server.write(f"{HOME}/work/own.ipynb", notebook(f"print('of {user}')"))
    server.write(f"{HOME}/work/long.ipynb", notebook(COUNT))
    visit(page, hub.lab_url(user))
    return submit(page, open_notebook(page, "work", "own.ipynb"))
