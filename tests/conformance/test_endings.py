"""Runs that do not succeed, on backends that execute cells: what ran comes back all the same."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from jupyter_to_job.domain.job import DeliveryState, State

from .. import notebooks
from .place import Place


@pytest.mark.core
def test_a_failed_cell(make_place: Callable[..., Place]) -> None:
    place = place_that_runs_code(make_place)
    cells = ("print('before')", "raise ValueError('no such row')", "print('never')")
    notebooks.write(place.workspace / "failing.ipynb", *cells)
    ended = place.decided(place.submit("failing.ipynb").name)
    assert (ended.state, ended.reason) == (State.FAILED, "CellError")
    assert "no such row" in (ended.message or "")
    assert ended.delivery.state is DeliveryState.DELIVERED
    assert notebooks.printed(place.result(ended)) == "before\n"
    assert notebooks.banner(place.result(ended))


@pytest.mark.core
def test_a_killed_runner(make_place: Callable[..., Place]) -> None:
    place = place_that_runs_code(make_place, hold="running")
    job = place.held_job()
    place.kill_runner(job.name)
    ended = place.decided(job.name)
    assert (ended.state, ended.reason) == (State.FAILED, "Lost")
    assert ended.message
    assert ended.delivery.state is DeliveryState.DELIVERED
    assert notebooks.printed(place.result(ended)) == "# kept\n"


def place_that_runs_code(make_place: Callable[..., Place], hold: str | None = None) -> Place:
    place = make_place(hold=hold)
    if not place.runs_code:
        pytest.skip("this backend executes no cells")
    return place
