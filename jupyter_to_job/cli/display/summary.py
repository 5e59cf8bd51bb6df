"""Prints how jobs ended: a line for a single one, a table for a batch, paths on stdout."""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TextIO

from ...domain.errors import JobsError
from ...domain.job import DeliveryState, Job
from . import formats, output


def print_summary(
    jobs: Sequence[Job], roots: Mapping[str, Path], failures: Mapping[str, JobsError] | None = None
) -> None:
    """Print how jobs ended.

    `roots` maps each job's name to its workspace, `failures` each notebook that was not submitted
    to its error. The path of a single job is printed on stdout. For several jobs, people get the
    table on stdout; scripts (stdout is no terminal) get the paths there and the table on stderr.
    """
    paths = {
        job.name: os.path.normpath(roots[job.name] / job.delivery.path)
        for job in jobs
        if job.delivery.path is not None
    }
    if len(jobs) + len(failures or {}) > 1:
        terminal = sys.stdout.isatty()
        _print_table(jobs, paths, failures or {}, sys.stdout if terminal else sys.stderr)
        if terminal:
            return
    else:
        for job in jobs:
            _print_line(job)
    for path in paths.values():
        output.print_line(path)


def _print_line(job: Job) -> None:
    elapsed = formats.elapsed_text(job)
    output.print_note(formats.ending(job, f" in {elapsed}" if elapsed else ""))
    if (receipt := formats.receipt(job)) is not None:
        output.print_note(f"{job.name} {receipt}.")
    if job.delivery.path is None and job.delivery.message:
        output.print_note(f"Not delivered: {job.delivery.message}")
        if job.delivery.state is DeliveryState.HELD:
            output.print_note(f"Then: jupyter-to-job deliver {job.name}")


def _print_table(
    jobs: Sequence[Job],
    paths: Mapping[str, str],
    failures: Mapping[str, JobsError],
    stream: TextIO,
) -> None:
    from . import tables

    empty = [""] * len(failures)
    columns = [
        tables.Column("JOB", [*(job.name for job in jobs), *failures], min_width=20),
        tables.Column("STATE", [*(job.state.value for job in jobs), *["refused"] * len(failures)]),
        tables.Column("CELLS", [*(formats.cells(job) for job in jobs), *empty], drop=1),
        tables.Column("TIME", [*map(formats.elapsed_text, jobs), *empty]),
        tables.Column(
            "RESULT",
            [*(_result(job, paths) for job in jobs), *(f.message for f in failures.values())],
            min_width=20,
        ),
    ]
    tables.print_table(columns, stream)
    counts = Counter(advice for job in jobs if (advice := formats.advice(job.usage or {})))
    for advice, count in counts.most_common():
        output.print_note(f"For {formats.plural(count, 'job')}, {advice}.")


def _result(job: Job, paths: Mapping[str, str]) -> str:
    """Return the path of the result, after the reason of a job that did not succeed."""
    path = os.path.relpath(paths[job.name]) if job.name in paths else job.delivery.message or ""
    return f"{job.reason}: {path}" if job.reason else path
