"""The demo in the browser, from SUBMIT JOB to the executed notebook: what README's pictures show.

``make pictures`` shrinks what is kept here as ``demo-*`` into ``docs/images``.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.ui.lab import Lab
from tests.ui.steps import (
    END_TIMEOUT,
    ask,
    dialog,
    flavor,
    open_notebook,
    send_button,
    toast,
    told_name,
)

EXAMPLE = Path(__file__).parents[2] / "examples" / "digits"


GPUS = {"variables": {"JUPYTER_TO_JOB_CAPACITY": "cpu=8,memory=64Gi,nvidia.com/gpu=2"}}
"""A machine that says it has GPUs, so that the dialog has something to choose from."""


@pytest.mark.parametrize("lab", [GPUS], indirect=True)
def test_the_demo_is_watched_and_its_result_opened(
    lab: Lab, open_lab: Callable[[], Page], screenshot: Callable[[str], None]
) -> None:
    shutil.copytree(EXAMPLE, lab.root / "digits", ignore=shutil.ignore_patterns("__pycache__"))
    page = open_lab()
    page.set_viewport_size({"width": 1280, "height": 900})  # the dialog as a whole
    ask(page, open_notebook(page, "digits", "digits.ipynb"))
    flavor(page, "One GPU").check()
    expect(dialog(page).get_by_text("2 of 2 free now")).to_have_count(3)
    expect(dialog(page).get_by_text("Checking…")).to_have_count(0)
    screenshot("demo-dialog")

    flavor(page, "Medium").check()
    dialog(page).locator("summary").filter(has_text="Parameters").click()
    dialog(page).get_by_label("epochs", exact=True).fill("15")
    send_button(page).click()
    name = told_name(page)
    page.get_by_role("tab", name=re.compile("^Jobs")).click()
    page.get_by_role("button", name=f"Watch {name} live").click()
    live = page.get_by_role("region", name=f"{name}, as it runs")
    epoch = live.get_by_text(re.compile(r"epoch +4/15"))
    expect(epoch).to_be_visible(timeout=END_TIMEOUT)
    screenshot("demo-live")

    finished = toast(page, re.compile(f"{name} finished in "))
    expect(finished).to_be_visible(timeout=END_TIMEOUT)
    finished.get_by_role("button", name="Open").click()
    plots = page.locator(".jp-NotebookPanel:not(.lm-mod-hidden) .jp-RenderedImage img")
    expect(plots).to_have_count(3)
    plots.nth(1).scroll_into_view_if_needed()
    screenshot("demo-result")
