"""What a user does, and what the page then shows: the steps that tests of several screens share."""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from playwright.sync_api import Locator, Page, Route, expect

from tests.ui.lab import Lab

END_TIMEOUT = 90_000
"""Milliseconds that a small job may take here, its kernel's start included."""

STRICT = os.environ.get("JUPYTER_TO_JOB_STRICT") == "1"
"""Whether promised times are held to the letter: on a machine that does nothing else."""

PATIENCE = 10
"""How many times longer than promised something may take on a machine that others use, too."""

NO_POLL = """async () => {
    const { model } = [...jupyterapp.shell.widgets('left')].find(({ id }) => id === 'filebrowser');
    model._poll.frequency = { backoff: false, interval: 2147483647, max: 2147483647 };
    await model.refresh();
}"""
"""Takes its own poll from the file browser: what it shows from then on, it was told."""


SOURCES = """() => [...jupyterapp.shell.currentWidget.content.widgets]
    .map(({ model }) => model.sharedModel.getSource())"""
"""The cells of the current notebook, as they stand on the screen."""


POST = re.compile(r"/jupyter-to-job/api/jobs(\?\d+)?$")
"""Where submissions go; JupyterLab puts the time behind it, against caches."""

THEMES = {
    "light": "JupyterLab Light",
    "dark": "JupyterLab Dark",
    "contrast": "JupyterLab Dark High Contrast",
}
CHANGE_THEME = """async theme => {
    await jupyterapp.commands.execute('apputils:change-theme', { theme });
}"""


def give_up(route: Route) -> None:
    """Have the server take a request, and do as a proxy does that did not wait for the answer."""
    assert route.fetch().status in (200, 201)
    route.fulfill(status=504, body="<html>Gateway Time-out</html>")


def at_most(milliseconds: int) -> int:
    """The bound of a promised time: the promise itself, or one that holds on a busy machine."""
    return milliseconds if STRICT else milliseconds * PATIENCE


def wait_until(condition: Callable[[], object], what: str) -> None:
    """Wait for something that the page does not show."""
    deadline = time.monotonic() + END_TIMEOUT / 1000
    while not condition():
        assert time.monotonic() < deadline, what
        time.sleep(0.1)


def until(page: Page, condition: Callable[[], object], what: str) -> None:
    """Wait for something that the page asks for: its requests arrive here while it is waited on."""
    for _ in range(600):
        if condition():
            return
        page.wait_for_timeout(50)
    raise AssertionError(what)


def visit(page: Page, url: str) -> None:
    """Load JupyterLab, and wait until it is there for the user."""
    page.goto(url)
    page.wait_for_function("() => window.jupyterapp !== undefined")
    page.evaluate("async () => { await window.jupyterapp.restored; }")
    expect(page.locator("#jupyterlab-splash")).to_have_count(0)


def word_of_lost_connection(page: Page) -> Locator:
    """JupyterLab's own dialog, which comes with one of its polls."""
    return page.get_by_role("dialog").filter(has_text="Server Connection Error")


def close_for_good(word: Locator) -> None:
    """Close JupyterLab's dialog on a lost connection, so that it does not come again."""
    word.get_by_role("checkbox").check()
    word.get_by_role("button", name="Close").click()


def close_word_of_lost_connection(page: Page) -> None:
    """Close JupyterLab's own dialog on a lost connection, for good: it comes whenever it likes."""
    said = word_of_lost_connection(page)
    page.add_locator_handler(said, lambda: close_for_good(said))


def choose_theme(page: Page, theme: str) -> None:
    page.evaluate(CHANGE_THEME, THEMES[theme])
    expect(page.locator("body")).to_have_attribute("data-jp-theme-name", THEMES[theme])
    expect(page.locator("#jupyterlab-splash")).to_have_count(0)  # it lies over a change of theme


def wait_for_layout(lab: Lab, *shown: str) -> None:
    """Wait until JupyterLab has kept what a reload is to restore: it does so a while later."""

    def kept() -> str:
        return "".join(path.read_text() for path in (lab.base / "workspaces").glob("*"))

    wait_until(lambda: all(text in kept() for text in shown), f"{shown} not in the kept layout")


def button(panel: Page | Locator) -> Locator:
    return panel.locator(".jp-NotebookPanel-toolbar").get_by_role("button", name="SUBMIT JOB")


def dialog(page: Page) -> Locator:
    return page.get_by_role("dialog", name=re.compile("^(SUBMIT|RERUN) JOB$"))


def send_button(page: Page) -> Locator:
    return dialog(page).get_by_role("button", name="SEND")


def flavor(page: Page, title: str) -> Locator:
    """The radio button of a flavor."""
    return dialog(page).get_by_role("radio", name=re.compile(f"^{title} "))


def problems(page: Page) -> Locator:
    return dialog(page).locator(".jp-ToJobDialog-problem")


def toast(page: Page, text: str | re.Pattern[str]) -> Locator:
    return page.locator(".Toastify__toast").filter(has_text=text)


def until_told(page: Page, text: str) -> None:
    """Wait until a toast has shown a text: it may be gone when somebody looks."""
    deadline = time.monotonic() + END_TIMEOUT / 1000
    while True:
        told: list[str] = page.evaluate("() => window.shownToasts")
        if any(text in each for each in told):
            return
        assert time.monotonic() < deadline, f"nobody said {text!r}, but {told}"
        page.wait_for_timeout(50)


def file_item(page: Page, name: str) -> Locator:
    return page.locator(".jp-DirListing-item").filter(has=page.get_by_text(name, exact=True))


def open_notebook(page: Page, folder: str, name: str) -> Locator:
    """Open a notebook as a user does, by double clicks in the file browser."""
    file_item(page, folder).dblclick()
    return open_file(page, name)


def open_file(page: Page, name: str) -> Locator:
    """Open a notebook of the folder that the file browser shows."""
    file_item(page, name).dblclick()
    panel = page.locator(".jp-NotebookPanel:not(.lm-mod-hidden)")
    expect(panel.locator(".jp-Notebook .jp-Cell").first).to_be_visible()
    expect(button(panel)).to_be_enabled()
    return panel


def wait_for_kernel(page: Page) -> None:
    """Wait until the open notebook's kernel has said what it is: that is written into the notebook.

    What the kernel is called comes by a request of its own. `Lab.write` knows neither.
    """
    page.wait_for_function("""() => {
        const { model } = jupyterapp.shell.currentWidget;
        const { display_name, name } = model.getMetadata('kernelspec') ?? {};
        return model.getMetadata('language_info')?.version && display_name !== name;
    }""")


def ask(page: Page, panel: Locator) -> Locator:
    """Click SUBMIT JOB, and wait until the server has said what it thinks of the choices."""
    button(panel).click()
    asked(page)
    return dialog(page)


def asked(page: Page) -> None:
    """Wait until the dialog is there and knows the server's answer."""
    expect(dialog(page)).to_be_visible()
    expect(dialog(page).get_by_role("radio").first).to_be_visible()
    expect(dialog(page).get_by_text("Checking…")).to_have_count(0)


def told_name(page: Page, words: str = "Submitted as") -> str:
    """Return the name that the page has shown after SEND."""
    names: list[str] = []

    def is_told() -> bool:
        """Take all toasts that were shown: of a short job there may be another one by now."""
        for text in page.evaluate("() => window.shownToasts.splice(0)"):
            names.extend(re.findall(f"{words}[^a-z0-9]*([a-z0-9-]+)", text))
        return names != []

    wait_until(is_told, "nobody said that a job was submitted")
    assert len({*names}) == 1, names
    return names[0]


def submit(page: Page, panel: Locator) -> str:
    """Click SUBMIT JOB and SEND, and return the job's name as the page shows it.

    When the first cards come, SEND moves; a click that is under way just then would miss it.
    """
    ask(page, panel)
    return send(page)


def send(page: Page) -> str:
    """Click SEND, and return the job's name as the page shows it."""
    send_button(page).click()
    name = told_name(page)
    expect(dialog(page)).to_have_count(0)
    return name


def jobs_panel(page: Page) -> Locator:
    return page.get_by_role("region", name="Jobs")


def show(page: Page) -> Locator:
    """Open the panel by its tab, as a user does; a click on the tab of an open one closes it."""
    if not jobs_panel(page).is_visible():
        page.get_by_role("tab", name=re.compile("^Jobs")).click()
    expect(jobs_panel(page)).to_be_visible()
    return jobs_panel(page)


def row(place: Page | Locator, name: str) -> Locator:
    """A job in the panel."""
    return place.get_by_role("article", name=name, exact=True)


def job_names(lab: Lab) -> set[str]:
    """The jobs that are on record."""
    return {path.parent.name for path in lab.exchange.glob("[!.]*/request.json")}


def snapshot(lab: Lab, name: str) -> Path:
    """What was frozen of a job's notebook."""
    return lab.exchange / name / "snapshot.ipynb"


def cells(path: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(path.read_text())["cells"]
    return found


def outputs(path: Path) -> str:
    """All text that the notebook's code cells have printed."""
    printed = [out for cell in cells(path) for out in cell.get("outputs", [])]
    return "".join("".join(out.get("text", "")) for out in printed)
