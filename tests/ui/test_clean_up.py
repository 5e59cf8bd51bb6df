"""Old results: shown first, removed after a question, and what was edited stays."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import datetime, timedelta, timezone

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, expect

from tests.ui.lab import Lab
from tests.ui.steps import THEMES, choose_theme, toast, visit, wait_until

SUBMIT = """async () => (await jupyterapp.commands.execute('jupyter-to-job:submit',
    { path: 'reports/study.ipynb', ask: false })).name"""
OPEN = "async () => { await jupyterapp.commands.execute('jupyter-to-job:show-table'); }"


def grow_old(lab: Lab, name: str) -> None:
    """Let a job have ended forty days ago, while no server runs."""
    path = lab.exchange / name / "attempt-1" / "outcome.json"
    outcome = json.loads(path.read_text())
    moment = datetime.now(timezone.utc) - timedelta(days=40)
    path.write_text(json.dumps({**outcome, "finished": moment.strftime("%Y-%m-%dT%H:%M:%SZ")}))
    path.parents[1].touch()  # an index may have the job as it was


def test_old_results_go_and_edited_ones_stay(
    lab: Lab, open_lab: Callable[[], Page], screenshot: Callable[[str], None]
) -> None:
    lab.write("reports/study.ipynb", "1")
    page = open_lab()
    names = [page.evaluate(SUBMIT) for _ in range(4)]
    results = [lab.root / "reports" / f"{name}.ipynb" for name in names]
    wait_until(lambda: all(map(lab.is_delivered, names)), "the jobs did not end")
    page.goto("about:blank")
    assert lab.process is not None
    lab.process.kill()
    lab.process.wait()
    for name in names:
        grow_old(lab, name)
    results[0].write_text(results[0].read_text() + "\n")  # its owner saved it
    lab.start()
    visit(page, lab.url)
    page.evaluate(OPEN)
    page.get_by_role("button", name="Clean Up Results…").click()
    asked = page.get_by_role("dialog", name="Clean Up Old Results")
    listed = asked.get_by_role("listitem")
    expect(listed).to_have_count(3)  # the newest one stays
    expect(asked.get_by_text("3 notebooks will be removed, ")).to_be_visible()
    for theme in THEMES:
        choose_theme(page, theme)
        screenshot(f"clean-up-{theme}")
        found = Axe().run(page, context=[".jp-ToJob-cleanUp"])
        assert found.violations_count == 0, found.generate_report()
    asked.get_by_role("combobox").select_option("90d")
    expect(listed).to_have_count(0)
    expect(asked.get_by_role("button", name="Remove")).to_be_disabled()
    asked.get_by_role("button", name="Cancel").click()
    assert all(path.exists() for path in results)

    page.get_by_role("button", name="Clean Up Results…").click()
    asked.get_by_label("Keep the newest result of each notebook").uncheck()
    expect(listed).to_have_count(4)
    asked.get_by_role("button", name="Remove").click()
    expect(toast(page, "3 results were removed: ")).to_contain_text("1 was changed since and stays")
    assert [path.exists() for path in results] == [True, False, False, False]
