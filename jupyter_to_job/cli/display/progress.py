"""Shows the progress of jobs: bars on a terminal, elsewhere a line for each change of state.

The bars always fit the terminal. If there are too many jobs, only the active ones have a bar. Below
the bars of several jobs a line counts all of them.
"""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from ...domain.job import Job, State
from . import formats, output

if TYPE_CHECKING:
    from rich.console import RenderableType
    from typing_extensions import Self

REFRESHES_PER_SECOND = 8
_ORDER = (State.RUNNING, State.STARTING, State.QUEUED)


class ProgressLines:
    """Prints a line to stderr for each change of state, as suits a log file."""

    def __init__(self) -> None:
        self._printed: dict[str, str] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *details: object) -> None:
        return None

    def show(self, job: Job) -> None:
        """Show the current state of a job. Its end is left to the summary, unless that waits."""
        key = f"{job.state.value} {job.cancel_requested} {job.reason} {job.delivery.message}"
        if self._printed.get(job.name) != key and not job.decided:
            if not job.state.final:
                output.print_note(f"{job.name} {formats.state(job)}")
            elif job.delivery.message:
                output.print_note(f"{job.name} {_delivery(job)}")
        self._printed[job.name] = key

    def remove(self, name: str) -> None:
        """Do nothing: there is no line to take back."""


class ProgressBars:
    """Draws a bar per job, in place."""

    def __init__(self) -> None:
        from rich.console import Console
        from rich.live import Live

        self._jobs: dict[str, Job] = {}
        self._console = Console(stderr=True, highlight=False)
        self._live = Live(
            console=self._console,
            get_renderable=self._render,
            refresh_per_second=REFRESHES_PER_SECOND,
            transient=True,
            redirect_stdout=False,
            redirect_stderr=False,
        )

    def __enter__(self) -> Self:
        self._live.start()
        return self

    def __exit__(self, *details: object) -> None:
        self._live.stop()

    def show(self, job: Job) -> None:
        """Show the current state of a job."""
        self._jobs = {**self._jobs, job.name: job}  # a new dict: rich's thread reads the other

    def remove(self, name: str) -> None:
        """Show a job no more."""
        self._jobs = {key: job for key, job in self._jobs.items() if key != name}

    def _render(self) -> RenderableType:
        from rich.console import Group
        from rich.text import Text

        jobs = list(self._jobs.values())
        height = max(self._console.height - 2, 1)
        if len(jobs) == 1:
            return self._grid(jobs)
        visible = jobs if len(jobs) < height else _active_jobs(jobs)[: height - 1]
        line = Text(_count_states(jobs), no_wrap=True, overflow="ellipsis", style="dim")
        return Group(self._grid(visible), line)

    def _grid(self, jobs: list[Job]) -> RenderableType:
        from rich.progress_bar import ProgressBar
        from rich.table import Table
        from rich.text import Text

        width = self._console.width
        bar = 30 if width >= 100 else 16 if width >= 70 else 8 if width >= 50 else 0
        # On a narrow terminal names and activities are cut, figures never.
        cut = partial(Text, no_wrap=True, overflow="ellipsis")
        grid = Table.grid("", padding=(0, 1))
        if bar:
            grid.add_column(width=bar)
        for _ in ("cells", "clock"):
            grid.add_column(no_wrap=True, justify="right")
        for job in jobs:
            progress = job.progress
            bars = [ProgressBar(max(progress.cells_total, 1), progress.cells_done, width=bar)]
            figures = Text(formats.cells(job)), Text(_clock(job))
            grid.add_row(
                cut(job.name), *(bars if bar else ()), *figures, cut(output.plain(_activity(job)))
            )
        return grid


ProgressDisplay = ProgressLines | ProgressBars
"""Shows jobs while they run. A context manager, which restores the screen when it is left."""


def choose_display() -> ProgressDisplay:
    """Return the display that suits stderr."""
    terminal = sys.stderr.isatty() and os.environ.get("TERM") != "dumb"
    return ProgressBars() if terminal else ProgressLines()


def _active_jobs(jobs: list[Job]) -> list[Job]:
    """Return the jobs that have not ended, running ones first."""
    active = [job for job in jobs if job.state in _ORDER]
    return sorted(active, key=lambda job: (_ORDER.index(job.state), job.position or 0, job.name))


def _count_states(jobs: Sequence[Job]) -> str:
    """Return how far some jobs are: `31 of 60 ended: 25 queued, 4 running, 31 succeeded`."""
    states = Counter(job.state for job in jobs)
    ended = sum(count for state, count in states.items() if state.final)
    counts = ", ".join(f"{states[state]} {state.value}" for state in State if states[state])
    return f"{ended} of {len(jobs)} ended: {counts}"


def _clock(job: Job) -> str:
    seconds = formats.elapsed(job)
    return "" if seconds is None else formats.clock(seconds)


def _delivery(job: Job) -> str:
    """Return what keeps an ended job from being delivered."""
    return f"{formats.state(job)}, {job.delivery.message or 'is being delivered'}"


def _activity(job: Job) -> str:
    """Return what a job is doing: the cell it runs, its place in line, or its state."""
    if job.state.final:
        return formats.state(job) if job.decided else _delivery(job)
    if job.position is not None:
        return f"queued, place {job.position} in line"
    if job.state is State.RUNNING and not job.cancel_requested:
        cell = formats.running_cell(job)
        return f"cell {cell}" if cell else "running"
    return formats.state(job)
