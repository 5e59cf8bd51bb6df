"""From the notebook to its result without a mouse, and what a screen reader hears meanwhile."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.ui.lab import Lab
from tests.ui.steps import (
    END_TIMEOUT,
    asked,
    dialog,
    flavor,
    open_notebook,
    send_button,
    toast,
    wait_until,
)
from tests.ui.test_everyone import MACHINE, STEPS, SUBMIT

FOCUS = """() => {
    let focused = document.activeElement;
    const isLost = focused === document.body;
    while (focused.shadowRoot?.activeElement) {
        focused = focused.shadowRoot.activeElement;
    }
    const card = focused.closest('.jp-ToJobDialog-card, .lm-Menu');
    const isSeen = [focused, card].filter(Boolean).some(element => {
        const { outlineStyle, outlineWidth, boxShadow } = getComputedStyle(element);
        return (outlineStyle !== 'none' && outlineWidth !== '0px') || boxShadow !== 'none';
    });
    const isOurs = focused.closest('[class*=jp-ToJob]') !== null;
    return { isLost, isSeen, isOurs, what: focused.outerHTML.slice(0, 300) };
}"""
"""Where the keyboard is, and whether that can be seen."""

LISTEN = """() => {
    window.heard = [];
    const live = '[role=alert], [role=status], [aria-live=polite], [aria-live=assertive]';
    const hear = ({ target, addedNodes }) => {
        const around = (target.nodeType === Node.TEXT_NODE ? target.parentElement : target)
            .closest(live);
        const added = [...addedNodes].flatMap(node =>
            node.nodeType === Node.ELEMENT_NODE
                ? [...(node.matches(live) ? [node] : []), ...node.querySelectorAll(live)] : []);
        for (const region of [around, ...added].filter(Boolean)) {
            window.heard.push(region.textContent.trim());
        }
    };
    new MutationObserver(changes => changes.forEach(hear)).observe(
        document.body, { childList: true, subtree: true, characterData: true });
}"""
"""Keeps what a screen reader would read out by itself."""


def press(page: Page, *keys: str) -> None:
    """Press keys; after each, the focus is somewhere and, where that is ours, to be seen."""
    focus: dict[str, Any] = {}

    def is_right() -> bool:
        focus.update(page.evaluate(FOCUS))
        return not focus["isLost"] and (focus["isSeen"] or not focus["isOurs"])

    for key in keys:
        page.keyboard.press(key)
        wait_until(is_right, f"{key} loses the focus, or it cannot be seen: {page.evaluate(FOCUS)}")


def press_until(page: Page, key: str, wanted: Locator) -> None:
    """Press a key until something has the focus, as who does not count steps would."""
    for _ in range(40):
        if wanted.count() == 1 and wanted.evaluate("node => node.matches(':focus')"):
            return
        press(page, key)
    raise AssertionError(f"{key} does not reach {wanted}")


def heard(page: Page, words: str) -> None:
    """Wait until it was read out."""
    wait_until(
        lambda: any(re.search(words, said) for said in page.evaluate("() => window.heard")),
        f"nobody heard {words!r}",
    )


DIALOG = """
- dialog "SUBMIT JOB":
  - radiogroup /Flavor/:
    - radio "Small 0.5 CPUs · 1 GiB" [checked]
    - radio "One GPU 0.5 CPUs · 1 GiB · 1 GPU"
    - group: 1 more is not available here
  - group /Device/
  - checkbox "Run on several flavors or devices, a job on each"
  - group: Parameters (1)
  - group: Files to send along
  - group: Environment variables
  - group: Time limit, name, result
  - group "What the server says":
    - alert
    - status
  - button "Cancel"
  - button "SEND"
"""

PANEL_TREE = """
- region "Jobs":
  - heading "Jobs" [level=2]
  - button "Desktop Notifications of Jobs"
  - search "Jobs":
    - searchbox "Search jobs"
    - combobox "Which jobs"
    - checkbox "Group by notebook"
  - list "Jobs":
    - listitem:
      - article /train-/:
        - button /train-/
        - progressbar /Cells of train-/
        - button /Watch train-.* live/
        - button /Cancel train-/
        - button /More actions for train-/
    - listitem:
      - article /study-/:
        - button /study-/
        - button /Open the result of study-/
        - button /More actions for study-/
"""


@pytest.mark.parametrize("lab", [MACHINE], indirect=True)
def test_keys_and_ears_are_enough(lab: Lab, open_lab: Callable[[], Page]) -> None:
    lab.write("reports/study.ipynb", "print(1)")
    lab.write("reports/train.ipynb", "epochs = 3", STEPS, tags=("parameters",))
    page = open_lab()
    study = page.evaluate(SUBMIT, {"path": "reports/study.ipynb", "flavor": "small"})
    expect(toast(page, f"{study} finished")).to_be_visible(timeout=END_TIMEOUT)
    panel = open_notebook(page, "reports", "train.ipynb")
    page.evaluate(LISTEN)
    panel.locator(".cm-content").first.click()  # from here on there is no mouse

    submit = panel.locator("jp-button[data-command='jupyter-to-job:submit']")
    press(page, "Escape", "Shift+Tab")
    press_until(page, "ArrowRight", submit)
    press(page, "Enter")
    asked(page)
    expect(dialog(page)).to_match_aria_snapshot(DIALOG)
    press_until(page, "Tab", dialog(page).get_by_text("1 more is not available here"))
    press(page, "Enter")
    expect(flavor(page, "Huge")).to_be_visible()
    expect(flavor(page, "Huge")).to_have_accessible_description(
        "Needs 64 CPUs; there are 4 CPUs in all."
    )
    expect(flavor(page, "Small")).to_have_accessible_description(re.compile("Quick checks"))
    for _ in range(20):  # once around and further, and never out of the dialog
        press(page, "Tab")
        expect(dialog(page).locator(":focus")).to_have_count(1)
    press(page, "Escape")
    expect(dialog(page)).to_have_count(0)
    expect(submit).to_be_focused()

    press(page, "Enter")
    asked(page)
    press_until(page, "Tab", flavor(page, "Small"))
    press(page, "ArrowDown")
    expect(flavor(page, "One GPU")).to_be_checked()
    slice_ = dialog(page).get_by_role("radio", name="1/20 of an A100")
    expect(slice_).to_have_accessible_description(re.compile(r"20 of 20 free now.*isolation"))
    press_until(page, "Tab", dialog(page).get_by_role("radio", name="T4"))
    press(page, "ArrowDown")
    expect(slice_).to_be_checked()
    expect(slice_).to_be_focused()
    press_until(page, "Tab", dialog(page).get_by_text("Parameters (1)"))
    press(page, "Enter", "Tab")
    epochs = dialog(page).get_by_label("epochs", exact=True)
    expect(epochs).to_be_focused()
    page.keyboard.type("many")
    heard(page, "A parameter has a value that it cannot take")
    expect(epochs).to_have_accessible_description(re.compile("^A number"))
    press(page, "ControlOrMeta+a", "7")
    asked(page)
    press_until(page, "Tab", send_button(page))
    press(page, "Enter")
    expect(dialog(page)).to_have_count(0)
    expect(submit).to_be_focused()
    heard(page, "Submitted as train-[a-z2-7]{8}")

    press(page, "ControlOrMeta+Shift+C")
    page.keyboard.type("Show Jobs")
    press(page, "Enter")
    name = page.get_by_role("article").first.get_attribute("aria-label") or ""
    row = page.get_by_role("article", name=name)
    expect(row.get_by_role("button", name=name, exact=True)).to_be_focused()
    heard(page, f"{name}: Running")
    bar = row.get_by_role("progressbar")
    expect(bar).to_have_attribute("aria-valuetext", "cell 2 of 2", timeout=END_TIMEOUT)
    assert [bar.get_attribute(f"aria-value{edge}") for edge in ("min", "now", "max")] == list("012")
    expect(page.get_by_role("region", name="Jobs")).to_match_aria_snapshot(PANEL_TREE)
    press(page, "ArrowDown", "ArrowUp")
    press_until(page, "Tab", row.get_by_role("button", name="More actions"))
    chosen = page.locator(".lm-Menu-item.lm-mod-active")
    press(page, "Enter", "ArrowDown")
    expect(chosen).to_have_text("Show Details")
    press(page, "ArrowDown")
    expect(chosen).to_have_text("Watch Live")
    press(page, "Enter")
    live = page.get_by_role("region", name=f"{name}, as it runs")
    expect(live).to_be_focused()
    press_until(page, "Tab", live.get_by_role("region", name=f"Cells of {name}"))

    (lab.root / "reports" / "go").touch()
    heard(page, f"{name} finished in")
    heard(page, "Succeeded after")
    press_until(page, "Shift+Tab", live.get_by_role("button", name="Open Result"))
    press(page, "Enter")
    result = page.locator(".jp-NotebookPanel:not(.lm-mod-hidden)")
    expect(result.locator(".jp-OutputArea-output").first).to_contain_text("red and bold")
    wait_until(
        lambda: result.evaluate("panel => panel.contains(document.activeElement)"),
        "the result has not got the focus",
    )
