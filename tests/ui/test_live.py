"""Watch live and logs: the notebook fills in as it runs, as JupyterLab itself would show it."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from playwright.sync_api import Locator, Page, Response, expect

from tests.ui.lab import Lab
from tests.ui.steps import (
    END_TIMEOUT,
    at_most,
    choose_theme,
    open_notebook,
    submit,
    wait_for_layout,
)
from tests.ui.steps import cells as cells_of

PLOT = """import base64, struct, zlib
from IPython.display import Image, display
def png(size):
    line = lambda y: b'\\0' + bytes(v for x in range(size) for v in
        (60 + 150 * x // size, 90, 220 - 150 * y // size))
    chunk = lambda kind, data: (struct.pack('>I', len(data)) + kind + data
        + struct.pack('>I', zlib.crc32(kind + data)))
    head = struct.pack('>IIBBBBB', size, size, 8, 2, 0, 0, 0)
    return (b'\\x89PNG\\r\\n\\x1a\\n' + chunk(b'IHDR', head)
        + chunk(b'IDAT', zlib.compress(b''.join(map(line, range(size))))) + chunk(b'IEND', b''))
display(Image(png(160)))
print('\\x1b[31ma red word\\x1b[0m <img src=x onerror="window.stolen=1">')"""
"""A picture without a library, and text with colours and with what looks like HTML."""

HOSTILE = """from IPython.display import HTML, display
display(HTML('<b id="kept">kept</b><img src=x onerror="window.stolen = 2">'
    '<script>window.stolen = 3</script>'))"""

STEPS = """import pathlib, time
shown = display('0 steps', display_id=True)
step = 0
while not pathlib.Path('go').exists():
    step += 1
    print(f'\\rstep {step}', end='')
    shown.update(f'{step} steps')
    time.sleep(0.1)
print('\\nwent on')"""
"""A cell that runs until the test puts a file beside the notebook."""


EVERYTHING = [
    "for n in range(100):\n    print('line', n)",
    "import sys\nfor n in range(101):\n    print(f'\\r{n:3d}%', end='', file=sys.stderr)",
    """from IPython.display import *
one, two = (display(HTML('<b>0</b>'), display_id='same') for _ in range(2))
for n in range(20):
    one.update(HTML(f'<b>updated {n}</b>'))""",
    """display(SVG('<svg xmlns="http://www.w3.org/2000/svg" onload="window.stolen = 4">'
    '<script>window.stolen = 5</script><circle r="9"/></svg>'))
display(Javascript('window.stolen = 6'))
display(Markdown('**bold** <a href="javascript:window.stolen=7">x</a>'), Latex('$x^2$'))
display(JSON({'a': 1}), Pretty('pretty'))
display({'application/vnd.unknown+json': {'a': 1}, 'text/plain': 'unknown'}, raw=True)""",
    "for n in range(10):\n    clear_output(wait=True)\n    print('cleared', n)\n42",
    "print('x' * 6_000_000)",  # not so much that a view on a slow machine skips to the end
    "for n in range(80):\n    display(n)",
    """import pathlib, time
for word in ('more', 'go'):
    while not pathlib.Path(word).exists():
        time.sleep(0.05)
    print('\\n' * 100, word)""",
    "print('\\n' * 100, 'the last words')\n1 / 0",
    "print('never')",
]
"""Outputs of every kind, of which some would do harm, and one does not fit a page."""

LONG_CELL = 5
"""Which of them is shown in part only."""

SHOWN = """name => {
    const views = [...jupyterapp.shell.widgets('main')];
    const view = views.find(({ id }) => id === 'jupyter-to-job-watch-' + name);
    return view.content.layout.widgets[1].widgets.map(({ model }) => model.toJSON());
}"""
"""The cells that a live view shows."""

LONGEST_PAUSE = 1000
"""Milliseconds for which the page may not answer."""


REST = 1200
"""Milliseconds after which somebody who does not move has come to rest."""


def view(page: Page, label: str) -> Locator:
    """A view in the main area."""
    return page.get_by_role("region", name=label, exact=True)


def cell(live: Locator, index: int) -> Locator:
    return live.locator(".jp-Notebook-cell").nth(index)


def run(page: Page, command: str, name: str) -> None:
    page.evaluate(
        "async ([command, name]) => { await jupyterapp.commands.execute(command, {name}); }",
        [command, name],
    )


def test_the_notebook_fills_in_as_it_runs(
    lab: Lab, open_lab: Callable[[], Page], screenshot: Callable[[str], None]
) -> None:
    lab.write("reports/train.ipynb", PLOT, HOSTILE, STEPS, "print('the end')")
    page = open_lab()
    name = submit(page, open_notebook(page, "reports", "train.ipynb"))
    page.get_by_role("tab", name=re.compile("^Jobs")).click()
    page.get_by_role("button", name=f"Watch {name} live").click()
    live = view(page, f"{name}, as it runs")
    expect(cell(live, 0).locator("img")).to_be_visible(timeout=END_TIMEOUT)
    expect(cell(live, 0).locator("img")).to_have_js_property("naturalWidth", 160)
    expect(cell(live, 0).locator("span.ansi-red-fg")).to_have_text("a red word")
    printed = cell(live, 0).locator(".jp-OutputArea pre")
    expect(printed).to_have_text('a red word <img src=x onerror="window.stolen=1">')
    expect(cell(live, 1).locator("b")).to_have_text("kept")
    steps = cell(live, 2)
    expect(steps.get_by_text(re.compile(r"^'?\d{2,} steps"))).to_be_visible()
    expect(steps.get_by_text(re.compile(r"^step \d{2,}$"))).to_be_visible()
    expect(steps.locator(".jp-InputPrompt")).to_have_text("[*]:")
    expect(cell(live, 3).locator(".jp-OutputArea-output")).to_have_count(0)
    expect(live.get_by_text("cell 3 of 4")).to_be_visible()
    screenshot("live")
    choose_theme(page, "dark")
    screenshot("live-dark")
    choose_theme(page, "light")

    steps.locator(".cm-content").click()
    page.keyboard.type("x = 1")
    expect(steps.locator(".cm-content")).not_to_contain_text("x = 1")
    assert page.evaluate("() => window.stolen") is None, "nothing was executed"

    (lab.root / "reports" / "go").touch()
    expect(live.get_by_text(re.compile("^Succeeded after"))).to_be_visible(timeout=END_TIMEOUT)
    expect(cell(live, 3).get_by_text("the end", exact=True)).to_be_visible()
    expect(steps.locator(".jp-InputPrompt")).to_have_text("[3]:")
    live.get_by_role("button", name="Open Result").click()
    result = page.locator(".jp-NotebookPanel:not(.lm-mod-hidden)")
    expect(result.get_by_text("the end", exact=True)).to_be_visible()
    assert page.evaluate("() => jupyterapp.shell.currentWidget.title.label") == f"{name}.ipynb"


def test_a_view_is_restored_and_tells_how_it_failed(
    lab: Lab, open_lab: Callable[[], Page], screenshot: Callable[[str], None]
) -> None:
    lab.write("reports/broken.ipynb", "print('first')", STEPS, "1 / 0", "print('never')")
    page = open_lab()
    name = submit(page, open_notebook(page, "reports", "broken.ipynb"))
    run(page, "jupyter-to-job:watch", name)
    live = view(page, f"{name}, as it runs")
    expect(live.get_by_text("cell 2 of 4")).to_be_visible(timeout=END_TIMEOUT)
    kept = f'"jupyter-to-job-watch:{name}"'
    wait_for_layout(lab, f'"current":{kept}', f"{kept}:")
    page.goto(lab.url.replace("reset&", ""))
    page.wait_for_function("() => window.jupyterapp !== undefined")
    expect(cell(live, 0).get_by_text("first", exact=True)).to_be_visible()
    expect(cell(live, 1).get_by_text(re.compile(r"^step \d+$"))).to_be_visible()

    (lab.root / "reports" / "go").touch()
    expect(live.get_by_text(re.compile("^Failed after"))).to_be_visible(timeout=END_TIMEOUT)
    expect(
        live.get_by_text("Cell 3 (In [3]) raised ZeroDivisionError: division by zero.")
    ).to_be_visible()
    banners = live.locator(".jp-RenderedMarkdown").filter(has_text="xception")
    expect(banners.last).to_contain_text("encountered an exception here and stopped")
    expect(live.get_by_text("ZeroDivisionError").first).to_be_visible()
    screenshot("live-failed")


def alike(cells: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """What cells show, in one of the two ways in which a text can be written."""

    def joined(value: Any) -> Any:
        lines = isinstance(value, list) and all(isinstance(line, str) for line in value)
        return "".join(value) if lines else value

    return [
        {
            "source": joined(cell["source"]),
            "count": cell.get("execution_count"),
            "outputs": [
                {
                    key: {kind: joined(part) for kind, part in value.items()}
                    if key == "data"
                    else joined(value)
                    for key, value in output.items()
                    if key != "traceback"
                }
                for output in cell.get("outputs", [])
            ],
        }
        for cell in cells
    ]


def test_what_was_watched_is_what_is_delivered(lab: Lab, open_lab: Callable[[], Page]) -> None:
    lab.write("reports/all.ipynb", *EVERYTHING)
    page = open_lab()
    name = submit(page, open_notebook(page, "reports", "all.ipynb"))
    run(page, "jupyter-to-job:watch", name)
    live = view(page, f"{name}, as it runs")
    # The running cell is in sight although what stands above it fills many screens.
    expect(cell(live, 7).locator(".jp-InputPrompt")).to_have_text("[*]:", timeout=END_TIMEOUT)
    expect(cell(live, 7).locator(".jp-InputArea")).to_be_in_viewport()
    expect(cell(live, 6).get_by_text("79", exact=True)).to_be_in_viewport()
    assert page.evaluate("() => window.stolen") is None, "nothing was executed"

    scroller = live.locator(".jp-WindowedPanel-outer")
    scroller.hover()
    page.mouse.wheel(0, -3000)  # whoever reads on elsewhere is left there
    expect(cell(live, 7).locator(".jp-InputArea")).not_to_be_in_viewport()
    page.mouse.wheel(0, 3_000_000)  # and who comes back to the end is taken along again
    expect(cell(live, 9).locator(".jp-InputArea")).to_be_in_viewport()
    page.wait_for_timeout(REST)
    (lab.root / "reports" / "more").touch()
    more = cell(live, 7).get_by_text("more", exact=True)
    expect(more).to_be_visible()
    wait_for_rest(page, scroller)
    expect(cell(live, 8).locator(".jp-InputArea")).to_be_in_viewport()
    page.mouse.wheel(0, -3000)
    expect(more).not_to_be_in_viewport()
    place = wait_for_rest(page, scroller)
    (lab.root / "reports" / "go").touch()
    expect(live.get_by_text(re.compile("^Failed after"))).to_be_visible(timeout=END_TIMEOUT)
    banner = live.locator(".jp-RenderedMarkdown").filter(has_text="encountered at").first
    expect(banner).to_be_attached()
    moved = wait_for_rest(page, scroller) - place
    assert 0 <= moved <= banner.evaluate("banner => banner.closest('.jp-Cell').offsetHeight") + 20
    expect(cell(live, 10).locator(".jp-InputPrompt")).to_have_text("[9]:")
    heading = live.get_by_role("region", name="How the job goes")
    expect(heading.get_by_role("alert")).to_have_count(0)
    expect(heading.get_by_role("button", name="Open Result")).to_be_visible(timeout=END_TIMEOUT)

    shown, delivered = (
        alike(cells)
        for cells in (page.evaluate(SHOWN, name), cells_of(lab.root / f"reports/{name}.ipynb"))
    )
    (note, long), (whole,) = shown[LONG_CELL + 1]["outputs"], delivered[LONG_CELL + 1]["outputs"]
    assert "of text are not shown here: the result has all" in note["data"]["text/plain"]
    assert whole["text"].endswith(long["text"]) and len(long["text"]) > 100_000
    shown[LONG_CELL + 1]["outputs"] = [whole]
    assert shown == delivered

    open_lab()  # and who comes later is shown where it failed
    run(page, "jupyter-to-job:watch", name)
    why = live.locator(".jp-OutputArea-output").filter(has_text="ZeroDivisionError: division by")
    expect(why).to_be_in_viewport()
    assert page.evaluate("() => window.stolen") is None


def wait_for_rest(page: Page, scroller: Locator) -> float:
    """Where it is scrolled to, once it stays there."""
    count, places = REST // 50, list[float]()
    while len(places) < count or len(set(places[-count:])) > 1:
        page.wait_for_timeout(50)
        places.append(float(scroller.evaluate("node => node.scrollTop")))
    return places[-1]


def test_much_output_does_not_freeze_the_page(
    lab: Lab, open_lab: Callable[[], Page], screenshot: Callable[[str], None]
) -> None:
    much = "for n in range(400_000):\n    print(n, 'of many lines that nobody will ever read')"
    lab.write("reports/talk.ipynb", much, "print('done')")
    page = open_lab()
    name = submit(page, open_notebook(page, "reports", "talk.ipynb"))
    run(page, "jupyter-to-job:watch", name)
    live = view(page, f"{name}, as it runs")
    page.evaluate(
        """() => {
            window.longest = 0;
            let last = performance.now();
            const tick = () => {
                const now = performance.now();
                window.longest = Math.max(window.longest, now - last);
                last = now;
                setTimeout(tick, 10);
            };
            tick();
        }"""
    )
    expect(live.get_by_text(re.compile("^Succeeded after"))).to_be_visible(timeout=END_TIMEOUT)
    expect(live.get_by_text("done", exact=True)).to_be_visible(timeout=END_TIMEOUT)
    expect(live.get_by_text(re.compile("of text are not shown here"))).to_be_visible()
    expect(live.get_by_text("399999 of many lines")).to_be_visible()
    assert page.evaluate("() => window.longest") < at_most(LONGEST_PAUSE)
    assert len(live.inner_text()) < 500_000
    screenshot("live-much")


def test_logs_follow(
    lab: Lab, open_lab: Callable[[], Page], screenshot: Callable[[str], None]
) -> None:
    lab.write("reports/train.ipynb", PLOT, STEPS)
    page = open_lab()
    name = submit(page, open_notebook(page, "reports", "train.ipynb"))
    run(page, "jupyter-to-job:logs", name)
    logs = view(page, f"Logs of {name}")
    text = logs.get_by_role("log")
    expect(text.locator("span.ansi-red-fg")).to_have_text("a red word", timeout=END_TIMEOUT)
    expect(text).to_contain_text('<img src=x onerror="window.stolen=1">')
    expect(text).to_contain_text(re.compile(r"step \d{2,}"))
    expect(text.get_by_text("a red word")).to_have_count(1)
    assert len(re.findall(r"step \d", text.inner_text())) == 1, "one line, written over"
    assert page.evaluate("() => window.stolen") is None
    screenshot("logs")
    answers: list[Response] = []
    page.on("response", lambda answer: answers.append(answer))
    (lab.root / "reports" / "go").touch()
    expect(text).to_contain_text("went on", timeout=END_TIMEOUT)
    read = [(r.url.split("offset=")[1].split("&")[0], r) for r in answers if "/logs?" in r.url]
    offsets = [offset for offset, answer in read if answer.json()["text"]]
    assert offsets and len(set(offsets)) == len(offsets), "no byte twice"


LINES = """import pathlib, time
step = 0
while not pathlib.Path('go').exists():
    step += 1
    print('line', step)
    time.sleep(0.05)"""


TO_END_AS_LINES_COME = """node => {
    node.scrollTop = node.scrollHeight;
    [...node.querySelectorAll('pre')].pop().append('\\n'.repeat(20));
}"""
"""Scrolls to the end, which lines move away before the view hears that it was reached."""


def test_logs_follow_in_a_pane_that_gets_lower(lab: Lab, open_lab: Callable[[], Page]) -> None:
    lab.write("reports/train.ipynb", LINES)
    page = open_lab()
    name = submit(page, open_notebook(page, "reports", "train.ipynb"))
    run(page, "jupyter-to-job:logs", name)
    text = view(page, f"Logs of {name}").get_by_role("log")

    def printed() -> int:
        return int(text.inner_text().split()[-1])

    def is_at_end_after_more_lines() -> bool:
        expect(text).to_contain_text(f"line {printed() + 20}", timeout=END_TIMEOUT)
        left: int = text.evaluate("n => n.scrollHeight - n.scrollTop - n.clientHeight")
        return left < 40

    expect(text).to_contain_text("line 100", timeout=END_TIMEOUT)
    assert is_at_end_after_more_lines()
    page.set_viewport_size({"width": 1400, "height": 500})
    assert is_at_end_after_more_lines()
    text.hover()
    page.mouse.wheel(0, -300)
    assert not is_at_end_after_more_lines(), "whoever scrolls up reads there"
    page.mouse.wheel(0, 100_000)
    assert is_at_end_after_more_lines()
    page.mouse.wheel(0, -300)
    assert not is_at_end_after_more_lines()
    text.evaluate(TO_END_AS_LINES_COME)
    assert is_at_end_after_more_lines(), "whoever reaches the end in sight follows again"
    (lab.root / "reports" / "go").touch()
