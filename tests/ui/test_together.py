"""Two people in one notebook: with jupyter-collaboration, one submits while the other types.

``JUPYTER_TO_JOB_TOGETHER_PYTHON`` names the interpreter of an environment that has it, too.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, expect
from pytest_playwright import CreateContextCallback

from tests.ui.lab import Lab
from tests.ui.steps import (
    POST,
    SOURCES,
    ask,
    cells,
    dialog,
    give_up,
    job_names,
    open_notebook,
    outputs,
    send,
    send_button,
    snapshot,
    toast,
    visit,
    wait_until,
)

PYTHON = os.environ.get("JUPYTER_TO_JOB_TOGETHER_PYTHON", "")
pytestmark = pytest.mark.skipif(
    not PYTHON, reason="JUPYTER_TO_JOB_TOGETHER_PYTHON names no environment"
)

TYPIST = """() => {
    let count = 0;
    const type = () => document.execCommand('insertText', false, ` ${(count += 1)}`);
    window.typist = setInterval(type, 50);
}"""
"""Somebody who types numbers where the cursor stands, and does not stop for anybody."""


def wait_patiently(page: Page) -> None:
    """Answer jupyter-collaboration, which asks what to do when a document takes long to load."""
    question = page.locator(".jp-Dialog").filter(has_text="taking some time to load")
    page.add_locator_handler(
        question, lambda shown: shown.get_by_role("button", name="Continue waiting").click()
    )


def write_at_the_end(page: Page, panel: Locator, cell: int, text: str) -> None:
    panel.locator(".jp-Cell .cm-content").nth(cell).click()
    page.keyboard.press("Control+End")
    page.keyboard.type(text)


def sources(path: Path) -> list[str]:
    return ["".join(cell["source"]) for cell in cells(path)]


def send_twice(page: Page) -> str:
    """Send, get no answer although the server has taken it, and send again while others type."""
    page.route(POST, give_up)
    send_button(page).click()
    expect(dialog(page).get_by_role("alert")).to_contain_text("Sending again is safe")
    page.unroute(POST)
    return send(page)


@pytest.mark.parametrize("lab", [{"python": PYTHON}], indirect=True)
def test_one_submits_while_the_other_types(
    lab: Lab, open_lab: Callable[[], Page], new_context: CreateContextCallback
) -> None:
    source = lab.write("reports/study.ipynb", "print('both')", "# theirs:")
    page, other = open_lab(), new_context().new_page()
    wait_patiently(page)
    wait_patiently(other)
    mine = open_notebook(page, "reports", "study.ipynb")
    visit(other, lab.url)
    theirs = open_notebook(other, "reports", "study.ipynb")
    write_at_the_end(other, theirs, 1, "")
    other.evaluate(TYPIST)

    names: list[str] = []
    for count in range(1, 4):
        write_at_the_end(page, mine, 0, f"\nprint({count})")
        expect(theirs.locator(".jp-Cell").first).to_contain_text(f"print({count})")
        before = page.evaluate(SOURCES)
        ask(page, mine)
        page.wait_for_function(f"before => ({SOURCES})()[1] !== before", arg=before[1])
        name = send(page) if count < 3 else send_twice(page)
        after = page.evaluate(SOURCES)
        first, second = sources(snapshot(lab, name))
        assert first == before[0], "what both saw"
        assert second.startswith(before[1]), "what was seen of the other's before SEND"
        assert after[1].startswith(second), "what was seen of it afterwards"
        assert after[1] != before[1], "the other went on typing meanwhile"
        expect(toast(page, f"Submitted as {name}")).to_have_count(0)
        names.append(name)
    other.evaluate("() => clearInterval(window.typist)")

    def is_everywhere() -> bool:
        """The server saves every second, and a file that it is writing cannot be read."""
        with contextlib.suppress(json.JSONDecodeError):
            return bool(page.evaluate(SOURCES) == other.evaluate(SOURCES) == sources(source))
        return False

    wait_until(is_everywhere, "not every edit is on both screens and on disk")
    for each in (page, other):
        expect(each.locator(".jp-Dialog")).to_have_count(0)
        expect(each.locator(".Toastify__toast--error")).to_have_count(0)
    mine_at_the_end, theirs_at_the_end = sources(source)
    assert mine_at_the_end == "print('both')\nprint(1)\nprint(2)\nprint(3)"
    assert re.fullmatch(r"# theirs:( \d+)+", theirs_at_the_end)
    typed = [int(number) for number in theirs_at_the_end.split()[2:]]
    assert typed == list(range(1, len(typed) + 1)), "no keystroke was lost, none came twice"
    assert job_names(lab) == set(names)
    for count, name in enumerate(names, start=1):
        delivered = source.with_name(f"{name}.ipynb")
        wait_until(delivered.exists, f"{name} was not delivered")
        numbers = "".join(f"{number}\n" for number in range(1, count + 1))
        assert outputs(delivered) == f"both\n{numbers}"
