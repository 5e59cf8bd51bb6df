"""The table of reasons why a job failed or waits, and the kind of each.

The list is open: a reason of a newer runner passes through unchanged.
"""

from __future__ import annotations

from enum import Enum


class Kind(Enum):
    """The cause that ended the run."""

    CODE = "the notebook's own code ended it"
    LIMIT = "it used more than it was given"
    SETUP = "it could not begin"
    STOPPED = "somebody ended it from outside: what a cancel looks like, too"
    HOST = "what it ran on gave way, or took it back"


DAMAGED = "Damaged"
GROUP_LIMIT = "GroupLimit"
REASONS: dict[str, Kind] = {
    "CellError": Kind.CODE,
    "KernelDied": Kind.CODE,
    "OutOfMemory": Kind.LIMIT,
    "GpuOutOfMemory": Kind.LIMIT,
    "DeadlineExceeded": Kind.LIMIT,
    "ExitedEarly": Kind.CODE,
    "InputRequested": Kind.CODE,
    "DiskFull": Kind.LIMIT,
    "BadNotebook": Kind.SETUP,
    "NoKernel": Kind.SETUP,
    "RunnerMissing": Kind.SETUP,
    "ImageUnavailable": Kind.SETUP,
    "Unschedulable": Kind.SETUP,
    "QuotaExceeded": Kind.SETUP,
    GROUP_LIMIT: Kind.SETUP,
    "Evicted": Kind.HOST,
    "Preempted": Kind.HOST,
    "NodeLost": Kind.HOST,
    "Terminated": Kind.STOPPED,
    "Lost": Kind.STOPPED,
    "BackendError": Kind.HOST,
    DAMAGED: Kind.HOST,
}
"""Every reason that this version writes. A queued job may have a reason, too: why it waits."""


def group_limit_message(group: str, limit: int) -> str:
    """Return why a job waits that its group's limit holds back."""
    jobs = "1 job" if limit == 1 else f"{limit} jobs"
    return f"At most {jobs} of the group {group} may run at once: it starts when one ends."


def kind_of(reason: str | None) -> Kind | None:
    """Return the kind of a reason; None for a reason that this version does not have."""
    return REASONS.get(reason) if reason is not None else None
