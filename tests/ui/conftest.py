"""A browser and a server for each test, and the server's log when one fails."""

from __future__ import annotations

import signal
from collections.abc import Callable, Generator, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import BrowserContext, Page

from tests.ui.chromium import (
    SHELL,
    WHOLE,
    WINDOW,
    be_patient,
    keep_screenshot,
    launch_options,
)
from tests.ui.lab import Lab
from tests.ui.steps import visit


@pytest.fixture(scope="session")
def browser_type_launch_args(browser_type_launch_args: dict[str, Any]) -> dict[str, Any]:
    """The distribution's Chromium; the shell has no window for `--headed`."""
    program = SHELL if browser_type_launch_args.get("headless", True) else WHOLE
    return {**browser_type_launch_args, **launch_options(program)}


@pytest.fixture(scope="session")
def browser_context_args(browser_context_args: dict[str, Any]) -> dict[str, Any]:
    """A window wide enough for the whole toolbar."""
    return {**browser_context_args, **WINDOW}


@pytest.fixture(scope="session", autouse=True)
def told_to_end() -> None:
    """Let whoever ends a run with SIGTERM have what Ctrl-C does: every server is ended, too."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)


@pytest.fixture
def context(context: BrowserContext) -> BrowserContext:
    """A context with the patience that a busy machine needs."""
    return be_patient(context)


@pytest.fixture
def lab(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Lab]:
    """A running JupyterLab; an indirect parameter is what differs from the usual one."""
    with Lab(tmp_path, **getattr(request, "param", {})).running() as server:
        yield server


@pytest.fixture
def open_lab(lab: Lab, page: Page) -> Callable[[], Page]:
    """Open JupyterLab and wait until it is there for the user."""

    def open_it() -> Page:
        visit(page, lab.url)
        return page

    return open_it


@pytest.fixture
def screenshot(page: Page) -> Callable[[str], None]:
    """Keep a picture of the page, named after what it shows."""
    return partial(keep_screenshot, page)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Add to a failure what the server said."""
    report = yield
    lab = getattr(item, "funcargs", {}).get("lab")
    if report.when == "call" and report.failed and isinstance(lab, Lab):
        report.sections.append(("JupyterLab's log", lab.log))
    return report
