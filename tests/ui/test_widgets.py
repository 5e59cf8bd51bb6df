"""Progress bars and other widgets in the live view, and what it renders though nobody trusts it."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Locator, Page, expect

from tests.ui.lab import Lab
from tests.ui.steps import END_TIMEOUT, choose_theme, open_notebook, submit

KERNEL = "with-widgets"

TQDM = """import pathlib, time
from tqdm.auto import tqdm
for step in tqdm(range(1000), desc='rows'):
    time.sleep(0.1)
    if pathlib.Path('next').exists():
        break"""

NESTED = """from tqdm.auto import trange
for epoch in trange(1000, desc='epochs'):
    for batch in trange(5, desc='batches', leave=False):
        time.sleep(0.1)
    if pathlib.Path('further').exists():
        break"""

KERAS = """import sys
for step in range(1, 1001):
    done = 30 * step // 1000
    bar = f'\\x1b[32m{"━" * done}\\x1b[0m\\x1b[37m{"━" * (30 - done)}\\x1b[0m'
    sys.stdout.write(f'\\r\\x1b[1m{step}/1000\\x1b[0m {bar} loss: {1 / step:.4f}')
    sys.stdout.flush()
    time.sleep(0.05)
    if pathlib.Path('last').exists():
        break"""
"""Loops that go on until the test puts a file beside the notebook."""

SHOWN = (
    """import ipywidgets as w, pandas as pd
from IPython.display import HTML, SVG, display
evil = '<b>bold</b><img src=x onerror="window.stolen=1"><script>window.stolen=2</script>'
pixel = bytes.fromhex('89504e470d0a1a0a0000000d4948445200000001000000010802000000907753de'
    '0000000c4944415408d763f8cfc0000003010100c9fe92ef0000000049454e44ae426082')
out = w.Output()
display(w.VBox([
    w.HTML(evil), w.Label('a label'), w.IntSlider(7, description='rate'),
    w.HBox([w.IntProgress(30, description='half', bar_style='danger'),
            w.Image(value=pixel, format='png', width=40, height=40)]),
    w.Tab([w.Label('in a tab')], titles=['First']), out]))
with out:
    print('captured')
    display(HTML('<i>in italics</i>'))
w.Video(value=b'0', format='mp4')""",
    """frame = pd.DataFrame({'a': [1, 2, 3], 'b': [3.5, 2.5, 1.5]})
display(frame.style.highlight_max(color='rgb(255, 200, 0)').bar(subset=['b'], color='#5fba7d')
    .set_table_styles([{'selector': 'td', 'props': 'position: fixed; text-align: right'},
        {'selector': 'th', 'props': 'background-image: url(https://example.invalid/x)'}]))
display(SVG('<svg xmlns="http://www.w3.org/2000/svg" width="120" height="60">'
    '<script>window.stolen=3</script><circle cx="60" cy="30" r="28" fill="teal"/></svg>'))
display(HTML('<p>told</p><script>window.stolen=4</script>'))""",
)
"""What stands still, some of which would do harm."""


def add_kernel(lab: Lab) -> None:
    """Add the kernel of this test's own interpreter, which has ipywidgets, tqdm and pandas."""
    folder = lab.base / "data" / "kernels" / KERNEL
    folder.mkdir(parents=True)
    argv = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    spec = {"argv": argv, "display_name": KERNEL, "language": "python"}
    (folder / "kernel.json").write_text(json.dumps(spec))


def watch(page: Page, name: str) -> Locator:
    page.evaluate(
        "async name => { await jupyterapp.commands.execute('jupyter-to-job:watch', {name}); }",
        name,
    )
    return page.get_by_role("region", name=f"{name}, as it runs", exact=True)


def cell(live: Locator, index: int) -> Locator:
    return live.locator(".jp-Notebook-cell").nth(index)


def assert_accessible(page: Page, context: str) -> None:
    found = Axe().run(page, context=[context])
    assert found.violations_count == 0, found.generate_report()


def wait_for_move(bar: Locator) -> None:
    """Wait until a progress bar says another value, and is longer by what a picture shows."""
    value = bar.get_attribute("aria-valuenow") or ""
    width = bar.locator("> div").evaluate("filled => filled.getBoundingClientRect().width")
    expect(bar).not_to_have_attribute("aria-valuenow", value, timeout=END_TIMEOUT)
    moved = "([filled, width]) => filled.getBoundingClientRect().width > width + 2"
    bar.page.wait_for_function(moved, arg=[bar.locator("> div").element_handle(), width])


def test_progress_bars_move(
    lab: Lab, open_lab: Callable[[], Page], screenshot: Callable[[str], None]
) -> None:
    add_kernel(lab)
    lab.write("reports/train.ipynb", TQDM, NESTED, KERAS, kernel=KERNEL)
    page = open_lab()
    live = watch(page, submit(page, open_notebook(page, "reports", "train.ipynb")))

    rows = cell(live, 0).get_by_role("progressbar")
    expect(rows).to_be_visible(timeout=END_TIMEOUT)
    expect(cell(live, 0).locator(".jp-OutputArea")).to_contain_text(re.compile(r"rows:\s+\d+%"))
    pictures = []
    for number in range(3):
        wait_for_move(rows)
        pictures.append(cell(live, 0).locator(".jp-OutputArea").screenshot())
        screenshot(f"live-tqdm-{number}")
    assert len(set(pictures)) == 3, "the same picture twice"
    (lab.root / "reports" / "next").touch()

    outer, inner = (cell(live, 1).get_by_role("progressbar").nth(n) for n in (0, 1))
    expect(inner).to_be_visible(timeout=END_TIMEOUT)
    wait_for_move(outer)
    screenshot("live-nested")
    wait_for_move(outer)
    # An inner bar is gone when it ends: there are never more than two.
    assert cell(live, 1).get_by_role("progressbar").count() <= 2
    (lab.root / "reports" / "further").touch()

    printed = cell(live, 2).locator(".jp-OutputArea pre")  # another one for each text
    steps = []
    for _ in range(3):
        expect(printed).to_have_text(re.compile(r"^\d+/1000 ━{30} loss: [\d.]+$"))
        steps.append(cell(live, 2).screenshot())
        # The text may be newer than the picture, so that the next picture is of another text.
        expect(printed).not_to_have_text(printed.inner_text(), timeout=END_TIMEOUT)
    assert len(set(steps)) == 3
    screenshot("live-keras")
    (lab.root / "reports" / "last").touch()
    expect(live.get_by_text(re.compile("^Succeeded after"))).to_be_visible(timeout=END_TIMEOUT)
    assert rows.locator("> div").evaluate("bar => bar.className").endswith("jp-mod-danger"), (
        "a loop that was left early is red, as in the result"
    )


def test_what_stands_still_is_rendered_and_does_no_harm(
    lab: Lab, open_lab: Callable[[], Page], screenshot: Callable[[str], None]
) -> None:
    add_kernel(lab)
    lab.write("reports/shown.ipynb", *SHOWN, kernel=KERNEL)
    page = open_lab()
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    live = watch(page, submit(page, open_notebook(page, "reports", "shown.ipynb")))
    expect(live.get_by_text(re.compile("^Succeeded after"))).to_be_visible(timeout=END_TIMEOUT)

    widgets = cell(live, 0).locator(".jp-OutputArea")
    expect(widgets.locator("b")).to_have_text("bold")
    expect(widgets.get_by_text("a label", exact=True)).to_be_visible()
    expect(widgets.locator(".jp-ToJob-widget-value", has_text="7")).to_be_visible()
    expect(widgets.get_by_role("progressbar", name="half")).to_have_attribute("aria-valuenow", "30")
    pixel = widgets.locator('img[src^="data:image/png"]')
    expect(pixel).to_have_js_property("naturalWidth", 1)
    expect(widgets.get_by_text("in a tab")).to_be_visible()
    expect(widgets.get_by_text("captured")).to_be_visible()
    expect(widgets.locator("i")).to_have_text("in italics")
    expect(widgets.get_by_text("Controls are shown as text here")).to_be_visible()
    expect(widgets.get_by_text("The widget Video is not shown here")).to_be_visible()

    rendered = cell(live, 1).locator(".jp-OutputArea")
    expect(rendered.get_by_text("Shown in a simpler style here")).to_be_visible()
    largest = rendered.locator("td", has_text="3").first
    color = "cell => getComputedStyle(cell).backgroundColor"
    assert "rgb(255, 200, 0)" in [each.evaluate(color) for each in rendered.locator("td").all()], (
        largest
    )
    assert "gradient" in "".join(
        each.evaluate("cell => getComputedStyle(cell).backgroundImage")
        for each in rendered.locator("td").all()
    )
    assert largest.evaluate("cell => getComputedStyle(cell).position") == "static"
    circle = rendered.locator('img[src^="data:image/svg+xml"]')
    expect(circle).to_have_js_property("naturalWidth", 120)
    expect(rendered.get_by_text("told")).to_be_visible()
    expect(rendered.get_by_text("What runs scripts")).to_be_visible()
    assert page.evaluate("() => window.stolen") is None, "nothing was executed"
    assert not [url for url in asked if "example.invalid" in url], "nothing was loaded"

    cell(live, 0).scroll_into_view_if_needed()
    screenshot("live-widgets")
    assert_accessible(page, ".jp-ToJob-widget-output")
    cell(live, 1).scroll_into_view_if_needed()
    screenshot("live-rendered")
    choose_theme(page, "dark")
    screenshot("live-rendered-dark")
    cell(live, 0).scroll_into_view_if_needed()
    screenshot("live-widgets-dark")
    assert_accessible(page, ".jp-ToJob-widget-output")


def test_a_page_that_comes_later_shows_the_same(lab: Lab, open_lab: Callable[[], Page]) -> None:
    add_kernel(lab)
    lab.write("reports/done.ipynb", TQDM.replace("1000", "3"), kernel=KERNEL)
    page = open_lab()
    name = submit(page, open_notebook(page, "reports", "done.ipynb"))
    live = watch(page, name)
    expect(live.get_by_text(re.compile("^Succeeded after"))).to_be_visible(timeout=END_TIMEOUT)
    open_lab()
    live = watch(page, name)
    bar = cell(live, 0).get_by_role("progressbar")
    expect(bar).to_have_attribute("aria-valuenow", "3", timeout=END_TIMEOUT)
    expect(bar.locator("> div")).to_have_class(re.compile("jp-mod-success"))
    assert "FloatProgressModel" in (lab.root / f"reports/{name}.ipynb").read_text()
