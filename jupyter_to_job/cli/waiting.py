"""Waiting for jobs: follows the feed until the delivery of each job is decided."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from ..domain.errors import Cleared, JobsError, NotFound, Unavailable
from ..domain.job import Deleted, Job
from ..service.delivery import deliver_if_pulling
from ..service.port import Jobs
from . import exits, session
from .display import output
from .display.progress import ProgressDisplay, choose_display

GATEWAY_TIMEOUT = 60.0
"""Seconds without an answer of the gateway after which waiting fails."""
POLL_INTERVAL = 2.0
"""Seconds between two reads of our own: the feed does not report deleted jobs to everybody."""
_RETRY_DELAY = 1.0
Answer = TypeVar("Answer")


def wait_and_print(
    jobs: Collection[Job],
    roots: Mapping[str, Path],
    failures: Mapping[str, JobsError] | None = None,
    *,
    as_json: bool,
    as_list: bool,
) -> int:
    """Wait for jobs, print how they ended, and return the exit code.

    `roots` maps each job's name to the workspace of its notebook, `failures` each notebook that was
    not submitted to its error. `as_list`: print a JSON list even for a single job.
    """
    from .display.summary import print_summary

    ended = wait_for(jobs, {name: session.connect(root) for name, root in roots.items()})
    if as_json:
        session.print_jobs(ended, as_list=as_list, roots=roots)
    else:
        print_summary(ended, roots, failures)
    code = exits.code_of_jobs(ended)
    return code if len(ended) == len(jobs) else max(code, exits.NO_SUCH_JOB)


def wait_for(jobs: Collection[Job], services: Mapping[str, Jobs]) -> list[Job]:
    """Return jobs, in their order, once each delivery is decided.

    `jobs` are as the caller saw them last, and `services` maps each job's name to the service of
    the workspace that its notebook is in. A job that is deleted meanwhile is left out, and its
    error printed. Ctrl-C leaves the jobs running and prints how to wait for them again, and so does
    a gateway that stays away.
    """
    latest = {job.name: job for job in jobs}
    deletions: list[NotFound] = []
    try:
        with choose_display() as display:
            for job in jobs:
                display.show(job)
            _follow(services, latest, deletions, display)
    except (KeyboardInterrupt, Unavailable):
        print_resume_hint([name for name, job in latest.items() if not job.decided])
        raise
    finally:
        for error in deletions:  # now that no bars are drawn any more
            output.print_error(error)
    return list(latest.values())


@contextmanager
def explain_deletion() -> Iterator[None]:
    """Add to a NotFound that the job existed a moment ago, so that somebody deleted it."""
    try:
        yield
    except Cleared:
        raise
    except NotFound as error:
        raise NotFound(f"{error.message} It was deleted meanwhile.") from error


def print_resume_hint(names: Sequence[str]) -> None:
    """Print that jobs go on which are not waited for any more, and how to wait for them again."""
    if names:
        output.print_note(f"Still running. Return with: jupyter-to-job wait {' '.join(names)}")


def _follow(
    services: Mapping[str, Jobs],
    jobs: dict[str, Job],
    deletions: list[NotFound],
    display: ProgressDisplay,
) -> None:
    """Keep `jobs` and the display up to date until the delivery of all is decided.

    A job that is deleted is removed from both, and the error that says so is added to `deletions`.
    """

    def update(name: str, job: Job | None = None) -> None:
        service = services[name]
        try:
            with explain_deletion():
                job = patiently(lambda: deliver_if_pulling(service, job or service.get(name)))
        except NotFound as error:
            deletions.append(error)
            del jobs[name]
            display.remove(name)
        else:
            jobs[name] = job
            display.show(job)

    any_service = next(iter(services.values()))
    polled = -POLL_INTERVAL  # poll at once: a job may have ended before the feed began
    for job in follow_changes(any_service, list(services)):
        if job is not None and job.name in jobs:
            update(job.name, job if services[job.name] is any_service else None)
        elif job is None and time.monotonic() - polled > POLL_INTERVAL:
            polled = time.monotonic()
            for name in [n for n, j in jobs.items() if not j.decided]:
                update(name)
        if all(j.decided for j in jobs.values()):
            break


def patiently(call: Callable[[], Answer]) -> Answer:
    """Return what a call returns; it is made again while the gateway is away.

    Raises Unavailable once that has been away for `GATEWAY_TIMEOUT`.
    """
    away_since: float | None = None  # a call that succeeds may take minutes
    while True:
        try:
            return call()
        except Unavailable:
            away_since = away_since or time.monotonic()
            if time.monotonic() - away_since > GATEWAY_TIMEOUT:
                raise
            time.sleep(_RETRY_DELAY)


def follow_changes(service: Jobs, names: Sequence[str]) -> Iterator[Job | None]:
    """Yield changed jobs, those of `names` among them, and None in between.

    Raises Unavailable once a gateway has been away for `GATEWAY_TIMEOUT`.
    """
    answered = time.monotonic()
    while True:
        try:
            for job in service.changes(names):
                answered = time.monotonic()
                yield None if isinstance(job, Deleted) else job  # the next poll tells of it
        except Unavailable:
            if time.monotonic() - answered > GATEWAY_TIMEOUT:
                raise
            time.sleep(_RETRY_DELAY)
