"""The use cases over an exchange that this process reaches as files: local, and in the gateway."""

from __future__ import annotations

import contextlib
import posixpath
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from job_runner.protocol import layout

from ..backends.port import Backend
from ..domain import times
from ..domain.errors import NotFound, Unavailable
from ..domain.job import Changes, Deleted, DeliveryState, Job, State, Submission
from ..domain.preflight import Preflight
from ..domain.state import Placement
from ..domain.transfer import Transfer
from ..exchange import FileExchange, Request
from ..exchange.index import IndexRow
from ..exchange.retention import raise_if_cleared
from ..workspace import Frozen, Workspace, freeze, resolve_output
from .catalog import describe
from .delivery import deliver, find_delivered_attempt
from .port import Page, Records, Text
from .reading.changes import ChangeFeed, JobOwner
from .reading.journal_reader import partial_notebook, read_records, read_text
from .reading.listing import JobLister, ListEntry
from .reading.view import JobReader
from .submitting import rerun
from .submitting.preflight import preflight
from .submitting.submission import Caller, SubmissionService

if TYPE_CHECKING:
    from ..flavors import Catalog

WAKE_INTERVAL = 1.0
"""Seconds between two calls for somebody to work on active jobs: whoever did may be dead."""


@dataclass
class ServiceContext:
    """What all callers of one process share."""

    exchange: FileExchange
    backend: Backend
    catalog: Callable[[], Catalog]
    reader: JobReader
    lister: JobLister
    output_cap: int | None = None
    """How many bytes of output a job may keep; None: as many as it likes."""

    @classmethod
    def of(
        cls,
        exchange: FileExchange,
        backend: Backend,
        catalog: Callable[[], Catalog],
        output_cap: int | None = None,
    ) -> ServiceContext:
        """Build a context with a reader of its own."""
        reader = JobReader(exchange, backend.alive)
        lister = JobLister(exchange, backend, reader)
        return cls(exchange, backend, catalog, reader, lister, output_cap)


class JobService:
    """Implements `service.port.Jobs` for one caller. `only_inside` hides jobs of other roots."""

    pulls = False
    nudges = True
    """Whether looking at active jobs sees to it that somebody works on them, who may be dead."""

    def __init__(self, core: ServiceContext, caller: Caller, *, only_inside: bool = False) -> None:
        self.backend = core.backend.name
        self._core = core
        self._caller = caller
        self._only_inside = only_inside
        self._inside = caller.workspace.rstrip("/") + "/"

    # Submitting -----------------------------------------------------------------------------

    def submit(self, asked: Submission, transfer: Transfer | None = None) -> tuple[Job, bool]:
        """See the port: freezes from the caller's workspace on this host."""
        caller = self._caller
        workspace = _workspace_of(caller)
        if asked.output is not None:
            asked = replace(asked, output=resolve_output(workspace, asked.output))
        frozen = freeze(
            workspace,
            asked.notebook,
            asked.inputs,
            asked.expected_sha256,
            caller.input_cap,
            asked.content,
        )
        return self.accept(asked, frozen, transfer=transfer)

    def accept(
        self,
        asked: Submission,
        frozen: Frozen,
        caller: Caller | None = None,
        transfer: Transfer | None = None,
    ) -> tuple[Job, bool]:
        """Record what was frozen already (a gateway gets it as blobs) and get it started."""
        caller = caller or self._caller
        request, created = self._intake().accept(asked, frozen, caller, transfer)
        job = self._look(self._seen(request))  # before the backend begins, which would compete
        self._core.backend.notify(request.name)
        return job, created

    def preflight(self, asked: Submission) -> Preflight:
        """See the port."""
        return preflight(self._intake, asked, self._caller)

    def rerun(self, name: str, changes: Changes, transfer: Transfer | None = None) -> Job:
        """See the port."""
        request = self._mine(name)
        caller = rerun.original_caller(request, self._caller)
        if changes.output is not None and caller.sees_workspace:  # else its own side did it
            output = resolve_output(_workspace_of(caller), changes.output)
            changes = replace(changes, output=output)
        frozen = rerun.stored_snapshot(self._core.exchange, request)
        return self.accept(rerun.resubmission(request, changes), frozen, caller, transfer)[0]

    # Looking --------------------------------------------------------------------------------

    def get(self, name: str) -> Job:
        """See the port."""
        job = self._look(self._mine(name))
        self._nudge([name] if not job.decided else [])
        return job

    def find(
        self, states: Sequence[State] = (), limit: int = 50, cursor: str | None = None
    ) -> Page:
        """See the port. The cursor is the (submitted, name) of the last job shown."""
        jobs: list[Job] = []
        last: ListEntry | None = None
        for entry in self._core.lister.newest(states, cursor):
            if not self._visible(entry.subject):
                continue
            if last is not None and len(jobs) == limit:
                break
            job = entry.job()
            if job is None or (states and job.state not in states):  # it changed just now
                continue
            jobs.append(_for_reader(job, entry.subject, self._caller.workspace))
            last = entry
        else:
            last = None
        self._nudge([job.name for job in jobs if not job.decided])
        return Page(jobs, last.age if last is not None else None)

    def logs(self, name: str, offset: int = 0) -> Text:
        """See the port."""
        directory, final = self._journals(name)
        return read_text(directory, offset, final=final)

    def journal(self, name: str, offset: int = 0) -> Records:
        """See the port."""
        directory, final = self._journals(name)
        return read_records(directory, offset, final=final)

    def notebook(self, name: str) -> BinaryIO:
        """See the port."""
        exchange = self._core.exchange
        self._mine(name)
        raise_if_cleared(exchange, name)
        number = find_delivered_attempt(exchange, name)
        if number is not None:
            result = exchange.open(name, f"attempt-{number}/{layout.RESULT}")
            if result is not None:
                return result
            raise_if_cleared(exchange, name)  # it went just now: what is left is not all there was
        numbers = layout.attempts(exchange.directory(name))
        if numbers:
            so_far = partial_notebook(exchange.directory(name), numbers[-1])
            if so_far is not None:
                return so_far
        raise NotFound(f"{name} has no result yet.", "Wait until it has begun.")

    def flavors(self) -> dict[str, Any]:
        """See the port."""
        core = self._core
        return describe(core.catalog(), self._caller.groups, core.backend.resources())

    def changes(self) -> Iterator[Job | Deleted | None]:
        """See the port: looks at active jobs every `ChangeFeed.interval` seconds."""
        core = self._core
        watch = ChangeFeed(core.exchange, core.lister, core.reader)
        last: dict[str, Job] = {}
        first, nudged = True, 0.0
        while True:
            active = []
            for request, seen in watch.poll():
                if not self._visible(request):
                    continue
                job = _for_reader(seen, request, self._caller.workspace)
                settled = job.decided and job.delivery.state is not DeliveryState.HELD
                if last.get(job.name) != job and not (first and settled):
                    yield job
                last[job.name] = job
                if settled:
                    del last[job.name]
                elif not job.decided:
                    active.append(job.name)
            for name, whose in watch.deleted:
                last.pop(name, None)
                if self._visible(whose):
                    yield Deleted(name)
            if time.monotonic() - nudged > WAKE_INTERVAL:
                nudged = time.monotonic()
                self._nudge(active)
            first = False
            yield None
            time.sleep(watch.interval)

    # Acting ---------------------------------------------------------------------------------

    def cancel(self, name: str) -> Job:
        """See the port."""
        if not self.get(name).state.final:
            wish = {"time": times.now(), "who": self._caller.owner}
            self._core.exchange.write_once(name, layout.CANCEL, wish)
            self._core.backend.notify(name)
        return self.get(name)

    def delete(self, name: str) -> None:
        """See the port. Whoever ends a running job removes what is left; nobody sees it now."""
        core, wish = self._core, {"time": times.now(), "who": self._caller.owner}
        if self.get(name).state.final:
            core.exchange.remove(name)
            return
        request = core.exchange.request(name)
        core.exchange.write_once(name, layout.CANCEL, wish)
        core.exchange.write_once(name, layout.DELETE, wish)
        core.backend.notify(name)
        # It may have ended before it was wished away: then nobody looks at the wish any more.
        with contextlib.suppress(NotFound, FileNotFoundError):
            if core.reader.job(request, Placement()).decided:
                core.exchange.remove(name)

    def deliver(self, name: str) -> Job:
        """See the port."""
        self._mine(name)
        deliver(self._core.exchange, name)
        return self.get(name)

    # Inside ---------------------------------------------------------------------------------

    def _look(self, request: Request) -> Job:
        core, name, placement = self._core, request.name, Placement()
        if not core.reader.has_attempt(name):
            placement = core.backend.queue_status(core.lister.waiting_requests(request)).get(
                name, placement
            )
        return _for_reader(core.reader.job(request, placement), request, self._caller.workspace)

    def _nudge(self, active: Collection[str]) -> None:
        """See that somebody works on active jobs: whoever did may be dead.

        They are still there if nobody can now.
        """
        for name in active if self.nudges else ():
            with contextlib.suppress(NotFound, Unavailable):
                self._core.backend.notify(name)

    def _mine(self, name: str) -> Request:
        return self._seen(self._core.exchange.request(name))

    def _seen(self, request: Request) -> Request:
        """Return the request if the caller may see its job. Raises NotFound."""
        if not self._visible(request) or self._core.reader.is_deleted(request.name):
            raise NotFound(f"There is no job {request.name!r}.", "See `jupyter-to-job list --all`.")
        return request

    def _visible(self, request: Request | IndexRow | JobOwner) -> bool:
        if request.owner != self._caller.owner:
            return False
        return not self._only_inside or request.source.startswith(self._inside)

    def _intake(self) -> SubmissionService:
        core = self._core
        return SubmissionService(core.exchange, core.backend, core.catalog(), core.output_cap)

    def _journals(self, name: str) -> tuple[Path, bool]:
        """Return where the job's runs are, and whether it has ended. Raises Cleared."""
        job = self.get(name)
        raise_if_cleared(self._core.exchange, name)
        return self._core.exchange.directory(name), job.state.final


def _workspace_of(caller: Caller) -> Workspace:
    return Workspace(Path(caller.workspace), [Path(root) for root in caller.roots])


def _for_reader(job: Job, request: Request | IndexRow, workspace: str) -> Job:
    """Make the job's paths relative to the reader's workspace: `../` leads out of it."""
    if request.workspace == workspace:
        return job

    def seen(path: str) -> str:
        return posixpath.relpath(posixpath.join(request.workspace, path), workspace)

    delivery = job.delivery
    if delivery.path is not None:
        delivery = replace(delivery, path=seen(delivery.path))
    return replace(job, notebook=seen(job.notebook), delivery=delivery)
