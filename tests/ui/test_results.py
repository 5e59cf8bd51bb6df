"""Results that are open as notebooks: no kernel starts, and they lead back to their source."""

from __future__ import annotations

import json
import re
import urllib.request
from collections.abc import Callable
from typing import Any

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Locator, Page, expect

from tests.ui.lab import TOKEN, Lab
from tests.ui.steps import END_TIMEOUT, choose_theme, row, show, toast, wait_until

SUBMIT = """async path => (await jupyterapp.commands.execute('jupyter-to-job:submit',
    { path, flavor: 'small' })).name"""
RUN = "async ([id, args]) => { await jupyterapp.commands.execute(id, args); }"
CELLS = """() => jupyterapp.shell.currentWidget.content.model.toJSON().cells
    .map(({ outputs }) => (outputs ?? []).map(output => output.text ?? output.ename).join())"""
ACTIVE = "() => jupyterapp.shell.currentWidget.content.activeCellIndex"
CURRENT = "() => jupyterapp.shell.currentWidget.context.path"
EDIT = """([index, text]) => jupyterapp.shell.currentWidget.content.model.cells
    .get(index).sharedModel.setSource(text)"""


def sessions(lab: Lab) -> list[Any]:
    """The kernels that the server has started for notebooks."""
    request = urllib.request.Request(
        f"http://127.0.0.1:{lab.port}/api/sessions", headers={"Authorization": f"token {TOKEN}"}
    )
    with urllib.request.urlopen(request, timeout=30) as answer:
        found: list[Any] = json.load(answer)
    return found


def notebook(page: Page) -> Locator:
    return page.locator(".jp-NotebookPanel:not(.lm-mod-hidden)")


def finished(page: Page, name: str) -> Locator:
    """The row of a job, once there is something to open."""
    line = row(show(page), name)
    expect(line.get_by_role("button", name=re.compile("^Open the result"))).to_be_visible(
        timeout=END_TIMEOUT
    )
    return line


def open_result(page: Page, name: str) -> Locator:
    finished(page, name).get_by_role("button", name=re.compile("^Open the result")).click()
    bar = notebook(page).get_by_role("region", name=f"Result of {name}")
    expect(bar).to_be_visible()
    return bar


def test_from_the_failed_cell_to_its_source(
    lab: Lab, open_lab: Callable[[], Page], screenshot: Callable[[str], None]
) -> None:
    lab.write("reports/study.ipynb", "print('first')", "1 / 0", "print('never')")
    page = open_lab()
    name = page.evaluate(SUBMIT, "reports/study.ipynb")
    bar = open_result(page, name)
    expect(notebook(page).get_by_text("No Kernel").first).to_be_visible()
    assert sessions(lab) == [], "a kernel was started"
    screenshot("result-failed")
    bar.get_by_role("button", name="Failed Cell in the Source").click()
    page.wait_for_function(f"() => ({CURRENT})() === 'reports/study.ipynb'")
    page.wait_for_function(f"() => ({ACTIVE})() === 1")
    expect(notebook(page).locator(".jp-mod-active .cm-content")).to_have_text("1 / 0")
    expect(notebook(page).get_by_role("region", name=re.compile("^Result of"))).to_have_count(0)


def test_a_cancelled_result_is_no_failure(
    lab: Lab, open_lab: Callable[[], Page], screenshot: Callable[[str], None]
) -> None:
    lab.write("reports/long.ipynb", "print('first')", "import time; time.sleep(600)")
    page = open_lab()
    name = page.evaluate(SUBMIT, "reports/long.ipynb")
    line = row(show(page), name)
    expect(line.get_by_role("progressbar")).to_have_attribute(
        "aria-valuetext", "cell 2 of 2", timeout=END_TIMEOUT
    )
    line.get_by_role("button", name=f"Cancel {name}").click()
    page.get_by_role("dialog").get_by_role("button", name="Cancel Job").click()
    bar = open_result(page, name)
    expect(bar.get_by_role("button", name="Stopped Cell in the Source")).to_be_visible()
    expect(notebook(page).get_by_text("The run stopped here:", exact=True)).to_be_visible()
    expect(notebook(page).get_by_text("encountered an exception")).to_have_count(0)
    screenshot("result-cancelled")


def test_outputs_are_brought_back(
    lab: Lab, open_lab: Callable[[], Page], screenshot: Callable[[str], None]
) -> None:
    lab.write("reports/study.ipynb", "print('one')", "print('two')", "print('three')")
    page = open_lab()
    name = page.evaluate(SUBMIT, "reports/study.ipynb")
    finished(page, name)
    page.evaluate(RUN, ["docmanager:open", {"path": "reports/study.ipynb"}])
    expect(notebook(page).locator(".jp-Cell").nth(2)).to_be_visible()
    page.evaluate(EDIT, [1, "print('two')\nprint('and more')"])
    open_result(page, name).get_by_role("button", name="Bring Outputs Back…").click()

    asked = page.get_by_role("dialog", name="Bring Outputs Back")
    expect(asked.get_by_role("listitem")).to_have_count(3)
    expect(asked.get_by_text("Left out: 1 cell has other code now.")).to_be_visible()
    asked.get_by_text("Difference").click()
    expect(asked.locator("pre")).to_have_text("  print('two')\n+ print('and more')\n")
    screenshot("bring-back")
    found = Axe().run(page, context=[".jp-ToJob-bringBack", ".jp-ToJob-resultBar"])
    assert found.violations_count == 0, found.generate_report()
    choose_theme(page, "dark")
    screenshot("bring-back-dark")
    choose_theme(page, "light")
    asked.get_by_role("button", name="Copy Outputs of 2 Cells").click()

    told = toast(page, "Outputs of 2 cells were copied. Left out: 1 cell has other code now.")
    expect(told).to_be_visible()
    told.hover()  # it stays while the mouse is on it
    page.wait_for_function(f"() => ({CURRENT})() === 'reports/study.ipynb'")
    assert page.evaluate(CELLS) == ["one\n", "", "three\n"]
    cells = notebook(page).locator(".jp-Notebook-cell")
    expect(cells.nth(0).locator(".jp-OutputArea-output")).to_have_text("one\n")
    expect(cells.nth(0).locator(".jp-InputPrompt")).to_have_text("[1]:")
    screenshot("brought-back")
    told.get_by_role("button", name="Undo").click()
    wait_until(lambda: page.evaluate(CELLS) == ["", "", ""], "it was not undone")
    expect(cells.nth(0).locator(".jp-OutputArea-output")).to_have_count(0)
    # And by a user's own undo.
    page.evaluate("() => void jupyterapp.commands.execute('jupyter-to-job:bring-back')")
    asked.get_by_role("button", name="Copy Outputs of 2 Cells").click()
    wait_until(lambda: page.evaluate(CELLS) == ["one\n", "", "three\n"], "it was not copied")
    page.evaluate(RUN, ["notebook:undo-cell-action", {}])
    wait_until(lambda: page.evaluate(CELLS) == ["", "", ""], "it was not undone")


LARGE = "for n in range(25):\n    print(str(n) * 500_000)\n    display(n)"


def test_a_large_result_opens_without_its_outputs(
    lab: Lab, open_lab: Callable[[], Page], screenshot: Callable[[str], None]
) -> None:
    lab.write("reports/large.ipynb", LARGE, "print('small')")
    page = open_lab()
    name = page.evaluate(SUBMIT, "reports/large.ipynb")
    line = finished(page, name)
    line.get_by_role("button", name=re.compile("^Open the result")).click()
    asked = page.get_by_role("dialog", name="Open a Large Notebook?")
    expect(asked.get_by_text("MiB")).to_be_visible()
    screenshot("open-large")
    asked.get_by_role("button", name="Open Without Outputs").click()
    view = page.get_by_role("region", name=f"{name}, without its outputs")
    expect(
        view.get_by_text(re.compile(r"an output of [\d.]+ MiB is not shown here"))
    ).to_be_visible()
    expect(view.locator(".jp-InputPrompt").first).to_have_text("[1]:")
    expect(view.get_by_text("print('small')")).to_be_visible()
    screenshot("without-outputs")
    assert sessions(lab) == []
