"""The exit codes of the command line, for errors and for jobs that ended."""

from __future__ import annotations

from collections.abc import Iterable

from ..domain.errors import (
    BadInput,
    Conflict,
    JobsError,
    NotFound,
    Refused,
    StorageFull,
    TooLarge,
    Unavailable,
)
from ..domain.job import Job, State

SUCCEEDED, JOB_FAILED, USAGE, NO_SUCH_JOB, REFUSED, UNREACHABLE, INTERRUPTED = 0, 1, 2, 3, 4, 5, 130
BROKEN_PIPE = 141
"""The shell's code for a program that SIGPIPE ended: the reader of our output closed it."""

_CODES: tuple[tuple[type[JobsError], int], ...] = (
    (NotFound, NO_SUCH_JOB),
    (Refused, REFUSED),
    (StorageFull, REFUSED),
    (Unavailable, UNREACHABLE),
    (BadInput, USAGE),
    (Conflict, USAGE),
    (TooLarge, USAGE),
)


def code_of_error(error: JobsError) -> int:
    """Return the exit code of an error."""
    return next((code for kind, code in _CODES if isinstance(error, kind)), JOB_FAILED)


def code_of_jobs(jobs: Iterable[Job]) -> int:
    """Return the exit code for jobs that ended: a failure if any of them did not succeed."""
    return SUCCEEDED if all(job.state is State.SUCCEEDED for job in jobs) else JOB_FAILED
