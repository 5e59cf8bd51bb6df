"""The port that every edge uses, for jobs that this process reaches and for a gateway's."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, BinaryIO, NamedTuple, Protocol

from job_runner.protocol.journal.journal import Record

from ..domain.errors import too_large_notebook
from ..domain.job import Changes, Deleted, Job, State, Submission
from ..domain.job_record import CellReceipt, JobRecord
from ..domain.preflight import Preflight
from ..domain.sweep import Run
from ..domain.transfer import Transfer


@dataclass(frozen=True)
class Page:
    """Some jobs, newest first, and the cursor of the next page (None: this was the last)."""

    jobs: list[Job]
    next: str | None = None


@dataclass(frozen=True)
class Text:
    """A piece of a job's text output; `next` is the journal offset to go on from."""

    text: str
    next: int
    end: bool


@dataclass(frozen=True)
class Records:
    """A piece of a job's journal, in whole records; `next` is the offset to go on from.

    `end`: the job has ended, and no more records follow.
    """

    records: list[Record]
    next: int
    end: bool


class OpenNotebook(NamedTuple):
    """A notebook that is open for reading, and may be larger than memory.

    `sha256` is the digest of a result. None: it is the part that exists so far.
    """

    file: BinaryIO
    sha256: str | None = None

    def within(self, max_size: int | None) -> OpenNotebook:
        """Return itself. Closes the file and raises TooLarge for more than `max_size` bytes."""
        if max_size is not None and os.fstat(self.file.fileno()).st_size > max_size:
            self.file.close()
            raise too_large_notebook(max_size)
        return self


class JobFiles(Protocol):
    """One job in detail. Each method raises errors of `domain.errors` and nothing else."""

    def record(self) -> JobRecord:
        """Return where the job ran, its files, and how long they are kept."""

    def cells(self) -> list[CellReceipt]:
        """Return what the cells used that have begun. Raises Cleared."""

    def snapshot(self) -> OpenNotebook:
        """Open the notebook as it was frozen. The caller closes its file. Raises Cleared."""


PAGE_SIZE = 500
"""Jobs of a page where all are asked for."""


class Jobs(Protocol):
    """The use cases. Each raises errors of `domain.errors` and nothing else.

    `backend` names what starts the runners. `pulls` tells whether results reach the workspace only
    through `deliver` of this process: true behind a gateway, false where a dispatcher delivers.
    """

    backend: str
    pulls: bool

    def submit(self, submission: Submission, transfer: Transfer | None = None) -> tuple[Job, bool]:
        """Freeze and record; return the job and whether it is new (False: same key, same digest).

        The same idempotency key with another submission raises Conflict. `transfer` counts the
        copied bytes. Where it is withdrawn, Withdrawn is raised and nothing is recorded.
        """

    def sweep(
        self, submission: Submission, runs: Sequence[Run], transfer: Transfer | None = None
    ) -> Iterator[Job]:
        """Submit once for each run, all from one frozen copy; yield each job once it is recorded.

        With an idempotency key each run gets a key of its own, so that what was interrupted can be
        repeated. An error ends it, Withdrawn as well, and what is recorded stays.
        """

    def preflight(self, submission: Submission) -> Preflight:
        """Check a submission as far as possible, and return its problems. Nothing is recorded."""

    def rerun(self, name: str, changes: Changes, transfer: Transfer | None = None) -> Job:
        """Submit the frozen files of a job again, with `changes`; return the new job.

        Raises Cleared when the snapshot is over its retention, and all that `submit` raises.
        """

    def get(self, name: str) -> Job:
        """Return the job as it stands. Raises NotFound."""

    def details(self, name: str) -> Job:
        """Return the job as `get` does, with its `notifications`, and its `events` on a cluster."""

    def files(self, name: str) -> JobFiles:
        """Return what belongs to a job. Raises NotFound, here or when it is read."""

    def find(
        self,
        states: Sequence[State] = (),
        limit: int = 50,
        cursor: str | None = None,
        notebook: str | None = None,
        group: str | None = None,
    ) -> Page:
        """Return jobs, newest first, optionally only some states', a notebook's or a group's.

        Raises BadInput for a group that no job can belong to.
        """

    def cancel(self, name: str) -> Job:
        """Ask for the job's end; return it with `cancel_requested`. Ended jobs do not change."""

    def delete(self, name: str) -> None:
        """Delete the job at once; its run is stopped. A delivered notebook is never touched."""

    def deliver(self, name: str) -> Job:
        """Publish the result now, unless it is published already; return the job."""

    def logs(self, name: str, offset: int = 0) -> Text:
        """Return text output from a journal offset on; negative: from the end. Raises Cleared."""

    def journal(self, name: str, offset: int = 0) -> Records:
        """Return records from a journal offset on; negative: from the end. Raises Cleared.

        Offsets count bytes over all attempts in order. An answer is at most 1 MiB.
        """

    def notebook(self, name: str, max_size: int | None = None) -> OpenNotebook:
        """Open the result, or the part that exists so far. The caller closes its file.

        Raises Cleared, and TooLarge for a run that has not ended and has printed very much, or a
        notebook of more than `max_size` bytes.
        """

    def flavors(self) -> dict[str, Any]:
        """Return the catalog as `GET flavors` answers it."""

    def changes(self, names: Collection[str] | None = None) -> Iterator[Job | Deleted | None]:
        """Yield jobs as they change, without end; first all that are unfinished or undelivered.

        With `names` they are asked for alone; others may be among them all the same.
        A job that is deleted meanwhile is yielded as Deleted. While nothing happens None is yielded
        now and then, so that a caller can stop.
        """


def all_jobs(service: Jobs, states: Sequence[State] = (), group: str | None = None) -> list[Job]:
    """Return all jobs, newest first, optionally only those in some states, or of a group."""
    page = service.find(states, PAGE_SIZE, group=group)
    jobs = page.jobs
    while page.next is not None:
        page = service.find(states, PAGE_SIZE, page.next, group=group)
        jobs = jobs + page.jobs
    return jobs
