"""Waiting for jobs: follows the feed until the delivery of each is decided."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from ..domain.errors import Cleared, NotFound, Unavailable
from ..domain.job import Deleted, Job
from ..service.delivery import deliver_if_pulling
from ..service.port import Jobs
from .display import output
from .display.progress import ProgressDisplay, board

PATIENCE = 60.0
"""Seconds without a word from the gateway after which waiting is given up."""
LOOK = 2.0
"""Seconds between two looks of our own: the feed tells of changes, but not of a deleted job."""


def wait_for(services: Mapping[str, Jobs]) -> list[Job]:
    """Return the jobs, in the order of their names in `services`, once each delivery is decided.

    Each service is the one in whose workspace the job's notebook is. Ctrl-C leaves the jobs
    running and says how to return to them. Raises NotFound for a job that is not there or goes.
    """
    jobs: dict[str, Job] = {}
    try:
        jobs.update({name: service.get(name) for name, service in services.items()})
        with board() as seen, deletion_told():
            for job in jobs.values():
                seen.show(job)
            _follow(services, jobs, seen)
    except KeyboardInterrupt:
        print_resume_hint([n for n in services if n not in jobs or not jobs[n].decided])
        raise
    return list(jobs.values())


@contextmanager
def deletion_told() -> Iterator[None]:
    """Say of a job that goes while it is looked at that somebody deleted it."""
    try:
        yield
    except Cleared:
        raise
    except NotFound as error:
        raise NotFound(f"{error.message} It was deleted meanwhile.") from error


def print_resume_hint(names: list[str]) -> None:
    """Tell whoever pressed Ctrl-C that the jobs go on, and how to wait for them again."""
    if names:
        output.note(f"Still running. Return with: jupyter-to-job wait {' '.join(names)}")


def _follow(services: Mapping[str, Jobs], jobs: dict[str, Job], seen: ProgressDisplay) -> None:
    """Keep `jobs` up to date, and shown, until all are decided."""

    def take(name: str, job: Job) -> None:
        jobs[name] = deliver_if_pulling(services[name], job)
        seen.show(jobs[name])

    any_service = next(iter(services.values()))
    looked = -LOOK  # at once: a job may have ended before the feed began
    for job in changes(any_service):
        if job is not None and job.name in jobs:
            service = services[job.name]
            take(job.name, job if service is any_service else service.get(job.name))
        elif job is None and time.monotonic() - looked > LOOK:
            looked = time.monotonic()
            for name in [n for n, j in jobs.items() if not j.decided]:
                take(name, services[name].get(name))
        if all(j.decided for j in jobs.values()):
            return


def changes(service: Jobs) -> Iterator[Job | None]:
    """Follow the feed; a gateway that is away for less than `PATIENCE` is waited for."""
    heard = time.monotonic()
    while True:
        try:
            for job in service.changes():
                heard = time.monotonic()
                yield None if isinstance(job, Deleted) else job  # the next look says so
        except Unavailable:
            if time.monotonic() - heard > PATIENCE:
                raise
            time.sleep(1.0)
