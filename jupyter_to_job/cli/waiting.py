"""`--wait` and `wait`: live progress on a terminal, and the final jobs."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Iterator
from typing import Any

from ..domain.errors import Unavailable
from ..domain.job import DeliveryState, Job
from ..service.port import Jobs
from . import output

PATIENCE = 60.0
"""Seconds without a word from the gateway after which waiting is given up."""


def wait_for(service: Jobs, names: list[str], *, progress: bool) -> list[Job]:
    """Return the jobs once the delivery of each is decided.

    Ctrl-C leaves the jobs running and says how to return to them.
    """
    jobs = {name: service.get(name) for name in names}
    try:
        with _bars(progress and sys.stderr.isatty()) as show:
            for job in _changes(service):
                if job is not None and job.name in jobs:
                    jobs[job.name] = _pulled(service, job)
                    show(jobs[job.name])
                if job is None:
                    jobs.update({n: service.get(n) for n in names if not jobs[n].decided})
                if all(j.decided for j in jobs.values()):
                    break
    except KeyboardInterrupt:
        running = [name for name, job in jobs.items() if not job.decided]
        output.note(f"Still running. Return with: jupyter-to-job wait {' '.join(running)}")
        raise
    return [jobs[name] for name in names]


def _changes(service: Jobs) -> Iterator[Job | None]:
    """Follow the feed; a gateway that is away for less than `PATIENCE` is waited for."""
    heard = time.monotonic()
    while True:
        try:
            for job in service.changes():
                heard = time.monotonic()
                yield job
        except Unavailable:
            if time.monotonic() - heard > PATIENCE:
                raise
            time.sleep(1.0)


def _pulled(service: Jobs, job: Job) -> Job:
    """Publish an ended job's result where this process is the one that reaches the workspace."""
    pending = job.state.final and job.delivery.state is DeliveryState.PENDING
    return service.deliver(job.name) if pending and service.pulls else job


@contextlib.contextmanager
def _bars(terminal: bool) -> Iterator[Any]:
    """Yield a function that shows a job: a progress bar each on a terminal, else nothing."""
    if not terminal:
        yield lambda _: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.completed}/{task.total} cells"),
        TimeElapsedColumn(),
        TextColumn("{task.fields[note]}"),
    )
    with Progress(*columns, console=Console(stderr=True)) as bars:
        tasks: dict[str, Any] = {}

        def show(job: Job) -> None:
            if job.name not in tasks:
                tasks[job.name] = bars.add_task(job.name, total=None, note="")
            cell = job.progress.current_cell
            note = output.state_of(job) if cell is None else f"cell {cell + 1}"
            bars.update(
                tasks[job.name],
                completed=job.progress.cells_done,
                total=job.progress.cells_total or None,
                note=note,
            )

        yield show
