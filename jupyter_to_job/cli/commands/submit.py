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
    ctx: click.Context, /, notebooks: tuple[Path, ...], *, wait: bool, as_json: bool, **choices: Any
) -> None:
    """Submit each NOTEBOOK as a job, and print the jobs' names, one a line.

    With --wait, the paths of the results. A folder means the notebooks in it, and a pattern in
    quotes ('*/train-*.ipynb', `**` for all folders) those that match; results of earlier jobs,
    hidden files and checkpoints are left out. What can be checked is checked before anything is
    submitted. After that, a notebook that is refused is reported, and the others go on.

    Ctrl-C ends the waiting, never the jobs.
    """
    from ..arguments.notebooks import select_notebooks
    from ..arguments.submissions import build_submissions
    from ..waiting import print_resume_hint, wait_and_print

    selected = select_notebooks(notebooks)
    if selected.skipped_results:
        output.print_note(f"Left out: {selected.skipped_results} that earlier jobs made.")
    submissions = build_submissions(selected, choices)
    batch = _Batch(quiet=wait or as_json)
    try:
        batch.submit(submissions)
    except KeyboardInterrupt:
        if wait or as_json:  # otherwise their names are on stdout already
            print_resume_hint(list(batch.jobs))
        raise
    code = batch.code
    if wait and batch.jobs:
        waited = wait_and_print(
            batch.roots, batch.failures, as_json=as_json, as_list=selected.is_batch
        )
        code = max(code, waited)
    elif as_json:
        session.print_jobs(list(batch.jobs.values()), as_list=selected.is_batch)
    ctx.exit(code)


class _Batch:
    """Submits notebooks in turn. `roots` has the workspace of each job, by the job's name."""

    def __init__(self, *, quiet: bool) -> None:
        self.jobs: dict[str, Job] = {}
        self.roots: dict[str, Path] = {}
        self.failures: dict[str, JobsError] = {}
        self.code = exits.SUCCEEDED
        self._quiet = quiet

    def submit(self, submissions: list[tuple[Source, Submission]]) -> None:
        """Submit all. An unreachable backend ends it: it would fail, slowly, for the others."""
        from ..arguments.warnings import SubmitWarnings

        several = len(submissions) > 1
        if several:
            _check_choice(*submissions[0])
        with SubmitWarnings() as warnings:
            for source, submission in submissions:
                service = session.connect(source.root)
                warnings.check(service, source, submission)
                try:
                    job, _ = service.submit(submission)
                except JobsError as error:
                    self.failures[source.argument] = error
                    self.code = max(self.code, exits.code_of_error(error))
                    output.print_error(error, source.argument if several else None)
                    if isinstance(error, Unavailable):
                        break
                else:
                    self._record(job, source)
        if several and self.failures:
            output.print_note(f"{len(self.jobs)} of {len(submissions)} submitted.")

    def _record(self, job: Job, source: Source) -> None:
        self.jobs[job.name] = job
        self.roots[job.name] = source.root
        if not self._quiet:
            click.echo(job.name)
            output.flush()
        elif not sys.stderr.isatty() or len(self.jobs) == 1:
            output.print_note(f"{job.name} submitted")


def _check_choice(source: Source, submission: Submission) -> None:
    """Refuse a flavor or device that does not exist once, instead of for each notebook."""
    if submission.flavor is None and submission.device is None:
        return
    catalog = session.connect(source.root).flavors()
    for kind, name in (("flavor", submission.flavor), ("device", submission.device)):
        names = catalog[f"{kind}s"]
        if name is not None and name not in names:
            raise BadInput(f"There is no {kind} {name!r}.", did_you_mean(name, names))
