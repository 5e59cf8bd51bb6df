"""Every screen for everybody: in each theme and size, without colours, and without motion."""

from __future__ import annotations

import shutil
from collections.abc import Callable

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Locator, Page, expect

from tests.ui.lab import Lab
from tests.ui.steps import (
    END_TIMEOUT,
    THEMES,
    asked,
    choose_theme,
    close_word_of_lost_connection,
    dialog,
    flavor,
    problems,
    send_button,
    toast,
    wait_until,
)

CATALOG = """
apiVersion: jupyter-to-job.io/v1
default: {flavor: small, device: cpu}
flavors:
  small: {title: Small, description: Quick checks, cpu: 500m, memory: 1Gi, devices: [cpu],
    max_runtime: 2h}
  huge: {title: Huge, description: A machine for itself, cpu: 64, memory: 512Gi, devices: [cpu]}
  gpu: {title: One GPU, description: Training, cpu: 500m, memory: 1Gi, gpus: 1,
    devices: [t4, slice], max_runtime: 1d}
devices:
  cpu: {title: CPU}
  t4: {title: NVIDIA T4, resource: nvidia.com/gpu, isolation: full}
  slice: {title: 1/20 of an A100, description: 4 GB of its memory, resource: example.com/slice,
    isolation: software}
"""
CAPACITY = "cpu=4,memory=16Gi,nvidia.com/gpu=1,example.com/slice=20"
MACHINE = {"catalog": CATALOG, "variables": {"JUPYTER_TO_JOB_CAPACITY": CAPACITY}}

STEPS = """import pathlib, time
print('\\x1b[31mred\\x1b[0m and \\x1b[1mbold\\x1b[0m')
while not pathlib.Path('go').exists():
    print('.', end='', flush=True)
    time.sleep(0.1)"""
"""A cell that prints until the test puts a file beside the notebook."""

UNTIL_GONE = """import pathlib, time
while pathlib.Path('../gone').exists():
    time.sleep(0.1)"""
"""A cell that runs until the folder of its result is gone."""

SLOW_START = """import pathlib, time
while pathlib.Path('wait').exists():
    time.sleep(0.1)"""
"""Run by every kernel before it answers: beside a file of that name, jobs are starting."""

SUBMIT = "async job => (await jupyterapp.commands.execute('jupyter-to-job:submit', job)).name"
RUN = "async ([id, name]) => { await jupyterapp.commands.execute(id, { name, ask: false }); }"
SHOW_PANEL = "() => jupyterapp.shell.activateById('jupyter-to-job-jobs')"

CUT_OFF = """element => [element, ...element.querySelectorAll('*')].filter(inner => {
    const { overflowX } = getComputedStyle(inner);
    const isLine = inner.matches('input, select, svg *, .jp-ToJob-spoken, pre, pre *');
    return overflowX !== 'visible' && !isLine && inner.scrollWidth > inner.clientWidth + 1;
}).map(inner => `${inner.className}: ${inner.scrollWidth} > ${inner.clientWidth}`)"""
"""What would have to be scrolled sideways, or is cut off there."""

MOVING = """() => [...document.querySelectorAll('[class*=jp-ToJob], [class*=jp-ToJob] > *')]
    .filter(element => {
        const { animationName, transitionDuration } = getComputedStyle(element);
        return animationName !== 'none' || !/^(0s(, )?)+$/.test(transitionDuration);
    }).map(({ outerHTML }) => outerHTML)"""
"""What of ours would move."""

CONTROLS = "button, input, select, summary, [tabindex='0']"


def assert_accessible(page: Page, *contexts: str) -> None:
    """No finding of axe in what is ours."""
    found = Axe().run(page, context=list(contexts))
    assert found.violations_count == 0, found.generate_report()


def assert_accessible_in_all_themes(page: Page, *contexts: str) -> None:
    for theme in THEMES:
        choose_theme(page, theme)
        assert_accessible(page, *contexts)


def assert_reachable(part: Locator, controls: str = CONTROLS) -> None:
    """Nothing is cut off sideways, and every control can be brought wholly into sight."""
    assert part.evaluate(CUT_OFF) == []
    for control in part.locator(controls).filter(visible=True).all():
        control.scroll_into_view_if_needed()
        place = control.bounding_box()
        assert place is not None
        most = min(0.99, 1 - 1.5 / place["height"])  # scrolling ends at a whole pixel
        expect(control).to_be_in_viewport(ratio=most)


def jobs_in_every_state(lab: Lab, page: Page) -> dict[str, str]:
    """Their names by what became of them; one runs on, and one waits for its GPU."""
    lab.write("reports/train.ipynb", STEPS, "print('the end')", tags=("parameters",))
    lab.write("reports/quick.ipynb", "print(1)")
    lab.write("reports/late.ipynb", UNTIL_GONE)
    lab.write("reports/broken.ipynb", "raise ValueError('could not convert string to float: n/a')")
    lab.write("reports/slow/start.ipynb", "print(1)")
    (lab.root / "reports" / "slow" / "wait").touch()
    startup = lab.base / "home" / ".ipython" / "profile_default" / "startup"
    startup.mkdir(parents=True)
    (startup / "wait.py").write_text(SLOW_START)
    (lab.root / "gone").mkdir()

    def submit(stem: str, **choices: str) -> str:
        job = {"path": f"reports/{stem}.ipynb", "flavor": "small", **choices}
        return str(page.evaluate(SUBMIT, job))

    gpu = {"flavor": "gpu", "device": "t4"}
    jobs = {
        "held": submit("late", name="held", output="gone"),
        "succeeded": submit("quick"),
        "failed": submit("broken"),
        "running": submit("train", **gpu),
        "starting": submit("slow/start"),
        "queued": submit("quick", name="a-rather-long-name-that-somebody-gave-it", **gpu),
        "cancelled": submit("quick", name="no", **gpu),
    }
    shutil.rmtree(lab.root / "gone")
    page.evaluate(RUN, ["jupyter-to-job:cancel", jobs["cancelled"]])
    page.evaluate(SHOW_PANEL)
    for label, words in {
        "starting": "Starting",  # for a minute at most
        "held": "Not delivered",
        "succeeded": "Succeeded after",
        "failed": "Failed after",
        "running": "cell 1 of 2",
        "queued": "next in line",
        "cancelled": "Cancelled",
    }.items():
        row = page.get_by_role("article", name=jobs[label])
        expect(row.get_by_text(words).first).to_be_visible(timeout=END_TIMEOUT)
    return jobs


PANEL = ".jp-ToJob-panel"
ASKED = ".jp-ToJobDialog .jp-Dialog-content"
VIEW = ".jp-MainAreaWidget:not(.lm-mod-hidden) .jp-ToJob-watch"


@pytest.mark.timeout(1200)
@pytest.mark.parametrize("lab", [MACHINE], indirect=True)
def test_every_screen_in_every_theme_size_and_colour(
    lab: Lab, open_lab: Callable[[], Page], screenshot: Callable[[str], None]
) -> None:
    page = open_lab()
    page.evaluate(SHOW_PANEL)
    expect(page.get_by_text("No jobs yet.")).to_be_visible()
    assert_accessible_in_all_themes(page, PANEL)
    jobs = jobs_in_every_state(lab, page)
    badge = "li[data-id=jupyter-to-job-jobs]"
    assert_accessible_in_all_themes(page, PANEL, badge, ".jp-ToJob-status")
    for theme in THEMES:
        choose_theme(page, theme)
        page.evaluate(RUN, ["jupyter-to-job:rerun", "no-such-job"])  # its toast stays 15 seconds
        expect(toast(page, "no-such-job").first).to_be_visible()
        expect(page.locator(".Toastify--animate")).to_have_count(0)
        assert_accessible(page, ".Toastify__toast-body")
    screenshot("panel-contrast")
    panel = page.locator(PANEL)
    row = page.get_by_role("article", name=jobs["running"])
    row.get_by_role("button", name="More actions").click()
    # The menu's frame and its separators are Lumino's.
    assert_accessible_in_all_themes(page, ".lm-Menu-item[data-type=command]")
    page.keyboard.press("Escape")

    look_at_narrow_panel(page, panel)
    watch_and_read(page, jobs["running"], screenshot)
    look_at_dialog(lab, page, screenshot)
    look_without_colours_and_motion(page, jobs["running"])


def look_at_narrow_panel(page: Page, panel: Locator) -> None:
    """In a side bar of 220 pixels, and in a window as 200 % zoom leaves it."""
    handle = page.locator("#jp-main-split-panel > .lm-SplitPanel-handle").first.bounding_box()
    side = panel.bounding_box()
    assert handle is not None and side is not None
    page.mouse.move(handle["x"] + 1, 400)
    page.mouse.down()
    page.mouse.move(side["x"] + 220, 400, steps=5)
    page.mouse.up()
    for width, height in ((1400, 900), (640, 400)):
        page.set_viewport_size({"width": width, "height": height})
        wait_until(lambda: panel.evaluate(CUT_OFF) == [], "the panel is cut off")
        assert_reachable(panel, "[tabindex='0'], input, select")
    page.set_viewport_size({"width": 1400, "height": 900})


def watch_and_read(page: Page, name: str, screenshot: Callable[[str], None]) -> None:
    """Watch live and logs, and the questions before something is lost."""
    page.evaluate(RUN, ["jupyter-to-job:watch", name])
    live = page.get_by_role("region", name=f"{name}, as it runs")
    expect(live.get_by_text("red and bold")).to_be_visible(timeout=END_TIMEOUT)
    # What is in the cells is drawn by JupyterLab; that they can be scrolled by keys is ours.
    assert_accessible_in_all_themes(page, ".jp-ToJob-live-heading")
    found = Axe().run(
        page,
        VIEW,
        options={"runOnly": ["scrollable-region-focusable", "region", "aria-allowed-role"]},
    )
    assert found.violations_count == 0, found.generate_report()
    screenshot("live-contrast")
    page.set_viewport_size({"width": 640, "height": 400})
    assert_reachable(live.get_by_role("region", name="How the job goes"))
    expect(live.get_by_role("region", name=f"Cells of {name}")).to_be_in_viewport(ratio=0.9)
    page.set_viewport_size({"width": 1400, "height": 900})

    page.evaluate(RUN, ["jupyter-to-job:logs", name])
    expect(page.get_by_role("log").get_by_text("red and bold")).to_be_visible()
    assert_accessible_in_all_themes(page, VIEW)

    page.get_by_role("button", name="Cancel Job").filter(visible=True).click()
    expect(page.get_by_role("dialog").get_by_text(f"Cancel {name}?")).to_be_visible()
    assert_accessible_in_all_themes(page, ".jp-Dialog .jp-Dialog-content")
    page.get_by_role("button", name="Go On Running").click()


def look_at_dialog(lab: Lab, page: Page, screenshot: Callable[[str], None]) -> None:
    """The dialog with all of it unfolded, with problems, with a refusal, and small."""
    parameters = "epochs: int = 3  # How often the data are seen\nverbose = False\nlimit = 60 * 60"
    lab.write("reports/study.ipynb", parameters, "open('a.csv')", tags=("parameters",))
    (lab.root / "reports" / "a.csv").write_text("1,2")
    page.evaluate(
        """() => void jupyterapp.commands.execute(
            'jupyter-to-job:submit', { path: 'reports/study.ipynb', ask: true })"""
    )
    asked(page)
    flavor(page, "One GPU").check()
    for section in dialog(page).locator("summary").all():
        section.click()
    dialog(page).get_by_label("epochs", exact=True).fill("many")
    dialog(page).get_by_role("button", name="Add a Variable").click()
    dialog(page).get_by_label("Name of the variable").fill("HF_TOKEN")
    dialog(page).get_by_label("Isolated").check()
    dialog(page).get_by_label("Add a file").fill("nothing.csv")
    dialog(page).get_by_role("button", name="Add", exact=True).click()
    expect(problems(page).first).to_be_visible()
    assert_accessible_in_all_themes(page, ASKED)
    screenshot("dialog-contrast")
    page.set_viewport_size({"width": 640, "height": 400})
    assert_reachable(page.locator(ASKED))
    expect(send_button(page)).to_be_in_viewport(ratio=1)
    assert_accessible(page, ASKED)
    screenshot("dialog-zoomed")
    page.set_viewport_size({"width": 1400, "height": 900})

    dialog(page).get_by_role("button", name="Remove nothing.csv").click()
    dialog(page).get_by_label("epochs", exact=True).fill("5")
    asked(page)
    lab.write("reports/study.ipynb", "print('of somebody else')")
    close_word_of_lost_connection(page)
    page.context.set_offline(True)
    send_button(page).click()
    expect(dialog(page).get_by_role("alert")).to_contain_text("Sending again is safe")
    page.context.set_offline(False)
    assert_accessible_in_all_themes(page, ASKED)


def look_without_colours_and_motion(page: Page, name: str) -> None:
    """What the system's own colours leave of us, and that nothing moves for who wants that."""
    card = dialog(page).locator(".jp-ToJobDialog-card.jp-mod-selected")
    other = dialog(page).locator(".jp-ToJobDialog-card:not(.jp-mod-selected)").first
    bar = page.get_by_role("article", name=name).get_by_role("progressbar")
    assert page.evaluate(MOVING) != [], "the bar moves as a rule"
    page.emulate_media(forced_colors="active", reduced_motion="reduce")
    assert page.evaluate(MOVING) == []
    outline = "card => getComputedStyle(card).outlineStyle"
    assert card.evaluate(outline) == "solid"
    assert other.evaluate(outline) == "none"
    page.keyboard.press("Escape")
    expect(dialog(page)).to_have_count(0)
    page.evaluate(SHOW_PANEL)
    colour = "element => getComputedStyle(element).backgroundColor"
    assert bar.locator("span").evaluate(colour) != bar.evaluate(colour)
    behind = page.locator(PANEL).evaluate(colour)
    for icon in page.locator(".jp-ToJob-state svg [fill]:not([fill=none])").all():
        assert icon.evaluate("icon => getComputedStyle(icon).fill") != behind
    page.emulate_media(forced_colors="none", reduced_motion="no-preference")
