"""What the dialog begins with: what the user chose for this notebook, wherever that was."""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.ui.lab import NOTHING_RUNS, TOKEN, TWO_FLAVORS, Lab
from tests.ui.steps import (
    END_TIMEOUT,
    ask,
    asked,
    button,
    dialog,
    flavor,
    job_names,
    open_notebook,
    row,
    send_button,
    show,
    told_name,
    visit,
    wait_until,
)

LIMITS = {**TWO_FLAVORS, **NOTHING_RUNS}

SUBMIT = """async choices => (await jupyterapp.commands.execute('jupyter-to-job:submit',
    { path: 'reports/study.ipynb', ask: false, ...choices })).name"""
COPIED = "() => navigator.clipboard.readText()"


def request_of(lab: Lab, name: str) -> dict[str, object]:
    """What the server has on record of a job."""
    found = lab.exchange / name / "request.json"
    document: dict[str, object] = json.loads(found.read_text())
    return document


def section(page: Page, label: str) -> Locator:
    """Unfold a section of the dialog, unless it is so because an earlier job changed it."""
    found = dialog(page).locator("details").filter(has_text=re.compile(f"^{label}"))
    if found.get_attribute("open") is None:
        found.locator("summary").click()
    return found


def rerun_with_changes(page: Page, name: str) -> None:
    # The menu has what applied to the job when it was opened.
    expect(row(page, name).get_by_text("Succeeded after")).to_be_visible(timeout=END_TIMEOUT)
    row(page, name).get_by_role("button", name="More actions").click()
    page.get_by_role("menuitem", name="Rerun with Changes…").click()
    asked(page)


def sent(page: Page, lab: Lab) -> dict[str, object]:
    """Send, and return what the server has on record of the new job."""
    before = job_names(lab)
    send_button(page).click()
    expect(dialog(page)).to_have_count(0)
    (name,) = job_names(lab) - before
    return request_of(lab, name)


@pytest.mark.parametrize("lab", [LIMITS], indirect=True)
def test_a_rerun_shows_all_parameters_and_sends_no_others(
    lab: Lab, open_lab: Callable[[], Page], screenshot: Callable[[str], None]
) -> None:
    lab.write("reports/study.ipynb", "rate = 1", "print(rate)", tags=("parameters",))
    page = open_lab()
    name = page.evaluate(SUBMIT, {"parameters": {"rate": 2, "depth": 3, "mode": "fast"}})
    show(page)
    rerun_with_changes(page, name)
    expect(page.get_by_role("dialog", name="RERUN JOB")).to_be_visible()
    fields = section(page, "Parameters")
    expect(fields.get_by_label("rate", exact=True)).to_have_value("2")
    expect(fields.get_by_label("depth", exact=True)).to_have_value("3")
    expect(fields.get_by_label("mode", exact=True)).to_have_value("fast")
    expect(fields.get_by_text("The notebook does not declare it").first).to_be_visible()
    fields.get_by_role("button", name="Remove depth").click()
    expect(fields.get_by_label("depth", exact=True)).to_have_count(0)
    fields.get_by_role("button", name="Reset rate to the default").click()
    asked(page)
    screenshot("rerun-parameters")
    assert sent(page, lab)["parameters"] == {"mode": "fast"}


@pytest.mark.parametrize("lab", [LIMITS], indirect=True)
def test_what_was_typed_is_sent_as_it_was_typed(
    lab: Lab, open_lab: Callable[[], Page], screenshot: Callable[[str], None]
) -> None:
    """A text with line breaks, and a path behind which nobody pressed Enter."""
    query = 'query = """select 1 -- one\nfrom t"""'
    lab.write("reports/study.ipynb", query, "print(query)", tags=("parameters",))
    (lab.root / "reports" / "data.csv").write_text("1,2")
    page = open_lab()
    ask(page, open_notebook(page, "reports", "study.ipynb"))
    field = section(page, "Parameters").get_by_label("query", exact=True)
    expect(field).to_have_value("select 1 -- one\nfrom t")
    field.press("Control+End")
    page.keyboard.press("Enter")
    page.keyboard.type("limit 5")
    files = section(page, "Files")
    files.get_by_label("Isolated").check()
    asked(page)
    screenshot("dialog-line-breaks")
    files.get_by_label("Add a file").fill("reports/data.csv")
    request = sent(page, lab)
    assert request["parameters"] == {"query": "select 1 -- one\nfrom t\nlimit 5"}
    inputs = request["inputs"]
    assert isinstance(inputs, list)
    assert [file["path"] for file in inputs] == ["reports/data.csv"]


@pytest.mark.parametrize("lab", [LIMITS], indirect=True)
def test_only_a_time_limit_that_the_user_set_is_kept(
    lab: Lab, open_lab: Callable[[], Page]
) -> None:
    lab.write("reports/study.ipynb", "print(1)")
    page = open_lab()
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    plain = page.evaluate(SUBMIT, {"flavor": "small"})
    limited = page.evaluate(SUBMIT, {"flavor": "small", "max_runtime": "2h"})
    assert [request_of(lab, name)["max_runtime"] for name in (plain, limited)] == [3600, 3600]
    panel = show(page)
    for name, limit in ((plain, ""), (limited, "2h")):
        rerun_with_changes(page, name)
        more = section(page, "Time limit")
        expect(more.get_by_label("Time limit", exact=True)).to_have_value(limit)
        flavor(page, "Long").check()
        asked(page)
        assert sent(page, lab)["max_runtime"] == (7200 if limit else 14400)

        row(panel, name).get_by_role("button", name="More actions").click()
        page.get_by_role("menuitem", name="Copy Command").click()
        wait_until(lambda: page.evaluate(COPIED) != "", "nothing was copied")
        assert ("--max-runtime 7200" in page.evaluate(COPIED)) == bool(limit)
        page.evaluate("() => navigator.clipboard.writeText('')")

    rerun_with_changes(page, limited)
    section(page, "Time limit").get_by_label("Time limit", exact=True).fill("")
    asked(page)
    assert sent(page, lab)["max_runtime"] == 3600, "a limit that was removed stays away"


CLI_SUBMIT = ["submit", "reports/study.ipynb", "-f", "long", "-p", "rate", "5"]


@pytest.mark.parametrize("lab", [LIMITS], indirect=True)
def test_choices_are_remembered_wherever_they_were_made(
    lab: Lab, open_lab: Callable[[], Page]
) -> None:
    """In this workspace, in another one, in Notebook 7, and on the command line."""
    lab.write("reports/study.ipynb", "rate = 1", "print(rate)", tags=("parameters",))
    page = open_lab()
    ask(page, open_notebook(page, "reports", "study.ipynb"))
    flavor(page, "Long").check()
    section(page, "Parameters").get_by_label("rate", exact=True).fill("3")
    section(page, "Time limit").get_by_label("Time limit", exact=True).fill("90m")
    asked(page)
    send_button(page).click()
    told_name(page)

    def is_remembered(rate: str) -> None:
        expect(flavor(page, "Long")).to_be_checked()
        fields = section(page, "Parameters")
        expect(fields.get_by_label("rate", exact=True)).to_have_value(rate)

    visit(page, lab.url.replace("/lab?reset&", "/lab/workspaces/other?reset&"))
    ask(page, open_notebook(page, "reports", "study.ipynb"))
    is_remembered("3")
    limit = section(page, "Time limit").get_by_label("Time limit", exact=True)
    expect(limit).to_have_value("1h30m")

    for _ in range(2):  # and after a reload
        page.goto(f"http://127.0.0.1:{lab.port}/notebooks/reports/study.ipynb?token={TOKEN}")
        expect(button(page)).to_be_enabled()
        button(page).click()
        asked(page)
        is_remembered("3")

    name = run_command_line(lab)
    assert request_of(lab, name)["parameters"] == {"rate": 5}
    open_lab()
    ask(page, open_notebook(page, "reports", "study.ipynb"))
    is_remembered("5")


@pytest.mark.parametrize("lab", [LIMITS], indirect=True)
def test_a_new_default_of_the_notebook_goes_before_what_was_sent(
    lab: Lab, open_lab: Callable[[], Page]
) -> None:
    lab.write("reports/study.ipynb", "rate = 1\ndepth = 2", "print(rate)", tags=("parameters",))
    page = open_lab()
    panel = open_notebook(page, "reports", "study.ipynb")
    ask(page, panel)
    fields = section(page, "Parameters")
    fields.get_by_label("rate", exact=True).fill("3")
    fields.get_by_label("depth", exact=True).fill("4")
    asked(page)
    assert sent(page, lab)["parameters"] == {"rate": 3, "depth": 4}

    panel.locator(".cm-content").first.fill("rate = 8\ndepth = 2")
    page.keyboard.press("Control+s")
    source = lab.root / "reports" / "study.ipynb"
    wait_until(lambda: "rate = 8" in source.read_text(), "the notebook is not saved")
    ask(page, panel)
    expect(fields.get_by_label("rate", exact=True)).to_have_value("8")
    expect(fields.get_by_label("depth", exact=True)).to_have_value("4")
    page.keyboard.press("Escape")
    expect(dialog(page)).to_have_count(0)
    name = page.evaluate(SUBMIT)
    assert request_of(lab, name)["parameters"] == {"depth": 4}, "without the dialog"
    ask(page, panel)
    expect(fields.get_by_label("depth", exact=True)).to_have_value("4")
    asked(page)
    assert sent(page, lab)["parameters"] == {"depth": 4}


@pytest.mark.parametrize("lab", [LIMITS], indirect=True)
def test_a_new_default_counts_in_another_workspace(lab: Lab, open_lab: Callable[[], Page]) -> None:
    lab.write("reports/study.ipynb", "rate = 1\ndepth = 2", "print(rate)", tags=("parameters",))
    page = open_lab()
    ask(page, open_notebook(page, "reports", "study.ipynb"))
    fields = section(page, "Parameters")
    fields.get_by_label("rate", exact=True).fill("3")
    fields.get_by_label("depth", exact=True).fill("4")
    asked(page)
    assert sent(page, lab)["parameters"] == {"rate": 3, "depth": 4}

    visit(page, lab.url.replace("/lab?reset&", "/lab/workspaces/other?reset&"))
    lab.write("reports/study.ipynb", "rate = 8\ndepth = 2", "print(rate)", tags=("parameters",))
    ask(page, open_notebook(page, "reports", "study.ipynb"))
    expect(fields.get_by_label("rate", exact=True)).to_have_value("8")
    expect(fields.get_by_label("depth", exact=True)).to_have_value("4")
    asked(page)
    assert sent(page, lab)["parameters"] == {"depth": 4}


def run_command_line(lab: Lab) -> str:
    """Submit as a user of the same home does in a terminal; return the job's name."""
    home = lab.base / "home"
    ran = subprocess.run(
        [str(Path(lab.python).with_name("jupyter-to-job")), *CLI_SUBMIT],
        env={
            "PATH": os.environ["PATH"],
            "HOME": str(home),
            "JUPYTER_CONFIG_DIR": str(lab.base / "config"),
            "JUPYTER_DATA_DIR": str(lab.base / "data"),
            "JUPYTER_TO_JOB_BACKEND": "memory",
        },
        cwd=lab.root,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    return ran.stdout.strip()
