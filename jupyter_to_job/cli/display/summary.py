"""How jobs ended, told after waiting: a line for one, a table for a batch; paths on stdout."""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

import click

from job_runner.protocol.units import format_duration

from ...domain.errors import JobsError
from ...domain.job import Job
from . import formats, output


def print_summary(
    jobs: Sequence[Job], roots: Mapping[str, Path], failures: Mapping[str, JobsError] | None = None
) -> None:
    """Say how jobs ended.

    `roots` has the workspace of each, by name; `failures` what was not submitted, by notebook.
    A single job's path is the answer on stdout. Of several, people get the table there, and
    scripts (stdout is no terminal) the paths, with the table on stderr.
    """
    paths = {j.name: _path(j, roots[j.name]) for j in jobs if j.delivery.path is not None}
    if len(jobs) + len(failures or {}) > 1:
        terminal = sys.stdout.isatty()
        _table(jobs, paths, failures or {}, to_stdout=terminal)
        if terminal:
            return
    else:
        for job in jobs:
            _line(job)
    for path in paths.values():
        click.echo(path)


def _path(job: Job, root: Path) -> str:
    return os.path.normpath(root / (job.delivery.path or ""))


def _line(job: Job) -> None:
    spent = formats.elapsed(job)
    took = "" if spent is None else f" in {format_duration(spent)}"
    output.note(f"{job.name} {formats.state(job)}{took}{': ' + job.message if job.message else ''}")
    if (receipt := formats.receipt(job)) is not None:
        output.note(f"{job.name} {receipt}.")
    if job.delivery.path is None and job.delivery.message:
        output.note(f"Not delivered: {job.delivery.message}")


def _table(
    jobs: Sequence[Job],
    paths: Mapping[str, str],
    failures: Mapping[str, JobsError],
    *,
    to_stdout: bool,
) -> None:
    from . import tables

    times = [formats.elapsed(job) for job in jobs]
    none = [""] * len(failures)
    columns = [
        tables.Column("JOB", [*(job.name for job in jobs), *failures], least=20),
        tables.Column("STATE", [*(job.state.value for job in jobs), *("refused" for _ in none)]),
        tables.Column("CELLS", [*(formats.cells(job) for job in jobs), *none], drop=1),
        tables.Column("TIME", [*("" if t is None else format_duration(t) for t in times), *none]),
        tables.Column(
            "RESULT",
            [*(_outcome(job, paths) for job in jobs), *(f.message for f in failures.values())],
            least=20,
        ),
    ]
    tables.write(columns, sys.stdout if to_stdout else sys.stderr)
    advised = Counter(advice for job in jobs if (advice := formats.advice(job.usage or {})))
    for advice, count in advised.most_common():
        output.note(f"For {formats.plural(count, 'job')}, {advice}.")


def _outcome(job: Job, paths: Mapping[str, str]) -> str:
    """Return where the result is, behind the reason of a job that did not succeed."""
    where = os.path.relpath(paths[job.name]) if job.name in paths else job.delivery.message or ""
    return f"{job.reason}: {where}" if job.reason else where
