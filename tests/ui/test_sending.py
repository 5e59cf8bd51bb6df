"""What sending does when the network is slow, cut or silent, and when an extension sends."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import APIResponse, Page, Route, expect

from tests.ui.lab import NOTHING_RUNS, Lab
from tests.ui.steps import (
    END_TIMEOUT,
    POST,
    ask,
    asked,
    button,
    cells,
    close_word_of_lost_connection,
    dialog,
    give_up,
    job_names,
    open_notebook,
    outputs,
    send,
    send_button,
    snapshot,
    submit,
    toast,
    told_name,
    until,
    wait_for_kernel,
)


def test_a_slow_submission_is_called_off_and_sent_again(
    lab: Lab, open_lab: Callable[[], Page]
) -> None:
    lab.write("reports/study.ipynb", "print('once')")
    page = open_lab()
    panel = open_notebook(page, "reports", "study.ipynb")
    ask(page, panel)
    held: list[Route] = []
    page.route(POST, lambda route: held.append(route))  # a network that takes its time
    with page.expect_request(POST):
        send_button(page).click()
    expect(dialog(page).get_by_text("Sending…")).to_be_visible()
    with page.expect_response(re.compile("/submissions/")) as withdrawn:
        page.keyboard.press("Escape")
    assert withdrawn.value.status == 204, withdrawn.value.text()
    held[0].continue_()
    page.unroute(POST)
    expect(dialog(page).get_by_text("Called off: nothing was submitted.")).to_be_visible()
    assert job_names(lab) == set()

    close_word_of_lost_connection(page)
    page.context.set_offline(True)
    send_button(page).click()
    expect(dialog(page).get_by_role("alert")).to_contain_text("Sending again is safe")
    page.context.set_offline(False)
    send_button(page).click()
    name = told_name(page)
    assert job_names(lab) == {name}
    expect(dialog(page)).to_have_count(0)

    # A server that answers nothing at all: whoever does not wait for it is let go.
    ask(page, panel)
    page.route(re.compile("/api/(jobs|submissions/)"), lambda _: None)
    send_button(page).click()
    expect(dialog(page).get_by_text("Sending…")).to_be_visible()
    page.keyboard.press("Escape")
    expect(dialog(page).get_by_text("Calling off…")).to_be_visible()
    page.keyboard.press("Escape")
    expect(dialog(page)).to_have_count(0)
    expect(button(panel)).to_be_enabled()


@pytest.mark.parametrize("lab", [NOTHING_RUNS], indirect=True)
def test_a_submission_whose_answer_is_lost_is_one_job(
    lab: Lab, open_lab: Callable[[], Page]
) -> None:
    lab.write("reports/study.ipynb", "print('once')")
    page = open_lab()
    panel = open_notebook(page, "reports", "study.ipynb")

    def cut(route: Route) -> None:
        assert route.fetch().status == 201
        route.abort("connectionreset")

    ask(page, panel)
    page.route(POST, cut, times=1)
    send_button(page).click()
    name = told_name(page)  # it was sent again without a word
    expect(dialog(page)).to_have_count(0)
    assert job_names(lab) == {name}

    ask(page, panel)
    page.route(POST, give_up)
    send_button(page).click()
    expect(dialog(page).get_by_role("alert")).to_contain_text("Sending again is safe")
    (taken,) = job_names(lab) - {name}
    page.unroute(POST)
    send_button(page).dblclick()
    expect(toast(page, f"Submitted as {taken}")).to_be_visible()
    assert job_names(lab) == {name, taken}


@pytest.mark.parametrize("lab", [NOTHING_RUNS], indirect=True)
def test_a_current_version_whose_answer_is_lost_is_one_job(
    lab: Lab, open_lab: Callable[[], Page]
) -> None:
    lab.write("reports/study.ipynb", "print('once')")
    page = open_lab()
    panel = open_notebook(page, "reports", "study.ipynb")
    wait_for_kernel(page)  # of a notebook that has changed the job is new
    name = submit(page, panel)
    press = "name => void jupyterapp.commands.execute('jupyter-to-job:submit-current', { name })"

    page.route(POST, give_up)
    page.evaluate(press, name)
    said = page.locator(".jp-Dialog").filter(has_text="Sending again is safe")
    said.get_by_role("button", name="Close").click()
    (taken,) = job_names(lab) - {name}
    page.unroute(POST)
    page.evaluate(press, name)
    assert told_name(page) == taken
    assert job_names(lab) == {name, taken}


@pytest.mark.parametrize("lab", [NOTHING_RUNS], indirect=True)
def test_a_submission_waits_for_a_save_that_is_under_way(
    lab: Lab, open_lab: Callable[[], Page]
) -> None:
    source = lab.write("reports/study.ipynb", "print('as it was')")
    page = open_lab()
    panel = open_notebook(page, "reports", "study.ipynb")
    held: list[tuple[Route, APIResponse]] = []

    def hold_answer(route: Route) -> None:
        if route.request.method == "PUT" and not held:
            held.append((route, route.fetch()))
        else:
            route.fallback()

    page.route(re.compile("/api/contents/reports/study.ipynb"), hold_answer)
    cell = panel.locator(".cm-content").first
    cell.click()
    cell.fill("print('edited')")
    page.keyboard.press("Control+s")
    until(page, lambda: held, "the notebook was not saved")
    assert "edited" in source.read_text()
    button(panel).click()
    expect(dialog(page).get_by_role("radio").first).to_be_visible()
    route, response = held[0]
    route.fulfill(response=response)
    asked(page)
    name = send(page)
    assert "edited" in snapshot(lab, name).read_text()

    # JupyterLab takes for saved, too, what is typed while it waits for the answer.
    held.clear()
    cell.click()
    cell.fill("print('again')")
    page.keyboard.press("Control+s")
    until(page, lambda: held, "the notebook was not saved")
    cell.fill("print('at the last moment')")
    route, response = held[0]
    route.fulfill(response=response)
    expect(page.locator(".jp-mod-dirty")).to_have_count(0)
    expect(toast(page, "Submitted as")).to_have_count(0)
    assert "at the last moment" in snapshot(lab, submit(page, panel)).read_text()


def test_other_extensions_submit_without_a_dialog(lab: Lab, open_lab: Callable[[], Page]) -> None:
    lab.write("reports/study.ipynb", "x = 1", "print(x)", tags=("parameters",))
    page = open_lab()
    path = "reports/study.ipynb"
    arguments = {"path": path, "flavor": "medium", "parameters": {"x": 2}, "name": "other"}
    execute = "([id, args]) => jupyterapp.commands.execute(id, args)"
    job = page.evaluate(execute, ["jupyter-to-job:submit", arguments])
    assert job["name"].startswith("other-")
    assert (job["flavor"], job["parameters"]) == ("medium", {"x": 2})
    described = page.evaluate("() => jupyterapp.commands.describedBy('jupyter-to-job:submit')")
    assert {"path", "ask", "flavor", "device", "parameters"} <= set(described["args"]["properties"])
    expect(dialog(page)).to_have_count(0)
    expect(toast(page, f"{job['name']} finished")).to_be_visible(timeout=END_TIMEOUT)
    assert "2\n" in outputs(lab.root / "reports" / f"{job['name']}.ipynb")
    assert cells(lab.root / path)[0]["source"] == "x = 1"
    assert button(page).count() == 0, "no notebook was opened for it"
