"""`rerun` and `wait`: the commands that go on with jobs that exist."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click

from ...domain.job import Job
from .. import exits, options, session
from ..display import output


@click.command("rerun")
@options.ONE_JOB
@options.with_options(
    options.FLAVOR,
    options.DEVICE,
    *options.PARAMETERS,
    *options.LIMITS,
    options.WAIT,
    options.AS_JSON,
)
@click.pass_context
def rerun_command(
    ctx: click.Context, /, job: str, *, wait: bool, as_json: bool, **given: Any
) -> None:
    """Submit JOB's notebook again, as it was then, and print the new job's name.

    Whatever is given takes the place of what was asked for then; parameters are merged.
    """
    from ...domain.job import Changes
    from ..arguments.submissions import changes

    service = session.connect()
    changed = Changes(**changes(given))
    new = session.with_name_hint(service, job, lambda name: service.rerun(name, changed))
    if wait:
        output.note(f"{new.name} submitted")
        ctx.exit(_wait([new.name], [new.name], as_json=as_json))
    if as_json:
        output.document(new.to_json())
    else:
        click.echo(new.name)


@click.command("wait")
@options.JOBS
@options.AS_JSON
@click.pass_context
def wait_command(ctx: click.Context, /, jobs: tuple[str, ...], *, as_json: bool) -> None:
    """Wait until the result of each JOB is delivered, and print the results' paths.

    Ctrl-C ends the waiting, never the jobs.
    """
    service = session.connect()
    found, code = session.for_each(service, jobs, service.get)
    ctx.exit(code or _wait([job.name for job in found], jobs, as_json=as_json))


def _wait(names: Sequence[str], asked: Sequence[str], *, as_json: bool) -> int:
    """Wait for jobs, tell how they ended, and return the exit code; `asked`: as they were typed."""
    from ..display.summary import print_summary
    from ..waiting import wait_for

    service = session.connect()
    ended: list[Job] = wait_for(dict.fromkeys(names, service))
    if as_json:
        session.answer([job.to_json() for job in ended], asked)
    else:
        print_summary(ended, dict.fromkeys(names, session.workspace()))
    return exits.code_for(ended)
