"""`cancel`, `deliver`, `delete`: each prints what became of every job."""

from __future__ import annotations

import os

import click

from ...domain.job import Job
from .. import exits, options, session
from ..display import formats, output


@click.command("cancel")
@options.JOBS
@options.AS_JSON
@click.pass_context
def cancel_command(ctx: click.Context, /, jobs: tuple[str, ...], *, as_json: bool) -> None:
    """End each JOB. What it has printed so far is delivered.

    Returns when the wish is recorded; `jupyter-to-job wait` waits for the end.
    """
    service = session.connect()
    cancelled, code = session.for_each(service, jobs, service.cancel)
    if as_json:
        session.print_jobs(cancelled, as_list=len(jobs) > 1)
    else:
        for job in cancelled:
            click.echo(f"{job.name} {formats.state(job)}")
    ctx.exit(code)


@click.command("deliver")
@options.JOBS
@options.AS_JSON
@click.pass_context
def deliver_command(ctx: click.Context, /, jobs: tuple[str, ...], *, as_json: bool) -> None:
    """Publish the result of each JOB that could not be published before, and print its path."""
    service = session.connect()
    processed, code = session.for_each(service, jobs, service.deliver)
    if as_json:
        session.print_jobs(processed, as_list=len(jobs) > 1)
    for job in processed:
        if job.delivery.path is None:
            code = max(code, exits.JOB_FAILED)
            output.print_note(f"{job.name} is not delivered: {_undelivered_reason(job)}")
        elif not as_json:
            output.print_line(os.path.normpath(session.workspace() / job.delivery.path))
    ctx.exit(code)


def _undelivered_reason(job: Job) -> str:
    if not job.state.final:
        return f"it is {formats.state(job)}."
    return job.delivery.message or "its result is not there yet."


@click.command("delete")
@options.JOBS
@options.AS_JSON
@click.pass_context
def delete_command(ctx: click.Context, /, jobs: tuple[str, ...], *, as_json: bool) -> None:
    """Forget each JOB, ending it if it runs. A delivered notebook stays where it is.

    Nothing is asked. With --json, prints the jobs as they were.
    """
    service = session.connect()

    def delete(name: str) -> Job:
        job = service.get(name)
        service.delete(name)
        return job

    deleted, code = session.for_each(service, jobs, delete)
    if as_json:
        session.print_jobs(deleted, as_list=len(jobs) > 1)
    else:
        for job in deleted:
            click.echo(f"{job.name} {'deleted' if job.state.final else 'is ended and deleted'}")
    ctx.exit(code)
