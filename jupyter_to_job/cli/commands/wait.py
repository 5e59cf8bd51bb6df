"""`wait`: returns when the results of jobs are delivered."""

from __future__ import annotations

import click

from .. import options, session


@click.command("wait")
@options.JOBS
@options.AS_JSON
@click.pass_context
def wait_command(ctx: click.Context, /, jobs: tuple[str, ...], *, as_json: bool) -> None:
    """Wait until the result of each JOB is delivered, and print the results' paths.

    Ctrl-C ends the waiting, never the jobs.
    """
    from ..waiting import wait_and_print

    service = session.connect()
    existing, code = session.for_each(service, jobs, service.get)
    if code:
        ctx.exit(code)
    roots = dict.fromkeys((job.name for job in existing), session.workspace())
    ctx.exit(wait_and_print(roots, as_json=as_json, as_list=len(jobs) > 1))
