"""`list`: the newest jobs, or all, as a table."""

from __future__ import annotations

import click

from ...domain.job import Job, State
from .. import options, session
from ..display import formats, output

PAGE_SIZE = 50
_PAGE_SIZE_OF_ALL = 500


@click.command("list")
@click.option("--state", type=click.Choice([s.value for s in State]), help="Only these.")
@click.option("--all", "all_jobs", is_flag=True, help=f"All, not only the newest {PAGE_SIZE}.")
@options.AS_JSON
def list_command(*, state: str | None, all_jobs: bool, as_json: bool) -> None:
    """List jobs, newest first."""
    service = session.connect()
    states = [State(state)] if state else []
    page = service.find(states, _PAGE_SIZE_OF_ALL if all_jobs else PAGE_SIZE)
    jobs = page.jobs
    while all_jobs and page.next:
        page = service.find(states, _PAGE_SIZE_OF_ALL, page.next)
        jobs = jobs + page.jobs
    if as_json:
        session.print_jobs(jobs, as_list=True)
    elif jobs:
        _print_table(jobs)
    else:
        output.print_note(f"No job is {state}." if state else "No jobs.")
    if page.next:
        output.flush()  # the table comes before the hint, where both go to one terminal
        output.print_note(f"These are the newest {PAGE_SIZE}; --all lists all.")


def _print_table(jobs: list[Job]) -> None:
    from ..display.tables import Column, print_table

    results = [
        job.delivery.path or (job.delivery.state.value if job.state.final else "") for job in jobs
    ]
    print_table(
        [
            Column("JOB", [job.name for job in jobs], min_width=8),
            Column("STATE", [formats.state(job) for job in jobs], min_width=9),
            Column("CELLS", [formats.cells(job) for job in jobs], drop=2),
            Column("SUBMITTED", [formats.ago(job.submitted) for job in jobs], drop=1),
            Column("FLAVOR", [f"{job.flavor}/{job.device}" for job in jobs], drop=4),
            Column("RESULT", results, drop=3, min_width=20, keep_end=True),
        ]
    )
