"""A kernel that only the server's own kernel spec manager knows, as with nb_conda_kernels."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests import configured_kernels
from tests.ui.lab import Lab
from tests.ui.steps import open_notebook, outputs, submit, wait_until

CONFIGURED = f"""
import sys
sys.path.append({str(Path(configured_kernels.__file__).parent)!r})
c.ServerApp.kernel_spec_manager_class = "configured_kernels.OneMore"
"""


@pytest.mark.parametrize("lab", [{"config": CONFIGURED}], indirect=True)
def test_what_runs_in_the_editor_can_be_submitted(lab: Lab, open_lab: Callable[[], Page]) -> None:
    source = lab.write(
        "reports/study.ipynb", configured_kernels.CELL, kernel=configured_kernels.NAME
    )
    page = open_lab()
    panel = open_notebook(page, "reports", "study.ipynb")
    expect(panel.locator(".jp-Toolbar-kernelName")).to_have_text("Only configured")
    name = submit(page, panel)
    result = source.with_name(f"{name}.ipynb")
    wait_until(result.exists, f"{name} was not delivered")
    assert outputs(result) == configured_kernels.PRINTS
