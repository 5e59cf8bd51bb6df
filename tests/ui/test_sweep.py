"""A sweep, from several values in the dialog to its results side by side."""

from __future__ import annotations

import csv
import io
import re
import subprocess
from collections.abc import Callable
from itertools import product
from pathlib import Path

import pandas as pd
import pytest
from playwright.sync_api import APIResponse, Locator, Page, Route, expect

from tests.ui.lab import NOTHING_RUNS, Lab
from tests.ui.steps import (
    END_TIMEOUT,
    ask,
    asked,
    choose_theme,
    dialog,
    file_item,
    jobs_panel,
    open_file,
    send_button,
    show,
    toast,
    until_told,
    wait_until,
)
from tests.ui.test_everyone import assert_accessible, assert_accessible_in_all_themes
from tests.ui.test_languages import CHINESE, assert_translated

CATALOG = """\
apiVersion: jupyter-to-job.io/v1
default: {flavor: small, device: cpu}
flavors:
  small: {title: Small, cpu: 0.5, memory: 1Gi, devices: [cpu], env: {SIZE: small}}
  large: {title: Large, cpu: 1, memory: 2Gi, devices: [cpu], env: {SIZE: large}}
devices:
  cpu: {title: CPU}
"""
LAB = {"catalog": CATALOG, "variables": {"JUPYTER_TO_JOB_CAPACITY": "cpu=8,memory=64Gi"}}
TRAIN = """\
import os
from jupyter_to_job import record
size = os.environ['SIZE']
if (seed, depth, size) == (4, 2, 'large') and not os.path.exists('mended'):
    raise ValueError('unlucky')
record('accuracy', 1 - lr + seed / 100 + depth / 1000)
record('size', size)
"""
AXES = ((0.1, 0.2, 0.3), range(5), (1, 2), ("small", "large"))
"""Learning rates, seeds, depths and flavors."""
SWEEP_TIMEOUT = 6 * END_TIMEOUT
"""Milliseconds for sixty runs, which take half a minute where nothing else runs."""

RERUN = re.compile(r"/api/jobs/[^/]+/rerun")
NAMES = "rows => rows.map(row => row.dataset.job)"
CURVE = """\
from IPython.display import SVG
from jupyter_to_job import record
record('score', lr * 2)
record('curve', SVG('<svg xmlns="http://www.w3.org/2000/svg" width="90" height="60">'
                    f'<path d="M0 60L90 {60 - 50 * lr}" stroke="#06c" stroke-width="3"/></svg>'))
"""


def vary(page: Page, **values: str) -> None:
    """Give parameters several values in the dialog."""
    dialog(page).locator("summary", has_text="Parameters").click()
    for name, text in values.items():
        dialog(page).get_by_role("button", name=f"Several values for {name}").click()
        dialog(page).get_by_label(name, exact=True).fill(text)


def results(page: Page, group: str) -> Locator:
    return page.get_by_role("region", name=f"Results of {group}")


def matrix(page: Page, group: str) -> list[dict[str, str]]:
    """The rows of the table, by the titles of its columns."""
    table: list[list[str]] = (
        results(page, group)
        .locator("table")
        .evaluate(
            "table => [...table.rows].map(row => [...row.cells].map(c => c.innerText.trim()))"
        )
    )
    titles, *rows = table
    return [dict(zip(titles, row, strict=True)) for row in rows]


def answer_together(page: Page, url: re.Pattern[str], count: int) -> None:
    """Give the page the answers to so many requests at once, when the last one is there."""
    held: list[tuple[Route, APIResponse]] = []

    def hold(route: Route) -> None:
        held.append((route, route.fetch()))
        if len(held) == count:
            for each, answer in held:
                each.fulfill(response=answer)

    page.route(url, hold)


def save(page: Page, group: str, format_name: str) -> Path:
    with page.expect_download() as started:
        results(page, group).get_by_role("button", name=f"Download {format_name}").click()
    assert started.value.suggested_filename == f"{group}.{format_name.lower()}"
    return Path(started.value.path())


def frame_of(lab: Lab, group: str) -> pd.DataFrame:
    """What a notebook of the same user gets of `jupyter_to_job.results`."""
    code = (
        "import jupyter_to_job, sys; jupyter_to_job.results(sys.argv[1]).to_pickle('frame.pickle')"
    )
    subprocess.run([lab.python, "-c", code, group], cwd=lab.root, env=lab.environment, check=True)
    frame: pd.DataFrame = pd.read_pickle(lab.root / "frame.pickle")
    return frame


@pytest.mark.timeout(900)
@pytest.mark.parametrize("lab", [LAB], indirect=True)
def test_sixty_runs_are_compared_and_what_failed_runs_again(
    lab: Lab, open_lab: Callable[[], Page], screenshot: Callable[[str], None]
) -> None:
    lab.write("train.ipynb", "lr = 1.0\nseed = 0\ndepth = 1", TRAIN, tags=("parameters",))
    page = open_lab()
    ask(page, open_file(page, "train.ipynb"))
    vary(page, lr="0.1, 0.2, 0.3", seed="0 1 2 3 4", depth="1, 2")
    dialog(page).get_by_role("checkbox", name="Run on several flavors").check()
    dialog(page).get_by_role("checkbox", name="Large").check()
    dialog(page).get_by_label("Group").fill("night")
    dialog(page).get_by_label("How many run at once").fill("6")
    asked(page)
    count = re.compile(r"^60 jobs: lr \(3\) . seed \(5\) . depth \(2\) . flavor \(2\)$")
    expect(dialog(page).get_by_text(count)).to_be_visible()
    expect(send_button(page)).to_have_accessible_name("SEND 60 JOBS")
    screenshot("sweep-dialog")
    send_button(page).click()
    expect(toast(page, "60 jobs were submitted as the group night")).to_be_visible()

    panel = show(page)
    expect(panel.get_by_role("article")).to_have_count(1)  # one line for all of them
    ended = panel.get_by_text("60 jobs: 57 succeeded, 3 failed")
    expect(ended).to_be_visible(timeout=SWEEP_TIMEOUT)
    expect(toast(page, "night: 60 jobs: 57 succeeded, 3 failed")).to_be_visible()
    panel.get_by_role("button", name="Compare the results of night").click()
    failed = results(page, "night").locator("tr", has_text="Failed")
    expect(failed).to_have_count(3)
    screenshot("sweep-failed")

    (lab.root / "mended").touch()
    answer_together(page, RERUN, 3)  # they have one notification if they come within a second
    panel.get_by_role("button", name="Rerun what failed of night (3)").click()
    until_told(page, "3 jobs of night run again")
    all_succeeded = results(page, "night").get_by_text("60 jobs: 60 succeeded", exact=True)
    expect(all_succeeded).to_be_visible(timeout=END_TIMEOUT)
    expect(results(page, "night").locator("tbody td", has_text="Succeeded")).to_have_count(60)
    check_matrix(page)
    screenshot("sweep-results")
    check_files(lab, page)


def check_matrix(page: Page) -> None:
    """Each combination has its row with what it recorded, and the best one is marked."""
    wait_until(  # a job's state comes first, and what it recorded a moment later
        lambda: all(row["accuracy"] for row in matrix(page, "night")), "not all have a metric"
    )
    rows = matrix(page, "night")
    found = {
        (float(row["lr"]), int(row["seed"]), int(row["depth"]), row["Flavor"]): row["accuracy"]
        for row in rows
    }
    expected = {
        (lr, seed, depth, flavor): 1 - lr + seed / 100 + depth / 1000
        for lr, seed, depth, flavor in product(*AXES)
    }
    assert len(rows) == 60 and found.keys() == expected.keys()
    assert {key: float(value) for key, value in found.items()} == pytest.approx(expected)
    assert all(row["Flavor"] == row["size"] for row in rows)
    (best,) = [row for row in rows if "Best" in row["Job"]]
    assert float(best["accuracy"]) == pytest.approx(max(expected.values()))


def check_files(lab: Lab, page: Page) -> None:
    """CSV, Parquet and frame are one table, and it is that of the page."""
    shown = results(page, "night").locator("tr[data-job]").evaluate_all(NAMES)
    wait_until(lambda: all(map(lab.is_delivered, shown)), "not all are delivered")
    text = save(page, "night", "CSV").read_text(encoding="utf-8")
    assert [row["job"] for row in csv.DictReader(io.StringIO(text))] == shown
    parquet = pd.read_parquet(save(page, "night", "Parquet"))
    frame = frame_of(lab, "night")
    for other in (pd.read_csv(io.StringIO(text)), parquet):
        pd.testing.assert_frame_equal(other, frame, check_dtype=False)
    counts = frame.groupby(["lr", "seed", "depth", "flavor"])["accuracy"].count()
    assert counts.to_dict() == dict.fromkeys(product(*AXES), 1)
    assert all((lab.root / path).is_file() for path in frame["result"])


@pytest.mark.parametrize("lab", [LAB], indirect=True)
def test_parameters_of_the_best_run_are_put_into_the_notebook(
    lab: Lab, open_lab: Callable[[], Page], screenshot: Callable[[str], None]
) -> None:
    lab.write("curves.ipynb", "lr = 0.1  # how fast\nname = 'a'", CURVE, tags=("parameters",))
    page = open_lab()
    ask(page, open_file(page, "curves.ipynb"))
    vary(page, lr="0.1, 0.5, 1", name="a\nb")
    dialog(page).get_by_role("radio", name="Side by side").check()
    expect(dialog(page).get_by_text("need equally many values: lr (3), name (2)")).to_be_visible()
    expect(send_button(page)).to_be_disabled()
    assert_accessible(page, ".jp-ToJobDialog")
    dialog(page).get_by_label("name", exact=True).fill("a\nb\nbest, by far")
    asked(page)
    send_button(page).click()
    told = toast(page, "3 jobs were submitted as the group curves-sweep-")
    group = told.inner_text().split("the group ")[1].split()[0]
    told.get_by_role("button", name="Results").click()
    view = results(page, group)
    expect(view.get_by_text("3 jobs: 3 succeeded", exact=True)).to_be_visible(timeout=END_TIMEOUT)
    expect(view.locator("svg path.jp-mod-series0")).to_have_count(3)
    picture = view.get_by_role("button", name="Show curve").first
    expect(picture).to_be_visible()
    assert_accessible_in_all_themes(page, ".jp-ToJobResults")
    for theme in ("dark", "light"):
        choose_theme(page, theme)
        screenshot(f"sweep-curves-{theme}")
    picture.click()
    large = page.get_by_role("dialog").get_by_role("img")
    expect(large).to_have_js_property("naturalWidth", 90)
    page.get_by_role("button", name="Close").click()

    view.get_by_role("button", name="Rerun with Changes…").click()
    asked(page)
    expect(dialog(page)).to_contain_text(f"The new job joins the group {group}.")
    page.keyboard.press("Escape")
    expect(dialog(page)).to_have_count(0)
    view.get_by_role("button", name="Copy Parameters into Notebook").click()
    editor = page.locator(".jp-NotebookPanel:not(.lm-mod-hidden) .jp-Cell .cm-content").first
    expect(editor).to_have_text('lr = 1  # how fastname = "best, by far"')
    again = ask(page, page.locator(".jp-NotebookPanel:not(.lm-mod-hidden)"))
    expect(again.locator("summary", has_text="Parameters (2)")).to_be_visible()  # none differs
    page.keyboard.press("Escape")
    expect(again).to_have_count(0)
    editor.click()
    page.keyboard.press("Control+z")
    expect(editor).to_have_text("lr = 0.1  # how fastname = 'a'")


@pytest.mark.parametrize("lab", [LAB], indirect=True)
def test_a_group_is_cancelled_and_deleted_after_one_question(
    lab: Lab, open_lab: Callable[[], Page]
) -> None:
    lab.write("slow.ipynb", "a = 0", "import time; time.sleep(600)", tags=("parameters",))
    page = open_lab()
    ask(page, open_file(page, "slow.ipynb"))
    vary(page, a="1, 2, 3")
    dialog(page).get_by_label("Group").fill("slow")
    dialog(page).get_by_label("How many run at once").fill("1")
    asked(page)
    send_button(page).click()
    show(page)
    panel = jobs_panel(page)
    expect(panel.get_by_text("3 jobs: 1 running, 2 queued")).to_be_visible(timeout=END_TIMEOUT)
    panel.get_by_role("button", name="slow", exact=True).click()
    expect(panel.get_by_role("article")).to_have_count(4)
    held = panel.get_by_text("At most 1 job of the group slow may run at once")
    expect(held).to_have_count(2)
    panel.get_by_role("button", name="Cancel the jobs of slow").click()
    page.get_by_role("dialog", name="Cancel 3 jobs of slow?").get_by_role(
        "button", name="Cancel Jobs"
    ).click()
    expect(panel.get_by_text("3 jobs: 3 cancelled")).to_be_visible(timeout=END_TIMEOUT)
    panel.get_by_role("button", name="Delete the jobs of slow").click()
    page.get_by_role("dialog", name="Delete 3 jobs of slow?").get_by_role(
        "button", name="Delete Jobs"
    ).click()
    expect(panel.get_by_role("article")).to_have_count(0)


@pytest.mark.parametrize(
    "lab",
    [
        {
            "catalog": CATALOG,
            "settings": {"@jupyterlab/translation-extension/plugin": {"locale": "zh_TW"}},
            **NOTHING_RUNS,
        }
    ],
    indirect=True,
)
def test_a_sweep_is_said_in_chinese(
    lab: Lab, open_lab: Callable[[], Page], screenshot: Callable[[str], None]
) -> None:
    words = CHINESE["zh_TW"]
    lab.write("train.ipynb", "lr = 0.1\nname = 'a'", "print(lr)", tags=("parameters",))
    page = open_lab()
    file_item(page, "train.ipynb").dblclick()
    page.locator(".jp-NotebookPanel-toolbar").get_by_role("button", name=words.submit).click()
    asking = page.get_by_role("dialog", name=words.submit)
    asking.locator("summary", has_text="參數").click()
    for name, text in {"lr": "0.1, 0.2, 0.3", "name": "a"}.items():
        asking.get_by_role("button", name=f"{name} 用多個值").click()
        asking.get_by_label(name, exact=True).fill(text)
    asking.get_by_role("checkbox", name="在多種規格或裝置上執行").check()
    expect(asking.get_by_text(words.checking)).to_have_count(0)
    assert_translated(asking, "zh_TW")
    screenshot("sweep-dialog-zh_TW")
    asking.get_by_role("button", name=words.send).click()
    told = toast(page, "3 個作業")
    told.get_by_role("button", name="結果").click()
    view = page.get_by_role("region", name="的結果")
    expect(view.get_by_text("成功 3 個")).to_be_visible(timeout=END_TIMEOUT)
    assert_translated(view, "zh_TW")
    page.get_by_role("tab", name=re.compile(f"^{words.jobs}")).click()
    assert_translated(page.get_by_role("region", name=words.jobs), "zh_TW")
    screenshot("sweep-results-zh_TW")
