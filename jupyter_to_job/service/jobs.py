"""The use cases over an exchange that this process reaches as files: local, and in the gateway."""

from __future__ import annotations

import contextlib
import posixpath
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from job_runner.protocol import layout, times
from job_runner.protocol.result.result import NO_LIMITS, FoldLimits

from ..backends.port import Backend
from ..domain.errors import Damaged, NotFound, Unavailable, no_job
from ..domain.job import Changes, Deleted, DeliveryState, Job, State, Submission
from ..domain.preflight import Preflight
from ..domain.state import Placement
from ..domain.submission_rules import check_group
from ..domain.sweep import Run, submissions_of
from ..domain.transfer import Transfer
from ..exchange import FileExchange, Request
from ..exchange.index import IndexRow
from ..exchange.records import NotificationsRecord
from ..exchange.retention import Policy, raise_if_cleared
from ..workspace import Frozen, resolve_output
from .catalog import describe
from .delivery import deliver, find_delivered_attempt
from .job_files import StoredFiles
from .port import OpenNotebook, Page, Records, Text
from .reading.changes import ChangeFeed, JobOwner
from .reading.journal_reader import partial_notebook, read_records, read_text
from .reading.listing import JobLister, ListEntry
from .reading.queue_forecast import QueueForecasts
from .reading.view import JobReader
from .submitting import rerun
from .submitting.preflight import preflight
from .submitting.submission import AdmitJob, Caller, SubmissionService, freeze_submission

if TYPE_CHECKING:
    from ..flavors.catalog import Catalog

WAKE_INTERVAL = 1.0
"""Seconds between two calls that wake the backend for active jobs while they are followed."""
QUIET_AFTER = 5.0
"""Seconds without a change after which the active jobs are polled less often."""
QUIET_INTERVAL = 0.2
"""Seconds between two polls then."""


@dataclass
class ServiceContext:
    """The parts that all callers of one process share.

    `output_cap` is how many bytes of output a job may keep; None: as many as it likes. `limits` is
    how much of the journal of a running job is taken into memory. `admit_job` may refuse a job.
    `policy` says how long jobs are kept.
    """

    exchange: FileExchange
    backend: Backend
    catalog: Callable[[], Catalog]
    output_cap: int | None = None
    limits: FoldLimits = NO_LIMITS
    admit_job: AdmitJob = lambda _owner, _size, _added: None
    has_hooks: Callable[[], bool] = bool
    policy: Policy | None = None

    def __post_init__(self) -> None:
        self.reader = JobReader(self.exchange, self.backend.alive, self.limits.line)
        self.lister = JobLister(self.exchange, self.backend, self.reader)
        self.forecasts = QueueForecasts(self.exchange, self.backend, self.lister, self.reader)
        self.submissions = SubmissionService(
            self.exchange,
            self.backend,
            self.catalog,
            self.output_cap,
            self.admit_job,
            self.has_hooks,
        )

    def read_job(self, request: Request, *, is_new: bool = False) -> Job:
        """Return a job as it stands, with paths of its own workspace. Raises NotFound.

        `is_new`: this process has recorded the request just now.
        """
        if self.backend.has_queue and self.reader.has_attempt(request.name):
            return self.reader.job(request, Placement())  # it has left the queue
        waiting = self.lister.waiting_requests(request if is_new else None)
        placements = self.lister.placements(waiting, [request])
        return self.reader.job(request, placements.get(request.name, Placement()))


class JobService:
    """Implements `service.port.Jobs` for one caller. `only_inside` hides jobs of other roots.

    `wake` is called with the names of active jobs that are read, for the process that works on
    them may have died. Without it the backend is notified.
    """

    pulls = False

    def __init__(
        self,
        context: ServiceContext,
        caller: Caller,
        *,
        only_inside: bool = False,
        wake: Callable[..., object] | None = None,
    ) -> None:
        self.backend = context.backend.name
        self._context = context
        self._exchange = context.exchange
        self._caller = caller
        self._only_inside = only_inside
        self._root = caller.workspace.rstrip("/") + "/"
        self._wake = wake or context.backend.notify

    # Submitting -----------------------------------------------------------------------------

    def submit(self, submission: Submission, transfer: Transfer | None = None) -> tuple[Job, bool]:
        """See the port: freezes from the caller's workspace on this host."""
        submission, frozen = self._freeze(submission)
        return self.submit_frozen(submission, frozen, transfer=transfer)

    def sweep(
        self, submission: Submission, runs: Sequence[Run], transfer: Transfer | None = None
    ) -> Iterator[Job]:
        """See the port."""
        submission, frozen = self._freeze(submission)
        submissions = submissions_of(submission, runs)
        for choice in {(s.flavor, s.device): s for s in submissions}.values():
            self._context.submissions.choose(choice, self._caller)
        for run in submissions:
            yield self.submit_frozen(run, frozen, transfer=transfer)[0]

    def _freeze(self, submission: Submission) -> tuple[Submission, Frozen]:
        """Return the submission with its output resolved, and the frozen files."""
        workspace = self._caller.open_workspace()
        submission = self._caller.with_results(submission)
        return freeze_submission(workspace, submission, self._caller)

    def submit_frozen(
        self,
        submission: Submission,
        frozen: Frozen,
        caller: Caller | None = None,
        transfer: Transfer | None = None,
    ) -> tuple[Job, bool]:
        """Record a frozen submission (a gateway gets it as blobs) and get its job started."""
        caller = caller or self._caller
        submissions = self._context.submissions
        request, is_new = submissions.submit(submission, frozen, caller, transfer)
        # The job is read before the backend begins, which would compete for the processor.
        request = self._require_visible(request)
        job = self._for_reader(self._context.read_job(request, is_new=is_new), request)
        self._context.backend.notify(request.name)
        return job, is_new

    def preflight(self, submission: Submission) -> Preflight:
        """See the port."""
        context = self._context
        return preflight(context.submissions, submission, self._caller, context.forecasts.of_trial)

    def rerun(self, name: str, changes: Changes, transfer: Transfer | None = None) -> Job:
        """See the port."""
        request = self._own_request(name)
        caller = rerun.original_caller(request, self._caller)
        # Behind a gateway the caller's side has resolved the output already.
        if changes.output is not None and caller.sees_workspace:
            output = resolve_output(caller.open_workspace(), changes.output)
            changes = replace(changes, output=output)
        share = not caller.sees_workspace  # runs of the local backend may write to their inputs
        frozen = rerun.stored_snapshot(self._exchange, request, share=share)
        submission = rerun.resubmission(request, changes)
        if caller.sees_workspace:
            submission = caller.with_results(submission)
        submission = replace(submission, results=submission.results or request.results)
        return self.submit_frozen(submission, frozen, caller, transfer)[0]

    # Reading --------------------------------------------------------------------------------

    def get(self, name: str) -> Job:
        """See the port."""
        request = self._own_request(name)
        job = self._for_reader(self._context.read_job(request), request)
        self._wake_backend([name] if not job.decided else [])
        return self._context.forecasts.with_wait(job, request)

    def details(self, name: str) -> Job:
        """See the port: no cluster tells anything of a job on this machine."""
        job = self.get(name)
        with contextlib.suppress(Damaged):
            record = self._exchange.record(name, layout.NOTIFICATIONS, NotificationsRecord)
            if record is not None:
                return replace(job, notifications=record.notifications)
        return job

    def files(self, name: str) -> StoredFiles:
        """See the port."""
        request = self._own_request(name)
        convert = path_converter(request.workspace, self._caller.workspace)
        context = self._context
        return StoredFiles(self._exchange, request, convert, context.policy, context.limits.line)

    def find(
        self,
        states: Sequence[State] = (),
        limit: int = 50,
        cursor: str | None = None,
        notebook: str | None = None,
        group: str | None = None,
    ) -> Page:
        """See the port. The cursor is the age of the page's final job: when submitted, and name."""
        check_group(group, None)
        source = None if notebook is None else posixpath.normpath(f"{self._root}{notebook}")
        jobs: list[Job] = []
        final_entry: ListEntry | None = None
        for entry in self._context.lister.newest(self._caller.owner, states, cursor):
            if source not in (None, entry.subject.source) or not self._is_listed(entry.subject):
                continue
            if group not in (None, entry.subject.group):
                continue
            if final_entry is not None and len(jobs) == limit:
                break
            job = entry.job()
            if job is None or (states and job.state not in states):  # it changed just now
                continue
            job = self._for_reader(job, entry.subject)
            if isinstance(entry.subject, Request):
                job = self._context.forecasts.with_wait(job, entry.subject)
            jobs.append(job)
            final_entry = entry
        else:
            final_entry = None
        self._wake_backend([job.name for job in jobs if not job.decided])
        return Page(jobs, final_entry.age if final_entry is not None else None)

    def logs(self, name: str, offset: int = 0) -> Text:
        """See the port."""
        job_dir, is_final = self._journals(name)
        return read_text(job_dir, offset, final=is_final)

    def journal(self, name: str, offset: int = 0) -> Records:
        """See the port."""
        job_dir, is_final = self._journals(name)
        return read_records(job_dir, offset, final=is_final)

    def notebook(self, name: str, max_size: int | None = None) -> OpenNotebook:
        """See the port."""
        return self._open_notebook(name).within(max_size)

    def _open_notebook(self, name: str) -> OpenNotebook:
        exchange = self._exchange
        self._own_request(name)
        raise_if_cleared(exchange, name)
        number = find_delivered_attempt(exchange, name)
        if number is not None:
            result = exchange.open(name, f"attempt-{number}/{layout.RESULT}")
            outcome = exchange.outcome(name, number)
            if result is not None:
                return OpenNotebook(result, outcome.result_sha256 if outcome else None)
            raise_if_cleared(exchange, name)  # it may have been cleared just now
        numbers = layout.attempts(exchange.directory(name))
        if numbers:
            notebook = partial_notebook(exchange.directory(name), numbers[-1], self._context.limits)
            if notebook is not None:
                return OpenNotebook(notebook)
        raise NotFound(f"{name} has no result yet.", "Wait until it has begun.")

    def flavors(self) -> dict[str, Any]:
        """See the port."""
        context = self._context
        return describe(context.catalog(), self._caller.groups, context.backend.resources())

    def changes(self, names: Collection[str] | None = None) -> Iterator[Job | Deleted | None]:
        """See the port: polls the active jobs every `ChangeFeed.interval` seconds.

        While nothing changes it polls every `QUIET_INTERVAL` seconds.
        """
        feed = ChangeFeed(self._exchange, self._context.lister, self._context.reader, names)
        jobs: dict[str, Job] = {}
        is_initial, woken_at, changed_at = True, 0.0, time.monotonic()
        while True:
            for request, job in feed.poll():
                if not self._is_listed(request):
                    continue
                job = self._for_reader(job, request)
                settled = job.decided and job.delivery.state is not DeliveryState.HELD
                if jobs.get(job.name) != job and not (is_initial and settled):
                    changed_at = time.monotonic()
                    yield job
                jobs[job.name] = job
                if settled:
                    del jobs[job.name]
            for name, owner in feed.deleted:
                jobs.pop(name, None)
                if self._is_visible(owner):
                    yield Deleted(name)
            if time.monotonic() - woken_at > WAKE_INTERVAL:
                woken_at = time.monotonic()
                self._wake_backend([job.name for job in jobs.values() if not job.decided])
            is_initial = False
            yield None
            is_quiet = time.monotonic() - changed_at > QUIET_AFTER
            time.sleep(max(feed.interval, QUIET_INTERVAL) if is_quiet else feed.interval)

    # Acting ---------------------------------------------------------------------------------

    def cancel(self, name: str) -> Job:
        """See the port."""
        if not self.get(name).state.final:
            self._exchange.write_wish(name, layout.CANCEL, self._wish())
            self._context.backend.notify(name)
        return self.get(name)

    def delete(self, name: str) -> None:
        """See the port. The process that ends a running job removes it; no reader sees it now."""
        on_cluster = self._exchange.has(name, layout.JOB)  # its Job is to be deleted first
        is_final = self.get(name).state.final
        if is_final and not on_cluster:
            self._exchange.remove(name)
            return
        request = self._exchange.request(name)
        if not is_final:
            self._exchange.write_wish(name, layout.CANCEL, self._wish())
        self._exchange.write_wish(name, layout.DELETE, self._wish())
        self._context.backend.notify(name)
        # No process reads these any more if the job ended before they were written.
        with contextlib.suppress(NotFound, FileNotFoundError):
            if not on_cluster and self._context.reader.job(request, Placement()).decided:
                self._exchange.remove(name)

    def deliver(self, name: str) -> Job:
        """See the port."""
        self._own_request(name)
        deliver(self._exchange, name)
        return self.get(name)

    # Inside ---------------------------------------------------------------------------------

    def _wake_backend(self, names: Collection[str]) -> None:
        """Wake the backend for active jobs; one that it cannot reach now stays as it is."""
        if names:
            with contextlib.suppress(NotFound, Unavailable):
                self._wake(*names)

    def _wish(self) -> dict[str, Any]:
        return {"time": times.now(), "who": self._caller.owner}

    def _own_request(self, name: str) -> Request:
        return self._require_visible(self._exchange.find_request(name))

    def _require_visible(self, request: Request) -> Request:
        """Return the request if the caller may see its job. Raises NotFound."""
        if not self._is_visible(request) or self._context.reader.is_deleted(request.name):
            raise no_job(request.name)
        return request

    def _is_visible(self, subject: Request | IndexRow | JobOwner) -> bool:
        if not subject.owner:  # unreadable; who shares a local exchange owns all its jobs
            return self._caller.sees_workspace
        if subject.owner != self._caller.owner:
            return False
        return not self._only_inside or subject.source.startswith(self._root)

    def _is_listed(self, subject: Request | IndexRow) -> bool:
        """Tell whether lists and changes have the job. By its name every visible job is reached."""
        return self._is_visible(subject)

    def _for_reader(self, job: Job, subject: Request | IndexRow) -> Job:
        """Return the job as the caller sees it."""
        return with_paths_for(job, subject, self._caller.workspace)

    def _journals(self, name: str) -> tuple[Path, bool]:
        """Return the job's directory, and whether the job has ended. Raises Cleared."""
        job = self.get(name)
        raise_if_cleared(self._exchange, name)
        return self._exchange.directory(name), job.state.final


def with_paths_for(job: Job, subject: Request | IndexRow, workspace: str) -> Job:
    """Make a job's paths relative to the reader's workspace: `../` leads out of it."""
    if subject.workspace in ("", workspace):  # nothing is known of an unreadable request
        return job
    return job.with_paths(path_converter(subject.workspace, workspace))


def path_converter(source: str, workspace: str) -> Callable[[str], str]:
    """Return what makes a path of the submitter's workspace, `source`, one of the reader's."""
    if source in ("", workspace):
        return str

    def convert(path: str) -> str:
        converted = posixpath.relpath(posixpath.join(source, path), workspace)
        return f"{converted}/" if path.endswith("/") else converted  # an output that is a folder

    return convert
