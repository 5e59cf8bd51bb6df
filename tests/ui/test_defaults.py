"""What the dialog begins with by the user's settings, and variables whose values nobody keeps."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.ui.lab import DARK, NOTHING_RUNS, Lab
from tests.ui.steps import (
    END_TIMEOUT,
    ask,
    asked,
    dialog,
    flavor,
    open_notebook,
    outputs,
    problems,
    send_button,
    toast,
    told_name,
)

ROOT = Path(__file__).parents[2]
CATALOG = """apiVersion: jupyter-to-job.io/v1
default: {flavor: small, device: cpu}
flavors:
  small: {title: Small, cpu: 1, memory: 1Gi, devices: [cpu]}
  wide: {title: Wide, cpu: 1, memory: 1Gi, devices: [cpu, second]}
devices:
  cpu: {title: CPU}
  second: {title: Second}
"""
SET = {
    "catalog": CATALOG,
    "settings": {
        "jupyter-to-job/submit": {
            "flavor": "wide",
            "device": "second",
            "resultsFolder": "results/{notebook}/",
        }
    },
}


def section(page: Page, label: str) -> Locator:
    found = dialog(page).locator("details").filter(has=page.locator("summary", has_text=label))
    if not found.evaluate("details => details.open"):
        found.locator("summary").click()
    return found


@pytest.mark.parametrize("lab", [SET], indirect=True)
def test_settings_choose_flavor_device_and_the_place_of_results(
    lab: Lab, open_lab: Callable[[], Page], screenshot: Callable[[str], None]
) -> None:
    lab.write("reports/study.ipynb", "print(6 * 7)")
    page = open_lab()
    panel = open_notebook(page, "reports", "study.ipynb")
    ask(page, panel)
    expect(flavor(page, "Wide")).to_be_checked()
    expect(dialog(page).get_by_role("radio", name="Second")).to_be_checked()
    more = section(page, "Time limit")
    folder = more.get_by_label("Where the result goes")
    expect(folder).to_have_attribute("placeholder", "reports/results/study/")
    expect(folder).to_have_value("")
    expect(problems(page)).to_have_count(0)  # it is made when it is needed
    screenshot("dialog-defaults")
    assert not (lab.root / "reports" / "results").exists()
    send_button(page).click()
    name = told_name(page)
    expect(toast(page, re.compile(f"{name} finished in "))).to_be_visible(timeout=END_TIMEOUT)
    assert outputs(lab.root / "reports" / "results" / "study" / f"{name}.ipynb") == "42\n"

    ask(page, panel)  # what a job chose counts more than a setting
    flavor(page, "Small").check()
    section(page, "Time limit").get_by_label("Where the result goes").fill("reports/other.ipynb")
    send_button(page).click()
    told_name(page)
    expect(dialog(page)).to_have_count(0)
    ask(page, panel)
    expect(flavor(page, "Small")).to_be_checked()
    expect(section(page, "Time limit").get_by_label("Where the result goes")).to_have_value(
        "reports/other.ipynb"
    )


@pytest.mark.parametrize("lab", [{"settings": DARK}], indirect=True)
def test_variables_are_hidden_and_only_their_names_remembered(
    lab: Lab, open_lab: Callable[[], Page], screenshot: Callable[[str], None]
) -> None:
    lab.write("reports/study.ipynb", "import os; print(len(os.environ['HF_TOKEN']))")
    page = open_lab()
    panel = open_notebook(page, "reports", "study.ipynb")
    ask(page, panel)
    variables = section(page, "Environment variables")
    variables.get_by_role("button", name="Add a Variable").click()
    name_field = variables.get_by_label("Name of the variable")
    expect(name_field).to_be_focused()
    page.keyboard.insert_text("HF_TOKEN=hf_something-secret")
    value = variables.get_by_label("Value of HF_TOKEN", exact=True)
    expect(value).to_have_attribute("type", "password")
    expect(value).to_have_value("hf_something-secret")
    variables.get_by_role("button", name="Show the value of HF_TOKEN").click()
    expect(value).to_have_attribute("type", "text")
    screenshot("dialog-variables")
    variables.get_by_role("button", name="Show the value of HF_TOKEN").click()
    variables.get_by_role("button", name="Add a Variable").click()
    variables.get_by_label("Name of the variable").last.fill("HF_TOKEN")
    expect(problems(page).filter(has_text="no name of its own")).to_be_visible()
    variables.get_by_role("button", name="Remove HF_TOKEN").last.click()
    expect(variables.get_by_role("button", name="Add a Variable")).to_be_focused()
    asked(page)
    send_button(page).click()
    job = told_name(page)
    expect(toast(page, re.compile(f"{job} finished in "))).to_be_visible(timeout=END_TIMEOUT)
    assert outputs(lab.root / "reports" / f"{job}.ipynb") == "19\n"

    ask(page, panel)
    expect(problems(page)).to_have_text(
        [re.compile("^This variable has no value and is not set: HF_TOKEN.")]
    )
    variables = section(page, "Environment variables (1)")
    expect(variables.get_by_label("Value of HF_TOKEN", exact=True)).to_have_value("")
    screenshot("dialog-variable-without-value")
    kept = page.evaluate("() => JSON.stringify([{ ...localStorage }, { ...sessionStorage }])")
    assert "something-secret" not in kept
    for path in [*lab.base.glob("workspaces/*"), *lab.base.glob("settings/**/*.*")]:
        assert "something-secret" not in path.read_text()
    variables.get_by_role("button", name="Remove HF_TOKEN").click()
    expect(problems(page)).to_have_count(0)


IS_OPEN = """path => [...jupyterapp.shell.widgets('main')]
    .some(({ context }) => context?.path === path)"""
KERNEL_IS_KNOWN = """async path => {
    const widgets = [...jupyterapp.shell.widgets('main')];
    const { context } = widgets.find(({ context }) => context?.path === path);
    await context.ready;
    await context.sessionContext.ready;
    await context.sessionContext.session.kernel.info;
}"""
"""Waits until a notebook is loaded, and its kernel has told its language: JupyterLab writes it."""


@pytest.mark.parametrize("lab", [NOTHING_RUNS], indirect=True)
def test_the_example_opens_unchanged(lab: Lab, open_lab: Callable[[], Page]) -> None:
    for name in ("digits", "failing"):
        shutil.copytree(ROOT / "examples" / name, lab.root / name)
    notebooks = list(lab.root.glob("*/*.ipynb"))
    subprocess.run([ROOT / "scripts" / "python-version", lab.python, *notebooks], check=True)
    before = {path: json.loads(path.read_text()) for path in notebooks}
    page = open_lab()
    for name in ("failing", "digits"):
        path = f"{name}/{name}.ipynb"
        panel = open_notebook(page, *path.split("/"))
        page.wait_for_function(IS_OPEN, arg=path, timeout=END_TIMEOUT)
        page.evaluate(KERNEL_IS_KNOWN, path)
        idle = panel.locator(".jp-Notebook-ExecutionIndicator[data-status=idle]")
        expect(idle).to_be_visible(timeout=END_TIMEOUT)
        page.locator(".jp-BreadCrumbs-home").click()
    dirty = """() => [...jupyterapp.shell.widgets('main')]
        .filter(({ context }) => context?.model.dirty).map(({ context }) => context.path)"""
    assert page.evaluate(dirty) == []
    assert {path: json.loads(path.read_text()) for path in notebooks} == before
