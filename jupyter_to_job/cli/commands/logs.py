"""`logs`: a job's text output and tracebacks, as they appear if it is followed."""

from __future__ import annotations

import os
import sys
import time

import click

from ...domain.job import Job
from ...service.port import Jobs
from .. import options, session
from ..display import formats, output
from ..waiting import LOOK, changes, deletion_told


@click.command("logs")
@options.ONE_JOB
@click.option("--follow", is_flag=True, help="Go on until the job has ended.")
def logs_command(job: str, *, follow: bool) -> None:
    """Print a JOB's text output and tracebacks.

    Colours are left out where the output is no terminal.
    """
    service = session.connect()
    found = session.look_up(service, job)
    log = _Log(service, found.name)
    if not follow:
        log.catch_up()
        _say_if_nothing(found, log)
        return
    try:
        with deletion_told():
            _follow(service, found, log)
    except KeyboardInterrupt:
        log.note(f"Still running. Return with: jupyter-to-job logs {found.name} --follow")
        raise


class _Log:
    """What was printed of a job's output, and what comes next."""

    def __init__(self, service: Jobs, name: str) -> None:
        self._service = service
        self._name = name
        self._colours = sys.stdout.isatty() and not os.environ.get("NO_COLOR")
        self.offset = 0
        self.printed = False
        self.ended = False
        self._open = False

    def catch_up(self) -> None:
        """Print all that is there and was not printed yet."""
        while not self.ended:
            piece = self._service.logs(self._name, self.offset)
            output.write(piece.text if self._colours else click.unstyle(piece.text))
            if piece.text:
                self.printed, self._open = True, not piece.text.endswith("\n")
            caught_up = piece.next == self.offset
            self.offset, self.ended = piece.next, piece.end
            if caught_up:
                break

    def note(self, text: str) -> None:
        """Say something below the output, on a line of its own where both go to a terminal."""
        if self._open and sys.stdout.isatty() and sys.stderr.isatty():
            text = f"\n{text}"
        output.note(text)


def _say_if_nothing(job: Job, log: _Log) -> None:
    if not log.printed and not job.state.final:
        output.note(f"{job.name} is {formats.state(job)}; it has printed nothing yet.")


def _follow(service: Jobs, job: Job, log: _Log) -> None:
    """Print what comes until the job has ended; the feed says when there is more."""
    log.catch_up()
    _say_if_nothing(job, log)
    looked = time.monotonic()
    for event in changes(service):
        mine = event is not None and event.name == job.name
        # It may have ended before the feed began, or been deleted: look up now and then.
        if mine or time.monotonic() - looked > LOOK:
            looked = time.monotonic()
            log.catch_up()
        if log.ended:
            break
    job = service.get(job.name)
    log.note(f"{job.name} {formats.state(job)}{': ' + job.message if job.message else ''}")
