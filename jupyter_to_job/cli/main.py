"""The commands. Imports of anything heavy are inside them: `--help` must be instant."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..domain.errors import JobsError
from ..domain.job import State
from . import exits, output

if TYPE_CHECKING:
    from ..service.port import Jobs


class _Group(click.Group):
    """Turns errors of our tree into a line on stderr and their exit code."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except JobsError as error:
            output.problem(error)
            ctx.exit(exits.code_of(error))
        except KeyboardInterrupt:
            ctx.exit(exits.INTERRUPTED)


def _connect(workspace: Path | None = None) -> Jobs:
    from ..wiring import Settings, connect

    settings = Settings.load()
    return connect(settings, workspace or Path(settings.workspace or "."))


@click.group(cls=_Group, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="jupyter-to-job")
def main() -> None:
    """Run notebooks as jobs: freeze a copy, pick how much and which kind, get it back executed."""


_JSON = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
_WAIT = click.option("--wait", is_flag=True, help="Return when the result is delivered.")


@main.command()
@click.argument("notebooks", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("-f", "--flavor", help="How much: see `jupyter-to-job flavors`.")
@click.option("-d", "--device", help="Which kind.")
@click.option("-p", "--parameter", "typed", nargs=2, multiple=True, metavar="NAME VALUE",
              help="A parameter; the value is JSON if it parses as JSON, else text.")  # fmt: skip
@click.option("-r", "--raw", nargs=2, multiple=True, metavar="NAME TEXT",
              help="A parameter that is always text.")  # fmt: skip
@click.option("--params-file", type=click.Path(path_type=Path), help="YAML or JSON of parameters.")
@click.option(
    "-i", "--input", "inputs", multiple=True, help="A file, folder or glob to send along."
)
@click.option("--isolated", is_flag=True, help="Run in a scratch copy of the inputs.")
@click.option("-e", "--env", multiple=True, metavar="NAME=VALUE", help="A variable for the kernel.")
@click.option("--max-runtime", help="Time limit, e.g. 45m or 1h30m.")
@click.option("--priority", type=click.IntRange(-100, 100), default=0, help="Higher goes first.")
@click.option("--output", help="Where the result goes: a file or an existing folder.")
@click.option("--name", help="Begin the job's name with this instead of the notebook's.")
@click.option("--idempotency-key", help="The same key again is the same job.")
@_WAIT
@_JSON
def submit(notebooks: tuple[Path, ...], *, wait: bool, as_json: bool, **options: Any) -> None:
    """Submit NOTEBOOKS as jobs and print their names."""
    from .submit import submission, workspace_of
    from .waiting import wait_for

    jobs = []
    for notebook in notebooks:
        root, path = workspace_of(notebook)
        service = _connect(root)
        job, _ = service.submit(submission(path, root, options))
        jobs.append(job)
        if wait:
            output.note(f"{job.name} submitted")
        elif not as_json:
            click.echo(job.name)
    if wait:
        jobs = wait_for(_connect(root), [job.name for job in jobs], progress=not as_json)
        output.ended(jobs, as_json=as_json, root=root)
        sys.exit(exits.code_for(jobs))
    if as_json:
        output.document([j.to_json() for j in jobs] if len(jobs) > 1 else jobs[0].to_json())


@main.command("list")
@click.option("--state", type=click.Choice([s.value for s in State]), help="Only these.")
@click.option("--all", "everything", is_flag=True, help="All, not only the newest 50.")
@_JSON
def list_jobs(*, state: str | None, everything: bool, as_json: bool) -> None:
    """List jobs, newest first."""
    service = _connect()
    states = [State(state)] if state else []
    page = service.find(states)
    jobs = page.jobs
    while everything and page.next:
        page = service.find(states, 500, page.next)
        jobs = jobs + page.jobs
    if as_json:
        output.document([job.to_json() for job in jobs])
    else:
        output.table(jobs)


@main.command()
@click.argument("job")
@_JSON
def show(job: str, *, as_json: bool) -> None:
    """Show all of one JOB."""
    found = _connect().get(job)
    if as_json:
        output.document(found.to_json())
    else:
        output.details(found)


@main.command()
@click.argument("job")
@click.option("--follow", is_flag=True, help="Go on until the job has ended.")
def logs(job: str, *, follow: bool) -> None:
    """Print a JOB's text output and tracebacks."""
    import time

    service = _connect()
    offset = 0
    while True:
        piece = service.logs(job, offset)
        click.echo(piece.text, nl=False)
        caught_up, offset = piece.next == offset, piece.next
        if piece.end or (caught_up and not follow):
            return
        if caught_up:
            time.sleep(0.1)


@main.command()
@click.argument("jobs", nargs=-1, required=True)
@_JSON
def wait(jobs: tuple[str, ...], *, as_json: bool) -> None:
    """Wait until the results of JOBS are delivered."""
    from .waiting import wait_for

    ended = wait_for(_connect(), list(jobs), progress=not as_json)
    output.ended(ended, as_json=as_json, root=Path.cwd())
    sys.exit(exits.code_for(ended))


@main.command()
@click.argument("jobs", nargs=-1, required=True)
def cancel(jobs: tuple[str, ...]) -> None:
    """End JOBS; what they had printed is kept and delivered."""
    service = _connect()
    for job in jobs:
        click.echo(f"{job} {output.state_of(service.cancel(job))}")


@main.command()
@click.argument("jobs", nargs=-1, required=True)
def deliver(jobs: tuple[str, ...]) -> None:
    """Publish the results of JOBS again that could not be published."""
    service = _connect()
    for job in jobs:
        delivery = service.deliver(job).delivery
        click.echo(
            f"{job} {delivery.state.value} {delivery.path or delivery.message or ''}".rstrip()
        )


@main.command()
@click.argument("jobs", nargs=-1, required=True)
def delete(jobs: tuple[str, ...]) -> None:
    """Forget JOBS, stopping those that run. Delivered notebooks stay."""
    service = _connect()
    for job in jobs:
        service.delete(job)


@main.command()
@_JSON
def flavors(*, as_json: bool) -> None:
    """Show what can be asked for."""
    catalog = _connect().flavors()
    if as_json:
        output.document(catalog)
    else:
        output.catalog(catalog)
