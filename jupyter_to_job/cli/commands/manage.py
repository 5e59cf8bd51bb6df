"""`cancel`, `deliver`, `delete`: each prints what became of every job."""

from __future__ import annotations

import os

import click

from ...domain.job import DeliveryState, Job
from .. import exits, options, selection, session
from ..display import formats, output


@click.command("cancel")
@options.JOBS
@options.GROUP
@options.AS_JSON
@click.pass_context
def cancel_command(
    ctx: click.Context, /, jobs: tuple[str, ...], *, group: str | None, as_json: bool
) -> None:
    """End each JOB, a name or a pattern in quotes. What it has printed so far is delivered.

    Of patterns and groups those are ended that have not ended yet. Returns when the wish is
    recorded; `jupyter-to-job wait` waits for the end.
    """
    service = session.connect()
    names = selection.select_names(service, jobs, group, lambda job: not job.state.final)
    # Those that run come last: nothing of the group begins in their place meanwhile.
    cancelled, code = session.for_each(service, names if not group else names[::-1], service.cancel)
    if as_json:
        session.print_jobs(cancelled, as_list=selection.is_several(jobs, group))
    else:
        for job in cancelled:
            click.echo(f"{job.name} {formats.state(job)}")
    if not names:
        output.print_note("All of them have ended.")
    ctx.exit(code)


@click.command("deliver")
@options.JOBS
@options.GROUP
@options.AS_JSON
@click.pass_context
def deliver_command(
    ctx: click.Context, /, jobs: tuple[str, ...], *, group: str | None, as_json: bool
) -> None:
    """Publish the result of each JOB that could not be published before, and print its path.

    JOB is a name or a pattern in quotes. Of patterns and groups those are taken that have ended,
    and whose result waits to be delivered.
    """
    service = session.connect()
    names = selection.select_names(service, jobs, group, _is_deliverable)
    processed, code = session.for_each(service, names, service.deliver)
    if as_json:
        session.print_jobs(processed, as_list=selection.is_several(jobs, group))
    for job in processed:
        if job.delivery.path is None:
            code = max(code, exits.JOB_FAILED)
            output.print_note(f"{job.name} is not delivered: {_undelivered_reason(job)}")
        elif not as_json:
            output.print_line(os.path.normpath(session.workspace() / job.delivery.path))
    if not names:
        output.print_note("Nothing waits to be delivered.")
    ctx.exit(code)


def _is_deliverable(job: Job) -> bool:
    """Tell whether a job has ended with a result that may still be delivered."""
    return job.state.final and job.delivery.state in (DeliveryState.PENDING, DeliveryState.HELD)


def _undelivered_reason(job: Job) -> str:
    if not job.state.final:
        return f"it is {formats.state(job)}."
    return job.delivery.message or "its result is not there yet."


@click.command("delete")
@options.JOBS
@options.GROUP
@options.YES
@options.AS_JSON
@click.pass_context
def delete_command(
    ctx: click.Context, /, jobs: tuple[str, ...], *, group: str | None, yes: bool, as_json: bool
) -> None:
    """Forget each JOB, ending it if it runs. A delivered notebook stays where it is.

    JOB is a name or a pattern in quotes. Above ten jobs a terminal is asked. With --json, prints
    the jobs as they were.
    """
    service = session.connect()
    names = selection.select_names(service, jobs, group)
    if selection.is_several(jobs, group):
        count = formats.plural(len(names), "job")
        selection.confirm(len(names), f"Delete {count}?", yes=yes)

    def delete(name: str) -> Job:
        job = service.get(name)
        service.delete(name)
        return job

    deleted, code = session.for_each(service, names, delete)
    if as_json:
        session.print_jobs(deleted, as_list=selection.is_several(jobs, group))
    else:
        for job in deleted:
            click.echo(f"{job.name} {'deleted' if job.state.final else 'is ended and deleted'}")
    ctx.exit(code)
