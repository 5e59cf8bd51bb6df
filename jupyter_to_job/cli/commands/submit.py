"""`submit`: one notebook, a batch of files, folders and patterns, or a sweep."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ...domain.errors import BadInput, JobsError, Unavailable
from ...domain.suggestions import did_you_mean
from .. import exits, options, selection, session
from ..display import formats, output

if TYPE_CHECKING:
    from ...domain.job import Job, Submission
    from ...domain.sweep import Run
    from ...service.port import Jobs
    from ..arguments.notebooks import SelectedNotebooks, Source
    from ..arguments.sweeps import Sweep


@click.command("submit")
@click.argument(
    "notebooks", metavar="NOTEBOOK...", nargs=-1, required=True, type=options.FilePath()
)
@options.with_options(
    options.FLAVORS,
    options.DEVICES,
    *options.PARAMETERS,
    *options.COMBINATIONS,
    click.option("--group", metavar="GROUP", shell_complete=options.complete_names("group"),
                 help="A label for jobs that belong together; a sweep gets one by itself."),
    click.option("--group-limit", type=click.IntRange(min=1), metavar="N",
                 help="Start a job only while fewer than N of its group run."),
    click.option("-i", "--input", "inputs", multiple=True,
                 help="A file, folder or pattern in quotes to send along."),
    click.option("--isolated", is_flag=True, help="Run in a scratch copy of the inputs."),
    click.option("-e", "--env", multiple=True, metavar="NAME=VALUE",
                 help="A variable for the kernel."),
    *options.LIMITS,
    click.option("--output", metavar="PATH",
                 help="Where the result goes: a file, or a folder with a slash at its end."),
    click.option("--name", help="Begin the job's name with this instead of the notebook's."),
    click.option("--idempotency-key", metavar="KEY",
                 help="The same key for the same notebook again is the same job."),
    options.YES,
    options.WAIT,
    options.AS_JSON,
)  # fmt: skip
@click.pass_context
def submit_command(
    ctx: click.Context,
    /,
    notebooks: tuple[Path, ...],
    *,
    yes: bool,
    wait: bool,
    as_json: bool,
    **choices: Any,
) -> None:
    """Submit each NOTEBOOK as a job, and print the jobs' names, one a line.

    With --wait, the paths of the results. A folder means the notebooks in it, and a pattern in
    quotes ('*/train-*.ipynb', `**` for all folders) those that match; results of earlier jobs,
    hidden files and checkpoints are left out. What can be checked is checked before anything is
    submitted. After that, a notebook that is refused is reported, and the others go on. Above ten
    jobs a terminal is asked.

    With --sweep, --grid or --zip each value of a list is a job of its own, in one group. A
    --params-file that is a list, JSON lines or CSV makes a job of each row. With an
    --idempotency-key a sweep can be repeated: what is submitted already stays as it is.

    Ctrl-C ends the waiting, never the jobs.
    """
    from ..arguments.notebooks import select_notebooks
    from ..arguments.submissions import build_submissions
    from ..arguments.sweeps import collect_sweep
    from ..waiting import wait_and_print

    selected = select_notebooks(notebooks)
    if selected.skipped_results:
        output.print_note(f"Left out: {selected.skipped_results} that earlier jobs made.")
    parameters, sweep = collect_sweep(choices)
    submissions = build_submissions(selected, choices, parameters, sweep)
    is_batch = selected.is_batch or sweep is not None
    if sweep is not None or len(selected.sources) > len(notebooks):
        _announce(selected, sweep, submissions[0][1].group)
    count = len(submissions) * (1 if sweep is None else len(sweep.runs))
    selection.confirm(count, f"Submit {formats.plural(count, 'job')}?", yes=yes)
    batch = _Batch(quiet=wait or as_json)
    batch.submit(submissions, sweep.runs if sweep is not None else None)
    code, jobs = batch.code, list(batch.jobs.values())
    if wait and jobs:
        waited = wait_and_print(
            jobs, batch.roots, batch.failures, as_json=as_json, as_list=is_batch
        )
        code = max(code, waited)
    elif as_json:
        session.print_jobs(jobs, as_list=is_batch, roots=batch.roots)
    ctx.exit(code)


def _announce(selected: SelectedNotebooks, sweep: Sweep | None, group: str | None) -> None:
    """Say what a sweep will submit, or folders and patterns."""
    notebooks = formats.plural(len(selected.sources), "notebook")
    count = len(selected.sources) * (1 if sweep is None else len(sweep.runs))
    jobs = formats.plural(count, "job")
    place = "" if group is None else f" in the group {group}"
    varied = [] if sweep is None else sweep.describe()
    output.print_note(f"{jobs}{place}: {', '.join([notebooks, *varied])}.")


class _Batch:
    """Submits notebooks in turn. `roots` has the workspace of each job, by the job's name."""

    def __init__(self, *, quiet: bool) -> None:
        self.jobs: dict[str, Job] = {}
        self.roots: dict[str, Path] = {}
        self.failures: dict[str, JobsError] = {}
        self.code = exits.SUCCEEDED
        self._quiet = quiet

    def submit(
        self, submissions: list[tuple[Source, Submission]], runs: Sequence[Run] | None = None
    ) -> None:
        """Submit all, with `runs` once for each. After Ctrl-C, print how to wait for them."""
        from ..waiting import print_resume_hint

        try:
            self._submit_all(submissions, runs)
        except KeyboardInterrupt:
            if self._quiet:  # otherwise their names are on stdout already
                print_resume_hint(list(self.jobs))
            raise

    def _submit_all(
        self, submissions: list[tuple[Source, Submission]], runs: Sequence[Run] | None
    ) -> None:
        """Submit all. An unreachable backend ends it: it would fail, slowly, for the others."""
        from ..arguments.warnings import SubmitWarnings

        several, total = len(submissions) > 1, len(submissions) * len(runs or "1")
        if total > 1:
            _check_choice(*submissions[0], runs or ())
        with SubmitWarnings() as warnings:
            for source, submission in submissions:
                service = session.connect(source.root)
                warnings.check(service, source, _example(submission, runs))
                try:
                    for job in _submit(service, submission, runs):
                        self._record(job, source)
                        warnings.record(source, job)
                except JobsError as error:
                    self.failures[source.argument] = error
                    self.code = max(self.code, exits.code_of_error(error))
                    output.print_error(error, source.argument if several else None)
                    if isinstance(error, Unavailable):
                        break
        if total > 1 and self.failures:
            output.print_note(f"{len(self.jobs)} of {total} submitted.")

    def _record(self, job: Job, source: Source) -> None:
        self.jobs[job.name] = job
        self.roots[job.name] = source.root
        if not self._quiet:
            click.echo(job.name)
            output.flush()
        elif not sys.stderr.isatty() or len(self.jobs) == 1:
            output.print_note(f"{job.name} submitted")


def _submit(service: Jobs, submission: Submission, runs: Sequence[Run] | None) -> Iterator[Job]:
    """Submit a notebook, with `runs` once for each; yield each job when it is recorded."""
    if runs is None:
        yield service.submit(submission)[0]
    else:
        yield from service.sweep(submission, runs)


def _example(submission: Submission, runs: Sequence[Run] | None) -> Submission:
    """Return a submission with the parameters of all runs, for what preflight says of them."""
    parameters = dict(submission.parameters)
    for run in runs or ():
        parameters.update(run.parameters)
    return replace(submission, parameters=parameters)


def _check_choice(source: Source, submission: Submission, runs: Sequence[Run]) -> None:
    """Refuse a flavor or device that does not exist once, instead of for each notebook."""
    flavors = dict.fromkeys([submission.flavor, *(run.flavor for run in runs)])
    devices = dict.fromkeys([submission.device, *(run.device for run in runs)])
    choices = [("flavor", name) for name in flavors] + [("device", name) for name in devices]
    if all(name is None for _, name in choices):
        return
    catalog = session.connect(source.root).flavors()
    for kind, name in choices:
        names = catalog[f"{kind}s"]
        if name is not None and name not in names:
            raise BadInput(f"There is no {kind} {name!r}.", did_you_mean(name, names))
