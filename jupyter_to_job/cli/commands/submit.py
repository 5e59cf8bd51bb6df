"""`submit`: one notebook, or a batch of files, folders and patterns."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ...domain.errors import BadInput, JobsError, Unavailable
from ...domain.suggestions import did_you_mean
from .. import exits, options, session
from ..display import output

if TYPE_CHECKING:
    from ...domain.job import Job, Submission
    from ..arguments.notebooks import Source


@click.command("submit")
@click.argument(
    "notebooks", metavar="NOTEBOOK...", nargs=-1, required=True, type=click.Path(path_type=Path)
)
@options.with_options(
    options.FLAVOR,
    options.DEVICE,
    *options.PARAMETERS,
    click.option("-i", "--input", "inputs", multiple=True,
                 help="A file, folder or pattern in quotes to send along."),
    click.option("--isolated", is_flag=True, help="Run in a scratch copy of the inputs."),
    click.option("-e", "--env", multiple=True, metavar="NAME=VALUE",
                 help="A variable for the kernel."),
    *options.LIMITS,
    click.option("--output", metavar="PATH",
                 help="Where the result goes: a file, or an existing folder."),
    click.option("--name", help="Begin the job's name with this instead of the notebook's."),
    click.option("--idempotency-key", metavar="KEY",
                 help="The same key for the same notebook again is the same job."),
    options.WAIT,
    options.AS_JSON,
)  # fmt: skip
@click.pass_context
def submit_command(
    ctx: click.Context, /, notebooks: tuple[Path, ...], *, wait: bool, as_json: bool, **given: Any
) -> None:
    """Submit each NOTEBOOK as a job, and print the jobs' names, one a line.

    With --wait, the paths of the results. A folder means the notebooks in it, and a pattern in
    quotes ('*/train-*.ipynb', `**` for all folders) those that match; results of earlier jobs,
    hidden files and checkpoints are left out. What can be checked is checked before anything is
    submitted. Then a notebook that is refused is told, and the others go on.

    Ctrl-C ends the waiting, never the jobs.
    """
    from ..arguments.notebooks import find
    from ..arguments.submissions import submissions
    from ..waiting import print_resume_hint

    asked = find(notebooks)
    if asked.results:
        output.note(f"Left out: {asked.results} that earlier jobs made.")
    wanted = submissions(asked, given)
    batch = _Batch(quiet=wait or as_json)
    try:
        batch.submit(wanted)
    except KeyboardInterrupt:
        if wait or as_json:  # else their names are on stdout
            print_resume_hint(list(batch.jobs))
        raise
    if wait and batch.jobs:
        _wait(batch, as_json=as_json, several=asked.batch)
    elif as_json:
        documents = [job.to_json() for job in batch.jobs.values()]
        if asked.batch or documents:
            output.document(documents if asked.batch else documents[0])
    ctx.exit(batch.code)


class _Batch:
    """Submits one after the other, and keeps what became of each."""

    def __init__(self, *, quiet: bool) -> None:
        self.jobs: dict[str, Job] = {}
        self.sources: dict[str, Source] = {}
        self.failures: dict[str, JobsError] = {}
        self.code = exits.SUCCEEDED
        self._quiet = quiet

    def submit(self, wanted: list[tuple[Source, Submission]]) -> None:
        """Submit all. An unreachable backend ends it: it would fail, slowly, for each."""
        from ..arguments.warnings import SubmitWarnings

        several = len(wanted) > 1
        if several:
            _check_choice(wanted)
        with SubmitWarnings() as forewarned:
            for source, submission in wanted:
                service = session.connect(source.root)
                forewarned.look(service, source, submission)
                try:
                    job, _ = service.submit(submission)
                except JobsError as error:
                    self.failures[source.typed] = error
                    self.code = max(self.code, exits.code_of(error))
                    output.problem(error, source.typed if several else None)
                    if isinstance(error, Unavailable):
                        break
                else:
                    self._submitted(job, source)
        if several and self.failures:
            output.note(f"{len(self.jobs)} of {len(wanted)} submitted.")

    def _submitted(self, job: Job, source: Source) -> None:
        self.jobs[job.name] = job
        self.sources[job.name] = source
        if not self._quiet:
            click.echo(job.name)
            output.flush()
        elif not sys.stderr.isatty() or len(self.jobs) == 1:
            output.note(f"{job.name} submitted")


def _check_choice(wanted: list[tuple[Source, Submission]]) -> None:
    """Refuse a flavor or device that does not exist once, instead of for each notebook."""
    source, submission = wanted[0]
    if submission.flavor is None and submission.device is None:
        return
    offered = session.connect(source.root).flavors()
    for kind, value in (("flavor", submission.flavor), ("device", submission.device)):
        known = offered[f"{kind}s"]
        if value is not None and value not in known:
            raise BadInput(f"There is no {kind} {value!r}.", did_you_mean(value, known))


def _wait(batch: _Batch, *, as_json: bool, several: bool) -> None:
    from ..display.summary import print_summary
    from ..waiting import wait_for

    roots = {name: source.root for name, source in batch.sources.items()}
    ended = wait_for({name: session.connect(root) for name, root in roots.items()})
    if as_json:
        documents = [job.to_json() for job in ended]
        output.document(documents if several else documents[0])
    else:
        print_summary(ended, roots, batch.failures)
    batch.code = max(batch.code, exits.code_for(ended))
