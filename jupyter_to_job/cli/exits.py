"""Errors and ended jobs to exit codes, in one place."""

from __future__ import annotations

from collections.abc import Iterable

from ..domain.errors import BadInput, Conflict, JobsError, NotFound, Refused, TooLarge, Unavailable
from ..domain.job import Job, State

SUCCEEDED, JOB_FAILED, USAGE, NO_SUCH_JOB, REFUSED, UNREACHABLE, INTERRUPTED = 0, 1, 2, 3, 4, 5, 130
BROKEN_PIPE = 141
"""As the shell says it of a program that SIGPIPE ended: whoever read our output has left."""

_CODES: tuple[tuple[type[JobsError], int], ...] = (
    (NotFound, NO_SUCH_JOB),
    (Refused, REFUSED),
    (Unavailable, UNREACHABLE),
    (BadInput, USAGE),
    (Conflict, USAGE),
    (TooLarge, USAGE),
)


def code_of(error: JobsError) -> int:
    """Return the exit code for an error."""
    return next((code for cls, code in _CODES if isinstance(error, cls)), JOB_FAILED)


def code_for(jobs: Iterable[Job]) -> int:
    """Return the exit code after waiting: of several jobs one that failed is a failure."""
    return SUCCEEDED if all(job.state is State.SUCCEEDED for job in jobs) else JOB_FAILED
