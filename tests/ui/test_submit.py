"""SUBMIT JOB as a user meets it: an edit, two clicks, a name, a toast, a notebook."""

from __future__ import annotations

import os
import re
from collections.abc import Callable

import nbformat
import pytest
from nbformat.sign import NotebookNotary
from playwright.sync_api import Page, Request, expect

from tests.ui.lab import DARK, NOTHING_RUNS, Lab
from tests.ui.steps import (
    END_TIMEOUT,
    NO_POLL,
    ask,
    asked,
    at_most,
    cells,
    file_item,
    flavor,
    open_notebook,
    outputs,
    send_button,
    snapshot,
    submit,
    toast,
    told_name,
    wait_for_kernel,
    wait_until,
)

FADING = "[class*='-exit'] { animation-duration: 600s !important; }"
"""Lets a notification that goes away fade for as long as a test takes."""

BESIDE = """label => {
    const { shell } = jupyterapp;
    const widget = [...shell.widgets('main')].find(({ title }) => title.label === label);
    shell.add(widget, 'main', { mode: 'split-right' });
    shell.activateById(widget.id);
}"""
"""Moves a tab to the right half of the main area."""

NAME_WITHIN = 300
"""Milliseconds from SEND to the job's name on the screen."""

WATCH = """() => {
    document.addEventListener('click', ({ target }) => {
        if (target.closest('.jp-ToJobDialog-send')) {
            const sent = performance.now();
            const watcher = new MutationObserver(() => {
                if (document.body.textContent.includes('Submitted as')) {
                    window.shownAfter = performance.now() - sent;
                    watcher.disconnect();
                }
            });
            watcher.observe(document.body, { childList: true, subtree: true });
        }
    }, true);
}"""
"""Measures in the page itself how long it takes from SEND to the name."""

TRUSTED = """() => [...jupyterapp.shell.currentWidget.content.widgets]
    .filter(({ model }) => model.type === 'code').every(({ model }) => model.trusted)"""
"""Whether every code cell of the current notebook is trusted."""


LARGE = int(os.environ.get("JUPYTER_TO_JOB_LARGE", "10000000"))
"""Bytes of a large notebook."""

FROZEN = 200
"""Milliseconds for which nobody notices that a page stands still."""

TICK = """() => {
    let last = performance.now();
    window.frozen = 0;
    const tick = () => {
        window.frozen = Math.max(window.frozen, performance.now() - last);
        last = performance.now();
        setTimeout(tick);
    };
    tick();
}"""
"""Measures in the page itself for how long it did nothing else, at the most."""


def wait_for_signature(lab: Lab, path: str) -> None:
    """Wait until a result is signed: the delivery waits for that, but not for ever."""
    notary = NotebookNotary(data_dir=str(lab.base / "data"))
    wait_until(
        lambda: notary.check_signature(nbformat.read(lab.root / path, as_version=4)),
        f"{path} was not signed",
    )


def test_an_unsaved_edit_comes_back_executed(
    lab: Lab, open_lab: Callable[[], Page], screenshot: Callable[[str], None]
) -> None:
    source = lab.write(
        "reports/study.ipynb", "print('as it was')", "word = 'kept'\nword", "print(word)"
    )
    lab.write("reports/decoy.ipynb", "print('not this one')")
    on_disk = source.read_bytes()
    page = open_lab()
    panel = open_notebook(page, "reports", "study.ipynb")
    wait_for_kernel(page)  # later, JupyterLab might save once more what it says

    panel.locator(".jp-Cell .cm-content").first.click()
    page.keyboard.press("Control+End")
    page.keyboard.press("Enter")
    page.keyboard.type("print(6 * 7)")
    assert source.read_bytes() == on_disk, "the edit is on the screen only"
    file_item(page, "decoy.ipynb").click()  # the button must not care what is selected there
    screenshot("button")

    page.evaluate(NO_POLL)
    ask(page, panel)
    saved = source.read_bytes()
    assert "print(6 * 7)" in "".join(cells(source)[0]["source"])
    flavor(page, "Medium").check()
    page.evaluate(WATCH)
    send_button(page).click()
    name = told_name(page)
    assert re.fullmatch(r"study-[a-z2-7]{8}", name)
    assert page.evaluate("() => window.shownAfter") < at_most(NAME_WITHIN)
    assert snapshot(lab, name).read_bytes() == saved, "what was saved is what was frozen"
    screenshot("submitted")

    finished = toast(page, re.compile(f"{name} finished in [0-9.]+ s"))
    expect(finished).to_be_visible(timeout=END_TIMEOUT)
    finished.hover()  # it stays while the mouse is on it
    expect(file_item(page, f"{name}.ipynb")).to_be_visible()
    screenshot("finished")

    assert outputs(lab.root / "reports" / f"{name}.ipynb") == "as it was\n42\nkept\n"
    assert source.read_bytes() == saved, "the source is what the save wrote"
    assert outputs(source) == ""
    assert {path.name for path in source.parent.glob("*.ipynb")} == {
        "study.ipynb",
        "decoy.ipynb",
        f"{name}.ipynb",
    }

    wait_for_signature(lab, f"reports/{name}.ipynb")
    finished.get_by_role("button", name="Open").click()
    result = page.locator(".jp-NotebookPanel:not(.lm-mod-hidden)")
    expect(result.locator(".jp-CodeCell .jp-Cell-outputArea")).to_have_text(
        [re.compile("as it was\\s+42"), re.compile("'kept'"), re.compile("kept")]
    )
    assert page.evaluate(TRUSTED), "the result was signed"
    screenshot("result")


def test_a_job_that_ends_while_its_first_notification_fades(
    lab: Lab, open_lab: Callable[[], Page]
) -> None:
    go = lab.root / "go"
    wait = f"while not pathlib.Path({str(go)!r}).exists():\n    time.sleep(0.05)"
    lab.write("reports/study.ipynb", f"import pathlib, time\n{wait}")
    page = open_lab()
    panel = open_notebook(page, "reports", "study.ipynb")
    page.add_style_tag(content=FADING)
    name = submit(page, panel)
    toast(page, "Submitted as").get_by_title("Hide notification").click()
    go.touch()
    expect(toast(page, f"{name} finished")).to_be_visible(timeout=END_TIMEOUT)


@pytest.mark.parametrize("lab", [{"settings": DARK}], indirect=True)
def test_a_raising_cell_is_told_and_delivered(
    lab: Lab, open_lab: Callable[[], Page], screenshot: Callable[[str], None]
) -> None:
    lab.write("reports/broken.ipynb", "print('got this far')", "1 / 0", "print('never')")
    page = open_lab()
    panel = open_notebook(page, "reports", "broken.ipynb")
    page.evaluate(NO_POLL)

    name = submit(page, panel)
    failed = toast(page, f"{name} failed: cell")
    expect(failed).to_be_visible(timeout=END_TIMEOUT)
    failed.hover()  # it stays while the mouse is on it
    expect(file_item(page, f"{name}.ipynb")).to_be_visible()
    screenshot("failed-dark")

    delivered = lab.root / "reports" / f"{name}.ipynb"
    assert outputs(delivered) == "got this far\n"
    assert "papermill-error-cell-tag" in cells(delivered)[0]["metadata"]["tags"]

    failed.get_by_role("button", name="Open").click()
    result = page.locator(".jp-NotebookPanel:not(.lm-mod-hidden)")
    expect(result.get_by_text("ZeroDivisionError").first).to_be_visible()
    expect(result.locator(".jp-Cell.jp-mod-active")).to_contain_text("1 / 0")
    expect(result.locator(".jp-Cell.jp-mod-active")).to_be_in_viewport()
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
    finished = toast(page, f"{name} finished")
    expect(finished).to_be_visible(timeout=END_TIMEOUT)
    finished.hover()  # it stays while the mouse is on it
    screenshot("side-by-side")
    (result,) = (lab.root / "reports").glob("*-*.ipynb")
    assert result.name == f"{name}.ipynb"

    result.unlink()
    finished.get_by_role("button", name="Open").click()
    expect(page.locator(".jp-Notification-Toast-error")).to_contain_text(result.name)


@pytest.mark.parametrize("lab", [NOTHING_RUNS], indirect=True)
def test_a_large_notebook_freezes_nothing(lab: Lab, open_lab: Callable[[], Page]) -> None:
    source = lab.write("reports/large.ipynb", "1", *(f"print({count})" for count in range(100)))
    notebook = nbformat.read(source, as_version=4)
    for cell in notebook.cells[1:]:
        picture = {"image/png": "A" * (LARGE // 100)}
        cell.outputs = [nbformat.v4.new_output("display_data", data=picture)]
    nbformat.write(notebook, source)
    page = open_lab()
    file_item(page, "reports").dblclick()
    bodies: list[int] = []

    def weigh(request: Request) -> None:
        if "/jupyter-to-job/api/" in request.url:
            bodies.append(len(request.post_data_buffer or b""))

    page.on("request", weigh)
    file_item(page, "large.ipynb").click(button="right")
    page.evaluate(TICK)
    page.get_by_role("menuitem", name="SUBMIT JOB").click()
    asked(page)
    send_button(page).click()
    unopened = told_name(page)
    assert page.evaluate("() => window.frozen") < at_most(FROZEN)
    assert snapshot(lab, unopened).read_bytes() == source.read_bytes()

    # Open and changed, it is saved by JupyterLab, as large as it is; we add nothing to that.
    file_item(page, "large.ipynb").dblclick()
    panel = page.locator(".jp-NotebookPanel:not(.lm-mod-hidden)")
    panel.locator(".jp-Cell .cm-content").first.click()
    page.keyboard.press("Control+End")
    page.keyboard.type(" + 1")
    expect(toast(page, "Submitted as")).to_have_count(0)
    opened = submit(page, panel)
    assert snapshot(lab, opened).read_bytes() == source.read_bytes()
    assert "".join(cells(source)[0]["source"]) == "1 + 1"
    assert max(bodies) < 10_000, "the notebook itself was sent"
