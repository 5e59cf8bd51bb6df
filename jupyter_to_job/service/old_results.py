"""Old results in the workspace: which there are, and how they are removed.

For edges that see the files: the command line and the server. The jobs stay, and so do their other
records, as long as retention keeps them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from datetime import datetime, timezone
from typing import NamedTuple

from job_runner.protocol import times

from ..domain.errors import BadInput, Conflict, JobsError
from ..domain.job import DeliveryState, Job
from ..workspace import Published, Workspace
from ..workspace.publishing.removal import Removal, remove_published
from .port import Jobs

OLDER_THAN, KEEP = 30 * 86_400, 1
"""By default: seconds since the end of a job, and results of each notebook that are kept."""


class OldResult(NamedTuple):
    """A delivered notebook that may be removed: its job, its path and its bytes."""

    job: Job
    path: str
    size: int


def find_old_results(
    jobs: Iterable[Job], workspace: Workspace, older_than: int = OLDER_THAN, keep: int = KEEP
) -> list[OldResult]:
    """Return the results of jobs that ended at least `older_than` seconds ago.

    `jobs` are given newest first, and of each notebook the `keep` newest results stay. What was
    moved or removed is none any more.
    """
    now = datetime.now(timezone.utc)
    counts: Counter[str] = Counter()
    old_results = []
    for job in jobs:
        path = job.delivery.path
        if job.delivery.state is not DeliveryState.DELIVERED or path is None or not job.finished:
            continue
        size = _size(workspace, path)
        if size is None:
            continue
        counts[job.notebook] += 1
        age = (now - times.parse(job.finished)).total_seconds()
        if counts[job.notebook] > keep and age >= older_than:
            old_results.append(OldResult(job, path, size))
    return old_results


def remove_result(service: Jobs, workspace: Workspace, name: str) -> Removal:
    """Remove the delivered result of a job, with the files that its run created.

    What was changed since it was delivered stays. Raises Conflict for a job without a delivered
    result, BadInput for a folder that cannot be written to, and what the service raises. After
    BadInput the notebook is still there, so it can be tried again.
    """
    job, record = service.get(name), service.files(name).record()
    path = job.delivery.path
    if path is None or record.result_sha256 is None or record.delivered is None:
        raise Conflict(f"No result of {name} was delivered.", "There is nothing to remove.")
    published = Published(path, record.result_sha256)
    delivered = times.parse(record.delivered).timestamp()
    try:
        return remove_published(workspace, published, record.files, delivered)
    except OSError as error:
        message = f"{error.filename} of {name} cannot be removed: {error.strerror}."
        raise BadInput(message, "Mend the folder, and try again.") from error


def _size(workspace: Workspace, path: str) -> int | None:
    """Return a file's bytes; None where there is no such file."""
    try:
        with workspace.open(path) as file:
            return file.seek(0, 2)
    except (JobsError, OSError):
        return None
