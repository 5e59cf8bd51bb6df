"""`list` and `show`."""

from __future__ import annotations

import click

from ...domain.job import Job, State
from .. import options, session
from ..display import formats, output

PAGE = 50
_BULK = 500


@click.command("list")
@click.option("--state", type=click.Choice([s.value for s in State]), help="Only these.")
@click.option("--all", "everything", is_flag=True, help=f"All, not only the newest {PAGE}.")
@options.AS_JSON
def list_command(*, state: str | None, everything: bool, as_json: bool) -> None:
    """List jobs, newest first."""
    service = session.connect()
    states = [State(state)] if state else []
    page = service.find(states, _BULK if everything else PAGE)
    jobs = page.jobs
    while everything and page.next:
        page = service.find(states, _BULK, page.next)
        jobs = jobs + page.jobs
    if as_json:
        output.document([job.to_json() for job in jobs])
    elif jobs:
        _table(jobs)
    else:
        output.note(f"No job is {state}." if state else "No jobs.")
    if page.next:
        output.flush()  # before the hint, where both go to one terminal
        output.note(f"These are the newest {PAGE}; --all lists all.")


def _table(jobs: list[Job]) -> None:
    from ..display.tables import Column, write

    results = [
        job.delivery.path or (job.delivery.state.value if job.state.final else "") for job in jobs
    ]
    write(
        [
            Column("JOB", [job.name for job in jobs], least=8),
            Column("STATE", [formats.state(job) for job in jobs], least=9),
            Column("CELLS", [formats.cells(job) for job in jobs], drop=2),
            Column("SUBMITTED", [formats.ago(job.submitted) for job in jobs], drop=1),
            Column("FLAVOR", [f"{job.flavor}/{job.device}" for job in jobs], drop=4),
            Column("RESULT", results, drop=3, least=20, keep_end=True),
        ]
    )


@click.command("show")
@options.ONE_JOB
@options.AS_JSON
def show_command(job: str, *, as_json: bool) -> None:
    """Show all about one JOB."""
    found = session.look_up(session.connect(), job)
    if as_json:
        output.document(found.to_json())
    else:
        from .show import show

        show(found)
