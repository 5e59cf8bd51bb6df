"""The dialog as a user meets it: choices, parameters, files, the server's word, and a keyboard."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.ui.lab import DARK, NOTHING_RUNS, Lab
from tests.ui.steps import (
    END_TIMEOUT,
    SOURCES,
    ask,
    asked,
    button,
    cells,
    dialog,
    file_item,
    flavor,
    job_names,
    open_notebook,
    outputs,
    problems,
    send_button,
    toast,
    told_name,
    wait_until,
)

CATALOG = """
apiVersion: jupyter-to-job.io/v1
default: {flavor: small, device: cpu}
flavors:
  small: {title: Small, description: Quick checks, cpu: 500m, memory: 1Gi, devices: [cpu],
    max_runtime: 2h}
  medium: {title: Medium, description: Data preparation, cpu: 1, memory: 2Gi, devices: [cpu],
    max_runtime: 8h}
  huge: {title: Huge, description: A machine for itself, cpu: 64, memory: 512Gi, devices: [cpu],
    max_runtime: 3d}
  gpu-part: {title: Part of a GPU, description: Trying out, cpu: 1, memory: 2Gi, gpus: 1,
    devices: [shared, slice], max_runtime: 8h}
  gpu: {title: One GPU, description: Training, cpu: 1, memory: 2Gi, gpus: 1, devices: [t4],
    max_runtime: 1d}
  team: {title: Research, description: Two GPUs, cpu: 1, memory: 2Gi, gpus: 2, devices: [t4],
    max_runtime: 2d, allowed: {groups: [research]}}
devices:
  cpu: {title: CPU}
  t4: {title: NVIDIA T4, resource: nvidia.com/gpu, isolation: full}
  slice: {title: 1/20 of an A100, description: 4 GB of its memory, resource: example.com/slice,
    isolation: software}
  shared: {title: A shared GPU, resource: example.com/shared, isolation: none}
"""
CAPACITY = "cpu=4,memory=16Gi,nvidia.com/gpu=2,example.com/slice=20,example.com/shared=3"
MACHINE = {"JUPYTER_TO_JOB_CAPACITY": CAPACITY}
WITH_GPUS = {"catalog": CATALOG, "variables": MACHINE}

PARAMETERS = """epochs: int = 3  # How often the data are seen
rate = 0.1
verbose = False
title = 'A first try'
layers = [64, 32]
seed = None
limit = 60 * 60"""
PRINTED = "import json; print(json.dumps([epochs, rate, verbose, title, layers, seed, limit]))"

SUBMIT_KEYS = "Control+Alt+Enter"


def section(page: Page, label: str) -> Locator:
    """Unfold a section of the dialog, unless it is so because an earlier job changed it."""
    found = dialog(page).locator("details").filter(has_text=re.compile(f"^{label}"))
    if found.get_attribute("open") is None:
        found.locator("summary").click()
    return found


def written(lab: Lab, name: str) -> dict[str, Any]:
    """What the server has on record of a job."""
    request: dict[str, Any] = json.loads((lab.exchange / name / "request.json").read_text())
    return request


def delivered(lab: Lab, page: Page, name: str) -> Path:
    expect(toast(page, f"{name} finished")).to_be_visible(timeout=END_TIMEOUT)
    return lab.root / "reports" / f"{name}.ipynb"


@pytest.mark.parametrize("lab", [WITH_GPUS], indirect=True)
def test_what_was_chosen_is_what_runs_and_is_remembered(
    lab: Lab, open_lab: Callable[[], Page], screenshot: Callable[[str], None]
) -> None:
    lab.write("reports/train.ipynb", PARAMETERS, PRINTED, tags=("parameters",))
    page = open_lab()
    panel = open_notebook(page, "reports", "train.ipynb")
    ask(page, panel)
    expect(flavor(page, "Small")).to_be_checked()
    expect(flavor(page, "Huge")).to_have_count(0)  # folded away
    dialog(page).get_by_text("2 more are not available here").click()
    expect(flavor(page, "Huge")).to_be_disabled()
    expect(dialog(page).get_by_text("Needs 64 CPUs; there are 4 CPUs in all.")).to_be_visible()
    expect(flavor(page, "Research")).to_be_disabled()
    expect(dialog(page).get_by_text("For the groups research.")).to_be_visible()

    flavor(page, "Part of a GPU").check()
    expect(dialog(page).get_by_role("radio", name=re.compile("A shared GPU"))).to_be_checked()
    expect(dialog(page).get_by_text("3 of 3 free now")).to_be_visible()
    expect(dialog(page).get_by_text("nothing keeps you apart")).to_be_visible()
    expect(dialog(page).get_by_text("software isolation")).to_be_visible()
    dialog(page).get_by_role("radio", name="1/20 of an A100").check()
    screenshot("dialog-gpu")

    fields = section(page, "Parameters")
    expect(fields.get_by_label("epochs", exact=True)).to_have_value("3")
    expect(fields.get_by_text("How often the data are seen")).to_be_visible()
    fields.get_by_label("epochs", exact=True).fill("many")
    expect(fields.get_by_text("A whole number, such as 42.")).to_be_visible()
    expect(send_button(page)).to_be_disabled()
    fields.get_by_label("epochs", exact=True).fill("5")
    fields.get_by_label("verbose", exact=True).check()
    fields.get_by_label("title", exact=True).fill("Zweiter Versuch 試")
    fields.get_by_label("layers", exact=True).fill('[128, "wide"]')
    fields.get_by_label("seed", exact=True).fill("7")
    expect(fields.get_by_label("limit", exact=True)).to_have_attribute("placeholder", "60 * 60")
    expect(dialog(page).get_by_text("Parameters (7, 5 changed)")).to_be_visible()
    asked(page)
    screenshot("dialog-parameters")

    send_button(page).dblclick()
    name = told_name(page)
    expect(dialog(page)).to_have_count(0)
    assert job_names(lab) == {name}, "a double click is one job"
    request = written(lab, name)
    assert (request["flavor"], request["device"]) == ("gpu-part", "slice")
    assert request["parameters"] == {
        "epochs": 5,
        "verbose": True,
        "title": "Zweiter Versuch 試",
        "layers": [128, "wide"],
        "seed": 7,
    }
    printed = json.loads(outputs(delivered(lab, page, name)))
    assert printed == [5, 0.1, True, "Zweiter Versuch 試", [128, "wide"], 7, 3600]

    ask(page, panel)
    expect(dialog(page).get_by_role("radio", name="1/20 of an A100")).to_be_checked()
    expect(dialog(page).get_by_text("Parameters (7, 5 changed)")).to_be_visible()
    again = section(page, "Parameters")
    again.get_by_role("button", name="Reset title to the default").click()
    expect(again.get_by_label("title", exact=True)).to_have_value("A first try")
    dialog(page).get_by_text("Cancel", exact=True).click()
    expect(dialog(page)).to_have_count(0)


def test_two_keystrokes_submit_and_a_keyboard_is_enough(
    lab: Lab, open_lab: Callable[[], Page], screenshot: Callable[[str], None]
) -> None:
    lab.write("reports/study.ipynb", "print('ran')")
    page = open_lab()
    panel = open_notebook(page, "reports", "study.ipynb")
    panel.locator(".jp-Cell .cm-content").first.click()
    page.keyboard.press(SUBMIT_KEYS)
    asked(page)
    expect(send_button(page)).to_be_focused()
    page.keyboard.press("Escape")
    expect(dialog(page)).to_have_count(0)
    expect(panel.locator(".cm-content").first).to_be_focused()

    page.keyboard.press(SUBMIT_KEYS)
    asked(page)
    page.keyboard.press("Tab")  # round, to what closes the dialog
    page.keyboard.press("Tab")
    expect(flavor(page, "Small")).to_be_focused()
    page.keyboard.press("ArrowRight")
    expect(flavor(page, "Medium")).to_be_checked()
    more = dialog(page).locator("summary").filter(has_text="Time limit")
    more.focus()
    page.keyboard.press("Enter")  # unfolds, and does not send
    limit = dialog(page).get_by_label("Time limit")
    limit.focus()
    page.keyboard.type("soon")
    expect(problems(page)).to_contain_text("The time limit is no duration.")
    page.keyboard.press("Enter")
    expect(limit).to_have_value("soon")
    assert job_names(lab) == set()
    limit.fill("45m")
    asked(page)
    screenshot("dialog-more")
    page.keyboard.press("Enter")
    first = told_name(page)
    assert (written(lab, first)["flavor"], written(lab, first)["max_runtime"]) == ("medium", 2700)
    expect(dialog(page)).to_have_count(0)
    expect(panel.locator(".cm-content").first).to_be_focused()
    delivered(lab, page, first)
    expect(toast(page, f"Submitted as {first}")).to_have_count(0)  # it fades out

    page.keyboard.press(SUBMIT_KEYS)
    page.keyboard.press("Enter")
    second = told_name(page)
    assert job_names(lab) == {first, second}
    assert written(lab, second)["max_runtime"] == 2700, "the last choices are remembered"


@pytest.mark.parametrize("lab", [NOTHING_RUNS], indirect=True)
def test_no_key_after_the_shortcut_reaches_the_notebook(
    lab: Lab, open_lab: Callable[[], Page]
) -> None:
    lab.write("reports/study.ipynb", "print('ran')", "print('too')")
    page = open_lab()
    panel = open_notebook(page, "reports", "study.ipynb")
    browser = page.context.new_cdp_session(page)

    def are_sent(count: int) -> Callable[[], bool]:
        return lambda: len(job_names(lab)) == count

    editor = panel.locator(".jp-Cell .cm-content").first
    for count in range(1, 11):
        # The second half on a slow machine, where more happens between two keys.
        browser.send("Emulation.setCPUThrottlingRate", {"rate": 1 if count <= 5 else 4})
        editor.click()
        page.keyboard.press("Control+End")
        page.keyboard.type(".")  # unsaved: saving is under way while the dialog opens
        if count % 2 == 0:
            page.keyboard.press("Escape")  # the cell is selected: Enter would go into it
        page.keyboard.press(SUBMIT_KEYS)
        page.keyboard.press("Enter")
        wait_until(are_sent(count), "Enter did not send")
        expect(dialog(page)).to_have_count(0)
        assert page.evaluate(SOURCES) == ["print('ran')" + "." * count, "print('too')"]
    browser.send("Emulation.setCPUThrottlingRate", {"rate": 1})

    for key in ("Control", "Alt", "Enter"):
        page.keyboard.down(key)
    expect(dialog(page)).to_be_visible()
    page.keyboard.down("Enter")  # it repeats: the shortcut is held down
    asked(page)
    for key in ("Control", "Alt", "Enter"):
        page.keyboard.up(key)
    expect(send_button(page)).to_be_enabled()
    assert len(job_names(lab)) == 10
    assert all(cell["execution_count"] is None for cell in cells(lab.root / "reports/study.ipynb"))


def test_problems_are_told_before_anything_is_sent(
    lab: Lab, open_lab: Callable[[], Page], screenshot: Callable[[str], None]
) -> None:
    lab.write("reports/alien.ipynb", "print(1)", kernel="klingon")
    page = open_lab()
    file_item(page, "reports").dblclick()
    file_item(page, "alien.ipynb").click(button="right")
    page.get_by_role("menuitem", name="SUBMIT JOB").click()
    asked(page)
    blocking = problems(page).filter(has_text="klingon")
    expect(blocking).to_be_visible()
    expect(send_button(page)).to_be_disabled()
    expect(send_button(page)).to_have_accessible_description(re.compile("klingon"))
    screenshot("dialog-problem")
    send_button(page).press("Enter")
    expect(dialog(page)).to_be_visible()

    page.set_viewport_size({"width": 520, "height": 420})  # a large zoom, or a small window
    expect(blocking).to_be_visible()
    expect(send_button(page)).to_be_in_viewport()
    screenshot("dialog-narrow")
    page.keyboard.press("Escape")
    expect(dialog(page)).to_have_count(0)
    assert job_names(lab) == set()


@pytest.mark.parametrize("lab", [{"settings": DARK, **WITH_GPUS}], indirect=True)
def test_files_go_along_and_errors_keep_what_was_typed(
    lab: Lab, open_lab: Callable[[], Page], screenshot: Callable[[str], None]
) -> None:
    lab.write(
        "reports/study.ipynb", "import helpers", "print(helpers.WORD, open('data/a.csv').read())"
    )
    (lab.root / "reports" / "helpers.py").write_text("WORD = 'helped'")
    (lab.root / "reports" / "data").mkdir()
    (lab.root / "reports" / "data" / "a.csv").write_text("1,2")
    page = open_lab()
    panel = open_notebook(page, "reports", "study.ipynb")
    ask(page, panel)
    files = section(page, "Files")
    files.get_by_label("Isolated").check()
    expect(files.get_by_role("checkbox", name=re.compile("helpers.py"))).to_be_checked()
    files.get_by_label("Add a file").fill("reports/nothing.csv")
    page.keyboard.press("Enter")  # adds, and does not send
    expect(problems(page)).to_contain_text("nothing.csv")
    expect(send_button(page)).to_be_disabled()
    files.get_by_role("button", name="Remove reports/nothing.csv").click()
    asked(page)
    expect(problems(page)).to_have_count(0)
    files.get_by_label("Add a file").fill("reports/data/*.csv")
    files.get_by_role("button", name="Add").click()
    asked(page)
    expect(files.get_by_text(re.compile("^2 files, "))).to_be_visible()
    screenshot("dialog-files-dark")

    # The notebook on disk is another one now: the server refuses, and nothing typed is lost.
    lab.write("reports/study.ipynb", "print('of somebody else')")
    send_button(page).click()
    expect(dialog(page).get_by_role("alert")).to_contain_text("Not submitted")
    expect(files.get_by_text("reports/data/*.csv")).to_be_visible()
    expect(send_button(page)).to_be_focused()
    screenshot("dialog-refused-dark")
    dialog(page).get_by_text("Cancel", exact=True).click()

    # JupyterLab's own question about that goes first, and its answer counts.
    panel.locator(".cm-content").first.click()
    page.keyboard.type("# mine")
    button(panel).click()
    asks = page.locator(".jp-Dialog").filter(has=page.get_by_role("button", name="Overwrite"))
    asks.get_by_role("button", name="Cancel").click()
    expect(page.locator(".jp-Dialog")).to_have_count(0)
    expect(button(panel)).to_be_enabled()
    button(panel).click()
    page.get_by_role("button", name="Overwrite").click()
    asked(page)
    dialog(page).get_by_text("Cancel", exact=True).click()
    assert "# mine" in "".join(cells(lab.root / "reports" / "study.ipynb")[0]["source"])
    assert job_names(lab) == set()
