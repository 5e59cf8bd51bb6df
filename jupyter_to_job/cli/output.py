"""What the commands print: the answer on stdout, everything else on stderr."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from ..domain.errors import JobsError
from ..domain.job import Job

_UNBROKEN = 10_000
"""Columns that no table needs."""


def note(text: str) -> None:
    """Say something that is not the answer."""
    click.echo(text, err=True)


def problem(error: JobsError) -> None:
    """Say what went wrong and what to do."""
    note(f"Error: {error.message}")
    if error.hint:
        note(error.hint)


def document(value: Any) -> None:
    """Print one JSON document."""
    text = json.dumps(value, indent=2, ensure_ascii=False)
    try:
        text.encode()
    except UnicodeEncodeError:  # lone surrogates: legal in JSON when escaped, never in UTF-8
        text = json.dumps(value, indent=2)
    click.echo(text)


def state_of(job: Job) -> str:
    """Return a job's state in words."""
    if job.cancel_requested:
        return f"{job.state.value} (cancel requested)"
    if job.reason:
        return f"{job.state.value} ({job.reason})"
    if job.position is not None:
        return f"{job.state.value} (place {job.position})"
    return job.state.value


def ended(jobs: Sequence[Job], *, as_json: bool, root: Path) -> None:
    """Print the final jobs: JSON, or the path of each result."""
    if as_json:
        document([j.to_json() for j in jobs] if len(jobs) > 1 else jobs[0].to_json())
        return
    for job in jobs:
        note(f"{job.name} {state_of(job)}{': ' + job.message if job.message else ''}")
        if job.delivery.path is not None:
            click.echo(os.path.normpath(root / job.delivery.path))
        elif job.delivery.message:
            note(f"Not delivered: {job.delivery.message}")


def table(jobs: Sequence[Job]) -> None:
    """Print jobs as a table that fits the terminal; in a pipe, a job is one line."""
    from rich.console import Console
    from rich.table import Table

    view = Table(box=None, pad_edge=False)
    for column in ("JOB", "STATE", "FLAVOR", "CELLS", "SUBMITTED", "RESULT"):
        view.add_column(column, no_wrap=column in ("JOB", "CELLS", "SUBMITTED"), overflow="fold")
    for job in jobs:
        cells = f"{job.progress.cells_done}/{job.progress.cells_total}"
        result = job.delivery.path or job.delivery.state.value
        kind = f"{job.flavor}/{job.device}"
        view.add_row(job.name, state_of(job), kind, cells, (job.submitted or "")[:19], result)
    if jobs:
        Console(width=None if sys.stdout.isatty() else _UNBROKEN).print(view, markup=False)
    else:
        note("No jobs.")


def details(job: Job) -> None:
    """Print all fields of one job."""
    for name, value in job.to_json().items():
        if value not in (None, [], {}, ""):
            shown = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
            click.echo(f"{name:17} {shown}")


def catalog(described: dict[str, Any]) -> None:
    """Print flavors with what they give and the devices they go with."""
    for name, flavor in described["flavors"].items():
        mark = "*" if name == described["default"]["flavor"] else " "
        gpus = f", {flavor['gpus']} GPU" if flavor["gpus"] else ""
        size = f"{flavor['cpu']} CPU, {flavor['memory']}{gpus}"
        click.echo(f"{mark} {name:12} {size:28} {', '.join(flavor['devices'])}")
