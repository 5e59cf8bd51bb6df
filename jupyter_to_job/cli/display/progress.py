"""What is seen while jobs are waited for: bars on a terminal, a line per change of state elsewhere.

However many jobs there are, the bars fit the terminal: then only those that run are shown, and the
others are counted.
"""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Protocol

from ...domain.job import Job, State
from . import formats, output

if TYPE_CHECKING:
    from rich.console import RenderableType
    from typing_extensions import Self

REFRESHES = 8
"""How often a second the bars are drawn anew."""
_ORDER = (State.RUNNING, State.STARTING, State.QUEUED)


class ProgressDisplay(Protocol):
    """Shows jobs while they go on; a context manager, which leaves the screen as it was."""

    def __enter__(self) -> Self: ...
    def __exit__(self, *about: object) -> None: ...
    def show(self, job: Job) -> None:
        """Take notice of a job as it is now."""
        ...


def board() -> ProgressDisplay:
    """Return what suits where stderr goes."""
    return Bars() if sys.stderr.isatty() and os.environ.get("TERM") != "dumb" else Lines()


class Lines:
    """One line on stderr for each change of state: what a log file wants."""

    def __init__(self) -> None:
        self._said: dict[str, str] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *about: object) -> None:
        return None

    def show(self, job: Job) -> None:
        """See Board. How a job ended is left to whoever waits for it."""
        key = f"{job.state.value} {job.cancel_requested} {job.reason}"
        if self._said.get(job.name) != key and not job.state.final:
            output.note(f"{job.name} {formats.state(job)}")
        self._said[job.name] = key


class Bars:
    """A bar per job, drawn in place."""

    def __init__(self) -> None:
        from rich.console import Console
        from rich.live import Live

        self._jobs: dict[str, Job] = {}
        self._console = Console(stderr=True, highlight=False)
        self._live = Live(
            console=self._console,
            get_renderable=self._render,
            refresh_per_second=REFRESHES,
            transient=True,
            redirect_stdout=False,
            redirect_stderr=False,
        )

    def __enter__(self) -> Self:
        self._live.start()
        return self

    def __exit__(self, *about: object) -> None:
        self._live.stop()

    def show(self, job: Job) -> None:
        """See Board."""
        self._jobs = {**self._jobs, job.name: job}  # the drawing thread reads it meanwhile

    def _render(self) -> RenderableType:
        from rich.console import Group
        from rich.text import Text

        jobs = list(self._jobs.values())
        room = max(self._console.height - 2, 1)
        shown, rest = jobs, ""
        if len(jobs) > room:
            shown = _active(jobs)[: room - 1]
            rest = _count(job for job in jobs if job not in shown)
        lines: list[Any] = [self._grid(shown)]
        if rest:
            lines.append(Text(rest, no_wrap=True, overflow="ellipsis", style="dim"))
        return Group(*lines)

    def _grid(self, jobs: list[Job]) -> RenderableType:
        from rich.progress_bar import ProgressBar
        from rich.table import Table
        from rich.text import Text

        width = self._console.width
        bar = 30 if width >= 100 else 16 if width >= 70 else 8 if width >= 50 else 0
        rows = [(job.name, formats.cells(job), _clock(job), _now(job)) for job in jobs]
        name, cells, clock, now = (max((len(r[i]) for r in rows), default=0) for i in range(4))
        name = min(name, max(width // 3, 12))
        # Names and what goes on are cut where room is scarce, figures never are.
        now = max(min(now, width - sum(w + 1 for w in (name, bar, cells, clock) if w)), 1)
        grid = Table.grid(padding=(0, 1))
        grid.add_column(no_wrap=True, overflow="ellipsis", width=name)
        if bar:
            grid.add_column(width=bar)
        grid.add_column(no_wrap=True, justify="right", width=cells)
        grid.add_column(no_wrap=True, justify="right", width=clock)
        grid.add_column(no_wrap=True, overflow="ellipsis", width=now)
        for job, (first, *rest) in zip(jobs, rows, strict=True):
            done, total = job.progress.cells_done, job.progress.cells_total
            drawn = [ProgressBar(max(total, 1), done, width=bar)] if bar else []
            grid.add_row(Text(first), *drawn, *(Text(text) for text in rest))
        return grid


def _active(jobs: list[Job]) -> list[Job]:
    """Return the jobs that have not ended, those first that are furthest."""
    going = [job for job in jobs if job.state in _ORDER]
    return sorted(going, key=lambda job: (_ORDER.index(job.state), job.position or 0, job.name))


def _count(jobs: Iterable[Job]) -> str:
    """Return how many jobs are in which state: `and 12 queued, 30 succeeded`."""
    states = Counter(job.state.value for job in jobs)
    return "and " + ", ".join(f"{states[s.value]} {s.value}" for s in State if states[s.value])


def _clock(job: Job) -> str:
    spent = formats.elapsed(job)
    return "" if spent is None else formats.clock(spent)


def _now(job: Job) -> str:
    """Return what a job is doing."""
    if job.state.final:
        return formats.state(job) if job.decided else f"{formats.state(job)}, is being delivered"
    if job.position is not None:
        return f"queued, place {job.position} in line"
    if job.state is State.RUNNING and not job.cancel_requested:
        cell = job.progress.current_cell
        return "running" if cell is None else f"cell {cell + 1}"
    return formats.state(job)
