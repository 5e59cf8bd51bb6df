"""One job in full, as `show` prints it."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from typing import Any

import click

from job_runner.protocol.units import format_duration

from ...domain.job import DeliveryState, Job
from .. import session
from ..display import formats

Line = tuple[str, str]


def show(job: Job) -> None:
    """Print all that is known of a job, in sections; what is not there is left out."""
    bold = sys.stdout.isatty()
    click.echo(click.style(job.name, bold=bold) + f"  {formats.state(job)}")
    if job.message:
        click.echo(job.message)
    for title, lines in (
        ("Progress", _progress(job)),
        ("Result", _result(job)),
        ("Asked for", _asked(job)),
        ("Used", _used(job)),
    ):
        shown = [line for line in lines if line[1]]
        if shown:
            click.echo(f"\n{click.style(title, bold=bold)}")
            for name, value in shown:
                click.echo(f"  {name:<13} {value}")


def _progress(job: Job) -> Iterator[Line]:
    yield "cells", formats.cells(job)
    if job.progress.current_cell is not None:
        yield "running cell", str(job.progress.current_cell + 1)
    for name in ("submitted", "started", "finished"):
        moment = getattr(job, name)
        yield name, f"{moment[:19].replace('T', ' ')} UTC, {formats.ago(moment)}" if moment else ""
    spent = formats.elapsed(job)
    yield "took" if job.finished else "runs for", "" if spent is None else format_duration(spent)


def _result(job: Job) -> Iterator[Line]:
    delivery = job.delivery
    yield "delivery", delivery.state.value
    if delivery.path is not None:
        yield "notebook", os.path.relpath(session.workspace() / delivery.path)
    yield "why", delivery.message or ""
    if delivery.state is DeliveryState.HELD:
        yield "then", f"jupyter-to-job deliver {job.name}"


def _asked(job: Job) -> Iterator[Line]:
    yield "notebook", job.notebook
    yield "flavor", job.flavor
    yield "device", job.device
    for name, value in job.parameters.items():
        yield "parameter", f"{name} = {_brief(value)}"
    yield "inputs", formats.plural(len(job.inputs), "file") if len(job.inputs) > 3 else ""
    for path in job.inputs if len(job.inputs) <= 3 else ():
        yield "input", path
    yield "isolated", "yes" if job.isolated else ""
    yield "output", job.output or ""
    yield "limit", format_duration(job.max_runtime) if job.max_runtime else ""
    yield "priority", str(job.priority) if job.priority else ""
    yield "backend", job.backend
    yield "owner", job.owner


def _used(job: Job) -> Iterator[Line]:
    figures = job.usage or {}
    yield from formats.usage(figures)
    yield "advice", formats.advice(figures) or ""
    if figures.get("larger"):
        yield "then", f"jupyter-to-job rerun {job.name} -f {figures['larger']}"


def _brief(value: Any) -> str:
    """Return a parameter's value as JSON, in one line that is not endless."""
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 200 else f"{text[:200]}… ({len(text)} characters)"
