"""`clean`: removes old results from the workspace, after a question."""

from __future__ import annotations

import sys

import click

from job_runner.protocol.units import format_bytes

from ...domain.errors import BadInput, JobsError
from ...domain.quantities import parse_duration
from ...service.old_results import KEEP, OldResult, find_old_results, remove_result
from ...service.port import Jobs, all_jobs
from ...workspace import Workspace
from ...workspace.publishing.removal import Removal
from .. import exits, options, selection, session
from ..display import formats, output


@click.command("clean")
@options.JOBS
@options.GROUP
@options.with_options(
    click.option("--older-than", metavar="TIME", default="30d", show_default=True,
                 help="Only results of jobs that ended so long ago: 12h, 30d, or 0 for all."),
    click.option("--keep", type=click.IntRange(min=0), default=KEEP, show_default=True,
                 help="How many of the newest results of each notebook stay."),
    click.option("-y", "--yes", is_flag=True, help="Do not ask."),
    options.AS_JSON,
)  # fmt: skip
@click.pass_context
def clean_command(
    ctx: click.Context,
    /,
    jobs: tuple[str, ...],
    *,
    group: str | None,
    older_than: str,
    keep: int,
    yes: bool,
    as_json: bool,
) -> None:
    """Remove old results: the notebooks that jobs delivered, and the files beside them that their
    runs created. What you have changed since stays, and so do the jobs.

    JOB is a name or a pattern in quotes; without any, all jobs count. The results are listed first,
    and a terminal is asked.
    """
    from ...wiring import open_workspace

    service, workspace = session.connect(), open_workspace(session.settings(), session.workspace())
    seconds = 0 if older_than.strip() == "0" else parse_duration(older_than)
    existing_jobs = all_jobs(service)
    old_results = find_old_results(existing_jobs, workspace, seconds, keep)
    if jobs or group is not None:
        names = set(selection.select_names(service, jobs, group))
        for name in sorted(names - {job.name for job in existing_jobs}):
            session.with_name_hint(service, name, service.get)  # there is none, says the error
        old_results = [old for old in old_results if old.job.name in names]
    if not old_results:
        output.print_note("There are no old results.")
    elif not yes:
        _ask(old_results)
    removals, code = _remove(service, workspace, old_results)
    if as_json:
        output.print_json([{"job": name, **vars(removal)} for name, removal in removals])
    elif old_results:
        count = sum(len(removal.removed) for _, removal in removals)
        size = format_bytes(sum(removal.size for _, removal in removals))
        click.echo(f"{formats.plural(count, 'file')} removed, {size}.")
    ctx.exit(code)


def _remove(
    service: Jobs, workspace: Workspace, old_results: list[OldResult]
) -> tuple[list[tuple[str, Removal]], int]:
    """Remove results; return what was removed of each job, and the worst exit code."""
    removals, code = [], exits.SUCCEEDED
    for old in old_results:
        name = old.job.name
        try:
            removal = remove_result(service, workspace, name)
        except JobsError as error:
            output.print_error(error)
            code = max(code, exits.code_of_error(error))
            continue
        removals.append((name, removal))
        for path in removal.changed:
            output.print_note(f"{path} was changed since, and stays.")
    return removals, code


def _ask(old_results: list[OldResult]) -> None:
    """List the results and ask; exit if the answer is no. Raises BadInput without a terminal."""
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise BadInput("There is no terminal to ask on.", "Say --yes to remove old results.")
    for old in old_results:
        output.print_note(f"{old.path} ({format_bytes(old.size)})")
    size = format_bytes(sum(old.size for old in old_results))
    question = f"Remove {formats.plural(len(old_results), 'result')}, {size}?"
    if not click.confirm(question, err=True):
        output.print_note("Nothing was done.")
        raise SystemExit(exits.INTERRUPTED)
