"""How long JupyterLab takes to start and to open, with the extension and without, in turns.

A round starts a server of each kind and opens JupyterLab in a fresh browser, the one and then the
other, and each round begins with another one: so differences hold on a machine that others use,
too. Each kind has fresh folders and sees the same extensions but for ours. The first round does not
count. Needs `.venv-lab` (`scripts/install lab`) and Chromium.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import Browser, sync_playwright

from tests.ui.chromium import WHOLE, launch_options

from ..machine import print_machine
from .difference import Difference
from .server import KINDS, Start, lab_python

OPENED = """async () => {
    while (window.jupyterapp === undefined) {
        await new Promise(resolve => setTimeout(resolve, 5));
    }
    await window.jupyterapp.restored;
    return performance.now();
}"""
ROWS = {
    "start": "server: from the command to its first answer",
    "start-cpu": "server: processor time of that",
    "open": "page: from the address to `restored`",
    "open-cpu": "page: its main thread's work in that",
}


def main() -> int:
    """Measure, print, and return 1 if having it can be told by the time."""
    parser = argparse.ArgumentParser(prog="benchmarks.lab", description=__doc__)
    parser.add_argument("--rounds", type=int, default=10, help="starts of each kind")
    rounds = parser.parse_args().rounds
    print_machine()
    found: dict[str, list[dict[str, float]]] = {kind: [] for kind in KINDS}
    with sync_playwright() as playwright, tempfile.TemporaryDirectory(prefix="bench-") as folder:
        browser = playwright.chromium.launch(**launch_options(WHOLE))
        for number in range(rounds + 1):
            for kind in KINDS if number % 2 else reversed(KINDS):
                base = Path(folder) / f"{number}-{kind}"
                figures = _once(kind, base, browser)
                if number:
                    found[kind].append(figures)
                shutil.rmtree(base, ignore_errors=True)
        browser.close()
    print(f"JupyterLab of {lab_python()}, {rounds} rounds\n\n{Difference.HEAD}")
    missed = []
    for row, title in ROWS.items():
        without, with_it = ([each[row] for each in found[kind]] for kind in KINDS)
        difference = Difference.of(without, with_it)
        print(f"{title:46}{difference}")
        if difference.is_measurable:
            missed.append(title)
    print("\nmeasurable: " + "; ".join(missed) if missed else "\nnothing can be told by the time")
    return 1 if missed else 0


def _once(kind: str, base: Path, browser: Browser) -> dict[str, float]:
    """Start a server, open JupyterLab, and return the milliseconds of each row."""
    start = Start(base, kind)
    with start.running() as server:
        context = browser.new_context(viewport={"width": 1400, "height": 900})
        page = context.new_page()
        devtools = context.new_cdp_session(page)
        devtools.send("Performance.enable")
        page.goto(server.url, wait_until="commit")
        opened = page.evaluate(OPENED)
        metrics = devtools.send("Performance.getMetrics")["metrics"]
        work = next(each["value"] for each in metrics if each["name"] == "TaskDuration")
        has_it = page.evaluate("jupyterapp.commands.hasCommand('jupyter-to-job:submit')")
        assert has_it == (kind == "with"), f"not a JupyterLab {kind} the extension"
        context.close()
    return {
        "start": start.seconds * 1e3,
        "start-cpu": start.processor * 1e3,
        "open": opened,
        "open-cpu": work * 1e3,
    }


if __name__ == "__main__":
    sys.exit(main())
