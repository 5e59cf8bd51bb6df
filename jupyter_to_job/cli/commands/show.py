"""`show`: all about one job."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from typing import Any

import click

from job_runner.protocol.units import format_duration

from ...domain.job import DeliveryState, Job
from .. import options, session
from ..display import formats, output, waits

Row = tuple[str, str]
MAX_INPUTS = 3
"""Input files that are listed; of more only the number is shown."""
MAX_VALUE_CHARACTERS = 200


@click.command("show")
@options.JOB
@options.AS_JSON
def show_command(job: str, *, as_json: bool) -> None:
    """Show all about one JOB."""
    service = session.connect()
    details = session.with_name_hint(service, job, service.details)
    if as_json:
        session.print_jobs([details], as_list=False)
    else:
        _print_details(details)


def _print_details(job: Job) -> None:
    """Print a job in sections, leaving out every row without a value."""
    name = output.style(job.name, bold=True)
    output.print_styled(f"{name}  {output.plain(formats.state(job))}")
    if job.message:
        output.print_line(job.message)
    for title, rows in (
        ("Progress", _progress(job)),
        ("Result", _result(job)),
        ("Asked for", _submission(job)),
        ("Metrics", _metrics(job)),
        ("Used", _usage(job)),
        ("Told", _notifications(job)),
        ("What the cluster says", _events(job)),
    ):
        lines = [f"  {name:<13} {value}" for name, value in rows if value]
        if lines:
            output.print_styled(f"\n{output.style(title, bold=True)}")
            output.print_line("\n".join(lines))


def _progress(job: Job) -> Iterator[Row]:
    yield "code cells", formats.cells(job)
    yield "running cell", formats.running_cell(job)
    for name in ("submitted", "started", "finished"):
        moment = getattr(job, name)
        yield name, f"{moment[:19].replace('T', ' ')} UTC, {formats.ago(moment)}" if moment else ""
    yield "waits for", formats.waiting_text(job)
    if job.wait is not None:
        yield "why", waits.why(job.wait) if not job.message else ""
        for name, text, estimate in (
            ("starts", waits.start(job.wait), job.wait.start),
            ("will run", waits.run(job.wait), job.wait.run),
        ):
            yield name, ", ".join(filter(None, (text, waits.basis(estimate)))) if text else ""
    yield "took" if job.finished else "runs for", formats.elapsed_text(job)


def _result(job: Job) -> Iterator[Row]:
    delivery = job.delivery
    yield "delivery", delivery.state.value
    if delivery.path is not None:
        yield "notebook", os.path.relpath(session.workspace() / delivery.path)
    yield "why", delivery.message or ""
    if delivery.state is DeliveryState.HELD:
        yield "then", f"jupyter-to-job deliver {job.name}"


def _submission(job: Job) -> Iterator[Row]:
    yield "notebook", job.notebook
    yield "group", job.group or ""
    yield "rerun of", job.rerun_of or ""
    yield "flavor", job.flavor
    yield "device", job.device
    for name, value in job.parameters.items():
        yield "parameter", f"{name} = {_abbreviated(value)}"
    if len(job.inputs) > MAX_INPUTS:
        yield "inputs", formats.plural(len(job.inputs), "file")
    else:
        yield from (("input", path) for path in job.inputs)
    if job.isolated:
        yield "works in", "a scratch folder with its inputs (isolated)"
    elif job.backend == "kubernetes":
        yield "works in", "the notebook's own folder"
    yield from (("sees", path) for path in job.mounts)
    yield from (("left behind", sentence) for sentence in job.left_behind)
    yield "output", job.output or ""
    yield "limit", format_duration(job.max_runtime) if job.max_runtime else ""
    yield "priority", str(job.priority) if job.priority else ""
    yield "backend", job.backend
    yield "owner", job.owner


def _metrics(job: Job) -> Iterator[Row]:
    for name, metric in (job.metrics or {}).items():
        text = metric.picture or _abbreviated(metric.value)
        yield output.plain(name), text


def _usage(job: Job) -> Iterator[Row]:
    figures = job.usage or {}
    yield from formats.usage(figures)
    yield "advice", formats.advice(figures) or ""
    if figures.get("larger"):
        yield "then", f"jupyter-to-job rerun {job.name} -f {figures['larger']}"


def _notifications(job: Job) -> Iterator[Row]:
    for notification in job.notifications:
        text = f"{notification.event.replace('_', ' ')}: {notification.state.replace('_', ' ')}"
        tries = f" after {notification.tries} tries" if notification.tries > 1 else ""
        why = f". {notification.message}" if notification.message else ""
        yield (
            output.plain(notification.hook),
            f"{text}{tries}, {formats.ago(notification.time)}{why}",
        )


def _events(job: Job) -> Iterator[Row]:
    for event in job.events or ():
        message = " ".join(event.message.split())  # the scheduler's may have several lines
        yield formats.ago(event.time), f"{event.reason}: {message}"


def _abbreviated(value: Any) -> str:
    """Return a parameter's value as JSON, cut after `MAX_VALUE_CHARACTERS`."""
    text = json.dumps(value, ensure_ascii=False)
    if len(text) <= MAX_VALUE_CHARACTERS:
        return text
    return f"{text[:MAX_VALUE_CHARACTERS]}… ({len(text)} characters)"
