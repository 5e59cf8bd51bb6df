"""A data scientist in the browser: JupyterLab in a dev pod without a GPU and without rights."""

from __future__ import annotations

import re
from threading import Lock
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.cluster.box.cluster import Cluster
from tests.cluster.lab import WORK, opened, start_lab
from tests.cluster.product import TEAM, DevPod
from tests.cluster.scenes import COUNT, SubmittedJob, notebook, text_of
from tests.ui.chromium import keep_screenshot
from tests.ui.steps import (
    END_TIMEOUT,
    ask,
    asked,
    choose_theme,
    dialog,
    file_item,
    flavor,
    jobs_panel,
    open_notebook,
    row,
    send_button,
    show,
    toast,
    told_name,
)

pytestmark = pytest.mark.side_by_side(-1)
ALONE = Lock()
"""Held by the test whose user sees no notifications of the other test's jobs."""
GPU = "NVIDIA_VISIBLE_DEVICES"
TRAIN = (
    f"import os, helper\nprint(helper.WORD, os.environ.get('{GPU}'))",
    COUNT,
    "open('model.bin', 'wb').write(bytes(1000));",
)
SUBMIT = """async choices => {
    const job = await jupyterapp.commands.execute(
        'jupyter-to-job:submit', { ask: false, ...choices });
    return job.name;
}"""


def test_a_notebook_goes_to_a_gpu_and_comes_back(dev_pod: DevPod, cluster: Cluster) -> None:
    assert dev_pod.namespace == TEAM  # the controller is there
    lab = start_lab(cluster)
    lab.write(f"{WORK}/study/helper.py", "WORD = 'device:'\n")
    lab.write(f"{WORK}/study/train.ipynb", notebook(*TRAIN))
    with ALONE, opened(lab, "gpu") as page:
        source = open_notebook(page, "study", "train.ipynb")
        expect(page.get_by_text("Python 3 (ipykernel) | Idle")).to_be_visible()
        source.locator(".jp-Cell").first.click()
        page.keyboard.press("Shift+Enter")
        expect(source.get_by_text("device: None")).to_be_visible()

        ask(page, source)
        flavor(page, "One GPU").check()
        dialog(page).get_by_text("Files to send along").click()
        dialog(page).get_by_role("checkbox", name="Isolated: run in a scratch copy").check()
        asked(page)
        place = dialog(page).get_by_text(re.compile("^Isolated: the run works"))
        expect(place).to_contain_text("1 file goes along with the notebook.")
        picture(page, page.locator(".jp-Dialog-content"), "cluster-dialog")
        send_button(page).click()
        job = SubmittedJob(lab, told_name(page))
        expect(dialog(page)).to_have_count(0)

        show(page)
        page.get_by_role("button", name=f"Watch {job.name} live").click()
        live = page.get_by_role("region", name=f"{job.name}, as it runs")
        expect(live.get_by_text(re.compile("^device: GPU-"))).to_be_visible(timeout=END_TIMEOUT)
        expect(live.get_by_text("cell 2 of 3")).to_be_visible()
        counting = live.locator(".jp-Notebook-cell").nth(1)
        expect(counting.get_by_text(re.compile(r"^\d+\n1\d\n", re.MULTILINE))).to_be_visible()
        job.let_end()
        finished = toast(page, re.compile(f"{job.name} finished in "))
        expect(finished).to_be_visible(timeout=END_TIMEOUT)
        finished.get_by_role("button", name="Open").click()
        result = page.locator(".jp-NotebookPanel:not(.lm-mod-hidden)")
        expect(result.get_by_text(re.compile("^device: GPU-"))).to_be_visible()
        page.get_by_role("tab", name="File Browser").click()
        for name in ("train.ipynb", f"{job.name}.ipynb", job.name):
            expect(file_item(page, name)).to_be_visible()
        file_item(page, job.name).dblclick()
        expect(file_item(page, "model.bin")).to_be_visible()

    assert text_of(lab.read_json(f"{WORK}/study/{job.name}.ipynb")).startswith("device: GPU-")
    (pod,) = job.pods()
    assert pod["spec"]["containers"][0]["resources"]["limits"]["nvidia.com/gpu"] == "1"
    assert GPU not in lab.run("env")
    assert "nvidia.com/gpu" not in str(cluster.get("pod", lab.name, TEAM)["spec"]["containers"])


def test_jobs_wait_fail_and_are_cancelled(dev_pod: DevPod, cluster: Cluster) -> None:
    assert dev_pod.namespace == TEAM  # the controller is there
    lab = start_lab(cluster)
    lab.write(f"{WORK}/other/long.ipynb", notebook(COUNT))
    lab.write(f"{WORK}/other/failing.ipynb", notebook("print('before')", "{}['no such key']"))
    with ALONE, opened(lab, "ends") as page:
        panel = show(page)
        failing = submit(page, "other/failing.ipynb")
        waiting = submit(page, "other/long.ipynb", flavor="gpu-1", device="h100")
        running = submit(page, "other/long.ipynb", name="counts", flavor="small", device="cpu")

        why = row(panel, waiting)
        expect(why.get_by_text("Queued", exact=True)).to_be_visible(timeout=END_TIMEOUT)
        expect(why.get_by_text(re.compile("node"))).to_be_visible(timeout=END_TIMEOUT)
        failed = row(panel, failing)
        expect(failed.get_by_text(re.compile("^Failed after"))).to_be_visible(timeout=END_TIMEOUT)
        expect(failed.get_by_text("Cell 2 (In [2]) raised KeyError")).to_be_visible()
        counts = row(panel, running)
        expect(counts.get_by_role("progressbar")).to_be_visible(timeout=END_TIMEOUT)
        picture(page, panel, "cluster-panel")

        why.get_by_role("button", name=f"Cancel {waiting}").press("Enter")  # asks nothing
        expect(why.get_by_text("Cancelled", exact=True)).to_be_visible()
        SubmittedJob(lab, running).until_printed()
        counts.get_by_role("button", name=f"Cancel {running}").click()
        page.get_by_role("dialog").get_by_role("button", name="Cancel Job").click()
        expect(counts.get_by_text(re.compile("^Cancelled after"))).to_be_visible(
            timeout=END_TIMEOUT
        )
        counts.get_by_role("button", name=re.compile("^Open the result")).click()
        result = page.locator(".jp-NotebookPanel:not(.lm-mod-hidden)")
        expect(result.get_by_text(re.compile(r"^0\n1\n", re.MULTILINE))).to_be_visible()

        failed.get_by_role("button", name=re.compile("^Open the result")).click()
        expect(result.get_by_text("before", exact=True)).to_be_visible()
        expect(result.get_by_text("KeyError").first).to_be_visible()


def submit(page: Page, path: str, **choices: Any) -> str:
    """Submit a notebook as it is on disk; return the job's name once the panel shows it."""
    name = str(page.evaluate(SUBMIT, {"path": path, **choices}))
    expect(row(jobs_panel(page), name)).to_be_visible()
    return name


def picture(page: Page, part: Locator, name: str) -> None:
    """Keep a picture of a part of the page, in light and in dark."""
    for theme in ("dark", "light"):
        choose_theme(page, theme)
        keep_screenshot(page, f"{name}-{theme}", part)
