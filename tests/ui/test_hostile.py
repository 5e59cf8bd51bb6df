"""What others wrote is shown as it is, on every screen, and nothing of it runs."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.ui.lab import Lab
from tests.ui.steps import (
    END_TIMEOUT,
    asked,
    button,
    dialog,
    file_item,
    problems,
    send_button,
    toast,
)
from tests.ui.test_everyone import RUN, SHOW_PANEL

HOSTILE = '<img src=x onerror="window.stolen=1">'
NAMED = "<img src=x onerror=stolen=1>"
"""The same as a file may be called."""

PLAIN = "<hostile>"
"""What papermill takes for a parameter's value and help: nothing with a sign of equality."""

YAML = HOSTILE.replace('"', '\\"')
HOSTILE_CATALOG = f"""
apiVersion: jupyter-to-job.io/v1
default: {{flavor: small, device: cpu}}
flavors:
  small: {{title: "S {YAML}", description: "D {YAML}", cpu: 500m, memory: 1Gi, devices: [cpu, odd]}}
  team: {{title: Team, cpu: 500m, memory: 1Gi, devices: [cpu], allowed: {{groups: ["{YAML}"]}}}}
devices:
  cpu: {{title: "C {YAML}", description: "T {YAML}"}}
  odd: {{title: Odd}}
"""
HOSTILE_CELLS = (
    f"value = '{PLAIN}'  # H {PLAIN}",
    f"open('{NAMED}.csv')",
    f"print('\\x1b[31mR {HOSTILE}\\x1b[0m')",
    "print('\\x1b]8;;javascript:window.stolen=1\\x07link\\x1b]8;;\\x07')",
    f"raise ValueError('E {HOSTILE} ' * 5)",
)
IS_TEXT = """() => window.stolen === undefined
    && document.querySelector('img[src=x], hostile') === null"""


@pytest.mark.parametrize("lab", [{"catalog": HOSTILE_CATALOG}], indirect=True)
def test_what_others_wrote_is_text(lab: Lab, open_lab: Callable[[], Page]) -> None:
    name = f"{NAMED}.ipynb"
    lab.write(f"reports/{name}", *HOSTILE_CELLS, tags=("parameters",))
    lab.write("reports/alien.ipynb", "print(1)", kernel=f"k{HOSTILE}")
    (lab.root / "reports" / f"{NAMED}.csv").write_text("1,2")
    page = open_lab()

    def shows(place: Locator, *texts: str) -> None:
        for text in texts:
            expect(place).to_contain_text(text)
        assert page.evaluate(IS_TEXT), "something that others wrote became part of the page"

    file_item(page, "reports").dblclick()
    file_item(page, "alien.ipynb").click(button="right")
    page.get_by_role("menuitem", name="SUBMIT JOB").click()
    asked(page)
    shows(problems(page).first, f"k{HOSTILE}")
    page.keyboard.press("Escape")
    expect(dialog(page)).to_have_count(0)

    file_item(page, name).dblclick()
    button(page).click()
    asked(page)
    for section in dialog(page).locator("summary").all():
        section.click()
    value = dialog(page).get_by_label("value", exact=True)
    expect(value).to_have_value(PLAIN)
    value.fill(HOSTILE)
    dialog(page).get_by_label("Isolated").check()
    dialog(page).get_by_label("Add a file").fill(f"A {HOSTILE}")
    dialog(page).get_by_role("button", name="Add", exact=True).click()
    said = [f"{letter} {HOSTILE}" for letter in "SDCTA"]
    shows(
        dialog(page),
        *said,
        f"H {PLAIN}",
        f"For the groups {HOSTILE}",
        f"{NAMED}.ipynb",
        f"{NAMED}.csv",
    )
    shows(problems(page).first, f"A {HOSTILE}")
    dialog(page).get_by_role("button", name=f"Remove A {HOSTILE}").click()
    asked(page)
    send_button(page).click()
    failed = toast(page, "failed: cell")
    expect(failed).to_be_visible(timeout=END_TIMEOUT)
    shows(failed, f"E {HOSTILE}")
    failed.get_by_role("button", name="Details").click()
    in_detail = page.get_by_role("region", name="Details of")
    shows(in_detail, f"E {HOSTILE}", f"value{HOSTILE}", f"{NAMED}.csv")

    page.evaluate(SHOW_PANEL)
    row = page.get_by_role("article").first
    shows(row, f"E {HOSTILE}", name)
    page.get_by_role("checkbox", name="Group by notebook").check()
    shows(page.get_by_role("region", name="Jobs"), f"reports/{name}1 job")
    job = row.get_attribute("aria-label") or ""
    for command, label in (("watch", f"{job}, as it runs"), ("logs", f"Logs of {job}")):
        page.evaluate(RUN, [f"jupyter-to-job:{command}", job])
        view = page.get_by_role("region", name=label, exact=True)
        shows(view, f"R {HOSTILE}", f"E {HOSTILE}")
        expect(view.locator("a[href^=javascript]")).to_have_count(0)
    page.evaluate(RUN, ["jupyter-to-job:copy-command", job])
    shows(toast(page, "Copied:").first, NAMED)
