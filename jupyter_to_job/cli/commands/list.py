"""`list`: the newest jobs, or all, as a table."""

from __future__ import annotations

import click

from ...domain.job import Job, State
from ...service.port import all_jobs
from .. import options, selection, session
from ..display import formats, output, waits

PAGE_SIZE = 50


@click.command("list")
@options.JOBS
@options.GROUP
@click.option("--state", type=click.Choice([s.value for s in State]), help="Only these.")
@click.option("--all", "everything", is_flag=True, help=f"All, not only the newest {PAGE_SIZE}.")
@click.option("-q", "--quiet", is_flag=True, help="Only the names, one a line.")
@options.AS_JSON
def list_command(
    *,
    jobs: tuple[str, ...],
    group: str | None,
    state: str | None,
    everything: bool,
    quiet: bool,
    as_json: bool,
) -> None:
    """List jobs, newest first: the newest, all of a group, or those that JOB matches.

    JOB is a name or a pattern in quotes.
    """
    service = session.connect()
    states = [State(state)] if state else []
    has_more = False
    if jobs or group is not None:
        listed = _chosen(jobs, group, states)
    elif everything:
        listed = all_jobs(service, states)
    else:
        page = service.find(states, PAGE_SIZE)
        listed, has_more = page.jobs, page.next is not None
    if as_json:
        session.print_jobs(listed, as_list=True)
    elif quiet:
        for job in listed:
            output.print_line(job.name)
    elif listed:
        _print_table(listed, group)
    else:
        which = "None of these jobs" if jobs or group is not None else "No job"
        output.print_note(f"{which} has the state {state}." if state else "No jobs.")
    output.flush()  # the table comes before the notes, where both go to one terminal
    if has_more:
        output.print_note(f"These are the newest {PAGE_SIZE}; --all lists all.")
    elif group is not None and listed and not quiet:
        output.print_note(f"{group}: {selection.describe(listed)}.")


def _chosen(arguments: tuple[str, ...], group: str | None, states: list[State]) -> list[Job]:
    """Return the jobs of a group, or those that are named or match, newest first."""
    service = session.connect()
    named = [a for a in arguments if group is None and not selection.is_pattern(a)]
    jobs = [session.with_name_hint(service, name, service.get) for name in named]
    if group is not None or len(named) < len(arguments):
        jobs += selection.find_matching(service, arguments, group)
    unique = {job.name: job for job in jobs if not states or job.state in states}
    return sorted(unique.values(), key=lambda job: (job.submitted or "", job.name), reverse=True)


def _print_table(jobs: list[Job], group: str | None) -> None:
    from ..display.tables import Column, print_table

    results = [
        job.delivery.path or (job.delivery.state.value if job.state.final else "") for job in jobs
    ]
    waiting = [job.wait for job in jobs]
    needs = ["" if wait is None else waits.needs(wait) for wait in waiting]
    starts = ["" if wait is None else waits.start(wait) for wait in waiting]
    groups = [(job.group or "") if group is None else "" for job in jobs]
    print_table(
        [
            Column("JOB", [job.name for job in jobs], min_width=8),
            Column("STATE", [formats.state(job) for job in jobs], min_width=9),
            Column("CELLS", [formats.cells(job) for job in jobs], drop=2),
            Column("SUBMITTED", [formats.ago(job.submitted) for job in jobs], drop=1),
            Column("FLAVOR", [f"{job.flavor}/{job.device}" for job in jobs], drop=4),
            Column("NEEDS", needs, drop=7, min_width=8),
            Column("STARTS (ESTIMATE)", starts, drop=6, min_width=12),
            Column("GROUP", groups, drop=5, min_width=8),
            Column("RESULT", results, drop=3, min_width=20, keep_end=True),
        ]
    )
