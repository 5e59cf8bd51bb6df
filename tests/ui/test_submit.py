"""SUBMIT JOB as a user meets it: an edit, a click, a name, a toast, a notebook."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.ui.lab import DARK, Lab

END_TIMEOUT = 90_000
"""Milliseconds that a small job may take here, its kernel's start included."""

SHOWN_TIMEOUT = 5_000
"""Milliseconds within which a delivered file must show: less than the file browser's own poll."""

BESIDE = """label => {
    const { shell } = jupyterapp;
    const widget = [...shell.widgets('main')].find(({ title }) => title.label === label);
    shell.add(widget, 'main', { mode: 'split-right' });
    shell.activateById(widget.id);
}"""
"""Moves a tab to the right half of the main area."""


def button(panel: Page | Locator) -> Locator:
    return panel.locator(".jp-NotebookPanel-toolbar").get_by_role("button", name="SUBMIT JOB")


def toast(page: Page, text: str | re.Pattern[str]) -> Locator:
    return page.locator(".Toastify__toast").filter(has_text=text)


def file_item(page: Page, name: str) -> Locator:
    return page.locator(".jp-DirListing-item").filter(has=page.get_by_text(name, exact=True))


def open_notebook(page: Page, folder: str, name: str) -> Locator:
    """Open a notebook as a user does, by double clicks in the file browser."""
    file_item(page, folder).dblclick()
    file_item(page, name).dblclick()
    panel = page.locator(".jp-NotebookPanel:not(.lm-mod-hidden)")
    expect(panel.locator(".jp-Notebook .jp-Cell").first).to_be_visible()
    expect(button(panel)).to_be_enabled()
    return panel


def submit(page: Page, panel: Locator) -> str:
    """Click SUBMIT JOB, and return the job's name as the page shows it."""
    button(panel).click()
    told = toast(page, "Submitted as")
    expect(told).to_be_visible()
    name = re.search(r"Submitted as ([a-z0-9-]+)", told.inner_text())
    assert name is not None, told.inner_text()
    return name.group(1)


def cells(path: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(path.read_text())["cells"]
    return found


def outputs(path: Path) -> str:
    """All text that the notebook's code cells have printed."""
    printed = [out for cell in cells(path) for out in cell.get("outputs", [])]
    return "".join("".join(out.get("text", "")) for out in printed)


def test_an_unsaved_edit_comes_back_executed(
    lab: Lab, open_lab: Callable[[], Page], screenshot: Callable[[str], None]
) -> None:
    source = lab.write("reports/study.ipynb", "print('as it was')")
    lab.write("reports/decoy.ipynb", "print('not this one')")
    on_disk = source.read_bytes()
    page = open_lab()
    panel = open_notebook(page, "reports", "study.ipynb")

    panel.locator(".jp-Cell .cm-content").first.click()
    page.keyboard.press("Control+End")
    page.keyboard.press("Enter")
    page.keyboard.type("print(6 * 7)")
    assert source.read_bytes() == on_disk, "the edit is on the screen only"
    file_item(page, "decoy.ipynb").click()  # the button must not care what is selected there
    screenshot("button")

    name = submit(page, panel)
    assert re.fullmatch(r"study-[a-z2-7]{8}", name)
    saved = source.read_bytes()
    assert "print(6 * 7)" in "".join(cells(source)[0]["source"])
    screenshot("submitted")

    finished = toast(page, f"{name} finished")
    expect(finished).to_be_visible(timeout=END_TIMEOUT)
    expect(file_item(page, f"{name}.ipynb")).to_be_visible(timeout=SHOWN_TIMEOUT)
    screenshot("finished")

    assert outputs(lab.root / "reports" / f"{name}.ipynb") == "as it was\n42\n"
    assert source.read_bytes() == saved, "the source is what the save wrote"
    assert outputs(source) == ""
    assert {path.name for path in source.parent.glob("*.ipynb")} == {
        "study.ipynb",
        "decoy.ipynb",
        f"{name}.ipynb",
    }

    finished.get_by_role("button", name="Open").click()
    result = page.locator(".jp-NotebookPanel:not(.lm-mod-hidden)")
    expect(result.locator(".jp-OutputArea-output").first).to_contain_text("42")
    screenshot("result")


@pytest.mark.parametrize("lab", [{"settings": DARK}], indirect=True)
def test_a_raising_cell_is_told_and_delivered(
    lab: Lab, open_lab: Callable[[], Page], screenshot: Callable[[str], None]
) -> None:
    lab.write("reports/broken.ipynb", "print('got this far')", "1 / 0", "print('never')")
    page = open_lab()
    panel = open_notebook(page, "reports", "broken.ipynb")

    name = submit(page, panel)
    failed = toast(page, f"{name} failed: ")
    expect(failed).to_be_visible(timeout=END_TIMEOUT)
    expect(file_item(page, f"{name}.ipynb")).to_be_visible(timeout=SHOWN_TIMEOUT)
    screenshot("failed-dark")

    delivered = lab.root / "reports" / f"{name}.ipynb"
    assert outputs(delivered) == "got this far\n"
    assert "papermill-error-cell-tag" in cells(delivered)[0]["metadata"]["tags"]

    failed.get_by_role("button", name="Open").click()
    result = page.locator(".jp-NotebookPanel:not(.lm-mod-hidden)")
    expect(result.get_by_text("ZeroDivisionError").first).to_be_visible()
    screenshot("failed-result-dark")


def test_a_button_submits_the_notebook_it_stands_on(
    lab: Lab, open_lab: Callable[[], Page], screenshot: Callable[[str], None]
) -> None:
    lab.write("reports/left.ipynb", "print('left')")
    lab.write("reports/right.ipynb", "print('right')")
    page = open_lab()
    open_notebook(page, "reports", "left.ipynb")
    file_item(page, "right.ipynb").dblclick()
    expect(page.get_by_role("tab", name="right.ipynb")).to_be_visible()
    page.evaluate(BESIDE, "right.ipynb")
    left = page.locator(".jp-NotebookPanel:not(.lm-mod-hidden)").first
    assert page.evaluate("() => jupyterapp.shell.currentWidget.title.label") == "right.ipynb"

    name = submit(page, left)
    assert name.startswith("left-")
    expect(toast(page, f"{name} finished")).to_be_visible(timeout=END_TIMEOUT)
    screenshot("side-by-side")
    results = {path.name for path in (lab.root / "reports").glob("*-*.ipynb")}
    assert results == {f"{name}.ipynb"}


@pytest.mark.parametrize(
    "lab",
    [{"arguments": ["--ServerApp.jpserver_extensions={'jupyter_to_job.server': False}"]}],
    indirect=True,
)
def test_without_the_server_part_the_button_says_so(lab: Lab, open_lab: Callable[[], Page]) -> None:
    lab.write("reports/study.ipynb", "print(1)")
    page = open_lab()
    button(open_notebook(page, "reports", "study.ipynb")).click()
    expect(toast(page, "the server part of Jupyter to Job is not installed")).to_be_visible()
