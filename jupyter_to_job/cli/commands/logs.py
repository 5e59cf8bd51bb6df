"""`logs`: a job's text output and tracebacks, with `--follow` as they appear."""

from __future__ import annotations

import sys
import time

import click

from job_runner.protocol.result.carriage_return import StreamText

from ...domain.job import Job
from ...service.port import Jobs
from .. import options, session
from ..display import formats, output
from ..waiting import POLL_INTERVAL, explain_deletion, follow_changes, patiently


@click.command("logs")
@options.JOB
@click.option("--follow", is_flag=True, help="Go on until the job has ended.")
def logs_command(job: str, *, follow: bool) -> None:
    """Print a JOB's text output and tracebacks.

    Where the output is no terminal, colours are left out (unless FORCE_COLOR is set), and so is
    what a line showed before it was written over, as progress bars do.
    """
    service = session.connect()
    status = session.with_name_hint(service, job, service.get)
    log = _LogPrinter(service, status.name)
    if not follow:
        log.print_new()
        log.print_unfinished_line()
        _print_note_if_empty(status, log)
        return
    try:
        with explain_deletion():
            _follow(service, status, log)
    except KeyboardInterrupt:
        log.print_unfinished_line()
        log.print_note(f"Still running. Return with: jupyter-to-job logs {status.name} --follow")
        raise


class _LogPrinter:
    """Prints a job's log, from where the last call stopped."""

    def __init__(self, service: Jobs, name: str) -> None:
        self._service = service
        self._name = name
        self._is_terminal = sys.stdout.isatty()
        self._colours = output.has_colours()
        self._lines = StreamText()
        self._offset = 0
        self._in_line = False
        self.is_empty = True
        self.has_ended = False

    def print_new(self) -> None:
        """Print everything that was not printed yet."""
        while not self.has_ended:
            chunk = self._service.logs(self._name, self._offset)
            text = chunk.text
            if self._is_terminal or self._colours:
                text = output.coloured(text)
            text = text if self._colours else click.unstyle(text)
            output.write(text if self._is_terminal else self._lines.feed(text))
            if chunk.text:
                self.is_empty, self._in_line = False, not chunk.text.endswith("\n")
            at_end = chunk.next == self._offset
            self._offset, self.has_ended = chunk.next, chunk.end
            if at_end:
                break

    def print_unfinished_line(self) -> None:
        """Print the last line as it stands, where lines are printed once they are finished."""
        output.write(self._lines.line)
        self._lines = StreamText()

    def print_note(self, text: str) -> None:
        """Print a note below the log: on a new line, where both go to a terminal."""
        if self._in_line and sys.stdout.isatty() and sys.stderr.isatty():
            text = f"\n{text}"
        output.print_note(text)


def _print_note_if_empty(job: Job, log: _LogPrinter) -> None:
    if log.is_empty and not job.state.final:
        output.print_note(f"{job.name} is {formats.state(job)}; it has printed nothing yet.")


def _follow(service: Jobs, job: Job, log: _LogPrinter) -> None:
    """Print the log until the job has ended, whenever the feed reports a change."""
    log.print_new()
    _print_note_if_empty(job, log)
    polled = time.monotonic()
    for change in follow_changes(service, [job.name]):
        is_ours = change is not None and change.name == job.name
        # It may have ended before the feed began, or been deleted: also read now and then.
        if is_ours or time.monotonic() - polled > POLL_INTERVAL:
            polled = time.monotonic()
            patiently(log.print_new)
        if log.has_ended:
            break
    log.print_unfinished_line()
    log.print_note(formats.ending(patiently(lambda: service.get(job.name))))
