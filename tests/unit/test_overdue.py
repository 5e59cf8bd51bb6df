"""A run that goes on past its time limit is overdue, but for what the limit does not count."""

from __future__ import annotations

from pathlib import Path

import pytest

from job_runner.protocol import layout
from job_runner.protocol.journal.journal import JournalWriter
from jupyter_to_job.dispatcher.overdue import ALLOWANCE, SLOW_ALLOWANCE, OverdueWatch

from . import exchanges

LIMIT = 100.0
IN_TIME = LIMIT + ALLOWANCE - 1
LATE = LIMIT + ALLOWANCE + 6
"""Seconds after the first cell was seen; a look at the journal is at most five seconds old."""


class Run:
    """A run that writes records, and a clock that a test sets."""

    def __init__(self, attempt: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self._attempt = attempt
        self._writer = JournalWriter(attempt / layout.JOURNAL)
        self._watch = OverdueWatch()
        self._request = exchanges.request("train-aaaaaaaa", max_runtime=LIMIT)
        self._moment = 1000.0
        monkeypatch.setattr("time.monotonic", lambda: self._moment)
        self.write("start")

    def write(self, *kinds: str) -> None:
        for kind in kinds:
            self._writer.append({"k": kind, "t": 1.0})

    def is_overdue_after(self, seconds: float) -> bool:
        """Look every second, as a dispatcher does, and return what the last look says."""
        found = False
        for _ in range(int(seconds)):
            self._moment += 1.0
            found = self._watch.is_overdue(self._request, self._attempt)
        return found


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    return Run(tmp_path, monkeypatch)


def test_a_cell_that_goes_on(run: Run) -> None:
    run.write("cell_start")
    assert not run.is_overdue_after(IN_TIME)
    assert run.is_overdue_after(LATE - IN_TIME)


def test_starting_a_kernel_has_more_time(run: Run) -> None:
    assert not run.is_overdue_after(LIMIT + SLOW_ALLOWANCE - 1)
    assert run.is_overdue_after(7)


def test_the_limit_counts_from_the_first_cell(run: Run) -> None:
    assert not run.is_overdue_after(SLOW_ALLOWANCE)
    run.write("cell_start")
    assert not run.is_overdue_after(IN_TIME)
    assert run.is_overdue_after(LATE - IN_TIME)


def test_after_the_last_cell_files_are_saved(run: Run) -> None:
    run.write("cell_start", "cell_end")
    assert not run.is_overdue_after(LATE)
    assert run.is_overdue_after(SLOW_ALLOWANCE)


def test_a_cell_between_two_looks(run: Run) -> None:
    run.write("cell_start", "cell_end", "cell_start")
    assert run.is_overdue_after(LATE)


def test_writing_the_result_has_more_time(run: Run) -> None:
    run.write("cell_start", "cell_end", "end")
    assert not run.is_overdue_after(LATE)
    assert run.is_overdue_after(SLOW_ALLOWANCE)


def test_one_that_was_overdue_stays_so(run: Run) -> None:
    """Woken, it ends in its journal, and is stopped again before it has written its result."""
    run.write("cell_start")
    assert run.is_overdue_after(LATE)
    run.write("cell_end", "end")
    assert run.is_overdue_after(1)


def test_a_job_without_a_limit(tmp_path: Path) -> None:
    watch = OverdueWatch(allowance=0.0, slow_allowance=0.0)
    assert not watch.is_overdue(exchanges.request("train-aaaaaaaa", max_runtime=None), tmp_path)
