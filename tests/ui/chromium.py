"""How tests start Chromium: the distribution's, for Playwright's own browsers are a download.

It is the headless shell, as Playwright's own is: the same engine without the browser's windows,
which take half as much processor time again.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from playwright.sync_api import (
    Browser,
    BrowserContext,
    Error,
    Locator,
    Page,
    expect,
    sync_playwright,
)

SCREENSHOTS = Path(__file__).parent / "screenshots"
SHELL = "chromium-headless-shell"
WHOLE = "chromium"
"""The whole browser. Only it shows notifications of the computer."""
PAGE_TIMEOUT = 60_000
ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-quic",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
WINDOW: dict[str, Any] = {"viewport": {"width": 1400, "height": 900}}
"""Wide enough for the whole toolbar."""
KEEP_TOASTS = """(() => {
    window.shownToasts = [];
    const texts = new WeakMap();
    const toasts = document.getElementsByClassName('Toastify__toast');
    new MutationObserver(() => {
        for (const toast of toasts) {
            const text = toast.textContent;
            if (texts.get(toast) !== text && toast.checkVisibility()) {
                texts.set(toast, text);
                window.shownToasts.push(text);
            }
        }
    }).observe(document, { childList: true, subtree: true, characterData: true });
})()"""
"""Keeps the text of every toast that was ever to be seen: that of a short job is soon gone."""


def launch_options(program: str = SHELL) -> dict[str, Any]:
    """Return what Playwright is to start."""
    path = shutil.which(program)
    assert path, f"{program} is not installed: tests/ui/packages.txt lists what is needed"
    return {"executable_path": path, "args": ARGUMENTS}


def be_patient(context: BrowserContext) -> BrowserContext:
    """Give a context the patience, and the memory of toasts, that a busy machine needs."""
    context.set_default_timeout(PAGE_TIMEOUT)
    context.add_init_script(KEEP_TOASTS)
    expect.set_options(timeout=PAGE_TIMEOUT)
    return context


def keep_screenshot(page: Page, name: str, part: Locator | None = None) -> None:
    """Keep a picture of the page, or a part of it, named after what it shows."""
    SCREENSHOTS.mkdir(exist_ok=True)
    expect(page.locator(".Toastify--animate")).to_have_count(0)  # all toasts have slid in
    (part or page).screenshot(path=SCREENSHOTS / f"{name}.png")


@contextmanager
def chromium() -> Iterator[Browser]:
    """Run a browser in a thread that has no event loop, for tests without pytest's `page`."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(**launch_options())
        yield browser
        browser.close()


@contextmanager
def window(browser: Browser, name: str) -> Iterator[Page]:
    """Open a window with cookies of its own; `failed-<name>.png` shows where a test failed."""
    context = be_patient(browser.new_context(**WINDOW))
    page = context.new_page()
    try:
        yield page
    except BaseException:
        SCREENSHOTS.mkdir(exist_ok=True)
        with suppress(Error):  # the browser itself may be gone
            page.screenshot(path=SCREENSHOTS / f"failed-{name}.png")
        raise
    context.close()
