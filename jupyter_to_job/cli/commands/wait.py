"""`wait`: returns when the results of jobs are delivered."""

from __future__ import annotations

import click

from ...domain.results import standing
from .. import exits, options, selection, session


@click.command("wait")
@options.JOBS
@options.GROUP
@options.AS_JSON
@click.pass_context
def wait_command(
    ctx: click.Context, /, jobs: tuple[str, ...], *, group: str | None, as_json: bool
) -> None:
    """Wait until the result of each JOB is delivered, and print the results' paths.

    JOB is a name or a pattern in quotes. Of a group, failures that were run again do not count.
    Ctrl-C ends the waiting, never the jobs.
    """
    from ..waiting import wait_and_print

    service = session.connect()
    names = selection.select_names(service, jobs, group)
    existing, code = session.for_each(service, names, service.get)
    if not existing or code == exits.UNREACHABLE:
        ctx.exit(code)
    counted = standing(existing) if group is not None else existing
    roots = dict.fromkeys((job.name for job in counted), session.workspace())
    as_list = selection.is_several(jobs, group)
    waited = wait_and_print(counted, roots, as_json=as_json, as_list=as_list)
    ctx.exit(max(code, waited))
