"""`rerun`: submits the notebook of an earlier job again."""

from __future__ import annotations

from typing import Any

import click

from .. import options, session
from ..display import output


@click.command("rerun")
@options.JOB
@options.with_options(
    options.FLAVOR,
    options.DEVICE,
    *options.PARAMETERS,
    click.option("--unset", multiple=True, metavar="NAME",
                 help="A parameter of the earlier job that this one does not get."),
    click.option("--current", is_flag=True,
                 help="Submit the notebook and its inputs as they are now."),
    *options.LIMITS,
    options.WAIT,
    options.AS_JSON,
)  # fmt: skip
@click.pass_context
def rerun_command(
    ctx: click.Context, /, job: str, *, current: bool, wait: bool, as_json: bool, **choices: Any
) -> None:
    """Submit JOB's notebook again, as it was then, and print the new job's name.

    An option replaces what the earlier job had; parameters are merged with its parameters, less
    those that --unset names. With --current the notebook and its inputs are read anew, and
    variables for the kernel are not taken over.
    """
    from ...domain.job import Changes
    from ..arguments.submissions import collect_changes, submission_of

    service = session.connect()
    unset = tuple(f"parameters.{name}" for name in choices["unset"])
    changes = Changes(**collect_changes(choices), unset=unset)
    if current:
        earlier = session.with_name_hint(service, job, service.get)
        new_job, _ = service.submit(submission_of(earlier, changes))
    else:
        new_job = session.with_name_hint(service, job, lambda name: service.rerun(name, changes))
    if wait:
        from ..waiting import wait_and_print

        output.print_note(f"{new_job.name} submitted")
        roots = {new_job.name: session.workspace()}
        ctx.exit(wait_and_print(roots, as_json=as_json, as_list=False))
    if as_json:
        session.print_jobs([new_job], as_list=False)
    else:
        click.echo(new_job.name)
