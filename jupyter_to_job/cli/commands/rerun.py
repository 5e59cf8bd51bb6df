"""`rerun`: submits the notebooks of earlier jobs again."""

from __future__ import annotations

import sys
from typing import Any

import click

from ...domain.job import Changes, Job, State
from ...domain.results import standing
from .. import options, selection, session
from ..display import formats, output


@click.command("rerun")
@options.JOBS
@options.GROUP
@click.option("--failed", is_flag=True, help="Of patterns and groups, only those that failed.")
@options.with_options(
    options.FLAVOR,
    options.DEVICE,
    *options.PARAMETERS,
    options.UNSET,
    click.option("--current", is_flag=True,
                 help="Submit the notebook and its inputs as they are now."),
    *options.LIMITS,
    options.YES,
    options.WAIT,
    options.AS_JSON,
)  # fmt: skip
@click.pass_context
def rerun_command(
    ctx: click.Context,
    /,
    jobs: tuple[str, ...],
    *,
    group: str | None,
    failed: bool,
    current: bool,
    yes: bool,
    wait: bool,
    as_json: bool,
    **choices: Any,
) -> None:
    """Submit the notebook of each JOB again, as it was then, and print the new jobs' names.

    JOB is a name or a pattern in quotes. An option replaces what the earlier job had; parameters
    are merged with its parameters, less those that --unset names. With --current the notebook and
    its inputs are read anew, and variables for the kernel are not taken over. The new job is in
    the group of the old one, and stands for it there if that failed. Of a group, failures that
    were run again are left out, unless they are named.
    """
    from ..arguments.submissions import collect_changes

    unset = tuple(f"parameters.{name}" for name in choices["unset"])
    changes = Changes(**collect_changes(choices), unset=unset)
    names = _select(jobs, group, failed=failed)
    if not names:
        output.print_note(_why_none(group, failed=failed))
    as_list = selection.is_several(jobs, group)
    if as_list:
        selection.confirm(len(names), f"Run {formats.plural(len(names), 'job')} again?", yes=yes)

    new_jobs, code = _submit_all(names, changes, current=current, wait=wait, as_json=as_json)
    if wait and new_jobs:
        from ..waiting import wait_and_print

        roots = {job.name: session.workspace() for job in new_jobs}
        code = max(code, wait_and_print(new_jobs, roots, as_json=as_json, as_list=as_list))
    elif as_json:
        session.print_jobs(new_jobs, as_list=as_list)
    ctx.exit(code)


def _select(jobs: tuple[str, ...], group: str | None, *, failed: bool) -> list[str]:
    """Return the names of the jobs to run again.

    Of a group, failures that were run again are left out, unless `jobs` has their very names.
    """
    service = session.connect()
    names = selection.select_names(
        service, jobs, group, lambda job: not failed or job.state is State.FAILED
    )
    if group is None:
        return names
    stand = {job.name for job in standing(selection.find_matching(service, (), group))}
    return [name for name in names if name in stand or name in jobs]


def _why_none(group: str | None, *, failed: bool) -> str:
    """Return why there is no job to run again."""
    if not failed:
        return "All of them were run again already. Name a job to run it once more."
    if group is None:
        return "None of them has failed."
    return "None of them has failed, apart from jobs that were run again."


def _submit_all(
    names: list[str], changes: Changes, *, current: bool, wait: bool, as_json: bool
) -> tuple[list[Job], int]:
    """Submit all again, as `session.for_each`. After Ctrl-C, print how to wait for the new jobs."""
    new_names: list[str] = []

    def submit(name: str) -> Job:
        new_job = _submit_again(name, changes, current=current)
        new_names.append(new_job.name)
        if wait and (len(names) == 1 or not sys.stderr.isatty()):
            output.print_note(f"{new_job.name} submitted")
        elif not wait and not as_json:
            click.echo(new_job.name)
            output.flush()
        return new_job

    try:
        return session.for_each(session.connect(), names, submit)
    except KeyboardInterrupt:
        if wait or as_json:  # otherwise their names are on stdout already
            from ..waiting import print_resume_hint

            print_resume_hint(new_names)
        raise


def _submit_again(name: str, changes: Changes, *, current: bool) -> Job:
    """Submit a job's snapshot and inputs again; with `current`, those of the workspace."""
    from ..arguments.submissions import submission_of

    service = session.connect()
    if not current:
        return service.rerun(name, changes)
    return service.submit(submission_of(service.get(name), changes))[0]
