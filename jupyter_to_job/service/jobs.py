"""The use cases over an exchange that this process reaches as files: local, and in the gateway."""

from __future__ import annotations

import contextlib
import posixpath
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import Any

from job_runner.protocol import fold, journal, layout

from ..backends.port import Backend
from ..domain import times
from ..domain.errors import Damaged, NotFound, Unavailable
from ..domain.job import DeliveryState, Job, State, Submission
from ..domain.state import Placement
from ..exchange import FileExchange, Request
from ..flavors import Catalog
from ..workspace import Frozen, freeze
from ..workspace.freeze import locate
from .catalog import describe
from .delivery import deliver, delivered_attempt
from .intake import Caller, Intake
from .port import Page, Text
from .view import View

TICK = 0.1
"""Seconds between two looks at active jobs: stats only, so cheap on a local disk."""
MAX_LOGS = 1 << 20
NUDGE = 1.0
"""Seconds between two calls for somebody to work on active jobs: whoever did may be dead."""


@dataclass
class Core:
    """What all callers of one process share."""

    exchange: FileExchange
    backend: Backend
    catalog: Callable[[], Catalog]
    view: View

    @classmethod
    def of(cls, exchange: FileExchange, backend: Backend, catalog: Callable[[], Catalog]) -> Core:
        """Build a core with a view of its own."""
        return cls(exchange, backend, catalog, View(exchange, backend.alive))


class JobService:
    """Implements `service.port.Jobs` for one caller. `only_inside` hides jobs of other roots."""

    pulls = False

    def __init__(self, core: Core, caller: Caller, *, only_inside: bool = False) -> None:
        self.backend = core.backend.name
        self._core = core
        self._caller = caller
        self._only_inside = only_inside

    # Submitting -----------------------------------------------------------------------------

    def submit(self, asked: Submission) -> tuple[Job, bool]:
        """See the port: freezes from the caller's workspace on this host."""
        root = Path(self._caller.workspace)
        if asked.output is not None:
            locate(root, asked.output)
        return self.accept(asked, freeze(root, asked.notebook, asked.inputs, asked.expected_sha256))

    def accept(self, asked: Submission, frozen: Frozen) -> tuple[Job, bool]:
        """Record what was frozen already (a gateway gets it as blobs) and get it started."""
        core = self._core
        intake = Intake(core.exchange, core.backend, core.catalog())
        name, created = intake.accept(asked, frozen, self._caller)
        core.backend.changed(name)
        return self.get(name), created

    # Looking --------------------------------------------------------------------------------

    def get(self, name: str) -> Job:
        """See the port."""
        return self._job(self._mine(name), _Line(self._core))

    def find(
        self, states: Sequence[State] = (), limit: int = 50, cursor: str | None = None
    ) -> Page:
        """See the port. The cursor is the (submitted, name) of the last job shown."""
        requests = sorted(self._requests(), key=_age, reverse=True)
        jobs: list[Job] = []
        line = _Line(self._core)
        for request in requests:
            if cursor is not None and _age(request) >= cursor:
                continue
            try:
                job = self._job(request, line)
            except (NotFound, Damaged):  # deleted between the two looks, or not readable
                continue
            if not states or job.state in states:
                if len(jobs) == limit:
                    return Page(jobs, f"{jobs[-1].submitted} {jobs[-1].name}")
                jobs.append(job)
        return Page(jobs)

    def logs(self, name: str, offset: int = 0) -> Text:
        """See the port: about `MAX_LOGS` bytes of the journal at a time, in whole records."""
        job = self.get(name)
        records: list[journal.Record] = []
        at, limit = 0, offset + MAX_LOGS
        for number in layout.attempts(self._core.exchange.directory(name)):
            directory = layout.attempt_dir(self._core.exchange.directory(name), number)
            path = directory / layout.JOURNAL
            size = journal.journal_size(path)
            if offset < at + size:
                for entry in journal.read_journal(path, max(0, offset - at)):
                    if offset >= limit:
                        return Text("".join(fold.log_text(records)), offset, end=False)
                    records.append(entry.record)
                    offset = at + entry.end
            at += size
        return Text("".join(fold.log_text(records)), offset, job.state.final)

    def notebook(self, name: str) -> bytes:
        """See the port."""
        exchange = self._core.exchange
        self._mine(name)
        number = delivered_attempt(exchange, name)
        if number is not None:
            data = exchange.read(name, f"attempt-{number}/{layout.RESULT}")
            if data is not None:
                return data
        raise NotFound(f"{name} has no result yet.", "Wait until it has ended.")

    def flavors(self) -> dict[str, Any]:
        """See the port."""
        return describe(self._core.catalog(), self._caller.groups)

    def changes(self) -> Iterator[Job | None]:
        """See the port: looks at active jobs every `TICK` seconds."""
        settled: set[str] = set()
        last: dict[str, Job] = {}
        first, nudged = True, 0.0
        while True:
            active = []
            line = _Line(self._core)
            for request in self._requests(settled):
                try:
                    job = self._job(request, line)
                except (NotFound, Damaged):  # deleted between the two looks, or not readable
                    continue
                if not job.decided:
                    active.append(job.name)
                elif job.delivery.state is not DeliveryState.HELD:
                    settled.add(job.name)
                    self._core.view.forget(job.name)
                if last.get(job.name) != job and not (first and job.decided):
                    yield job
                last[job.name] = job
            if time.monotonic() - nudged > NUDGE:
                nudged = time.monotonic()
                self._nudge(active)
            first = False
            yield None
            time.sleep(TICK)

    # Acting ---------------------------------------------------------------------------------

    def cancel(self, name: str) -> Job:
        """See the port."""
        if not self.get(name).state.final:
            wish = {"time": times.now(), "who": self._caller.owner}
            self._core.exchange.write_once(name, layout.CANCEL, wish)
            self._core.backend.changed(name)
        return self.get(name)

    def delete(self, name: str) -> None:
        """See the port. A running job is wished away; whoever ends it removes it."""
        wish = {"time": times.now(), "who": self._caller.owner}
        if self.get(name).state.final:
            self._core.exchange.remove(name)
            return
        self._core.exchange.write_once(name, layout.DELETE, wish)
        self._core.exchange.write_once(name, layout.CANCEL, wish)
        self._core.backend.changed(name)
        # It may have ended before it was wished away: then nobody looks at the wish any more.
        with contextlib.suppress(NotFound, FileNotFoundError):
            if self.get(name).decided:
                self._core.exchange.remove(name)

    def deliver(self, name: str) -> Job:
        """See the port."""
        self._mine(name)
        deliver(self._core.exchange, name)
        return self.get(name)

    # Inside ---------------------------------------------------------------------------------

    def _nudge(self, active: Collection[str]) -> None:
        """See that somebody works on active jobs; they are still there if nobody can now."""
        for name in active:
            with contextlib.suppress(NotFound, Unavailable):
                self._core.backend.changed(name)

    def _mine(self, name: str) -> Request:
        request = self._core.exchange.request(name)
        if not self._visible(request):
            raise NotFound(f"There is no job {name!r}.", "See `jupyter-to-job list --all`.")
        return request

    def _visible(self, request: Request) -> bool:
        if request.owner != self._caller.owner:
            return False
        inside = PurePosixPath(request.source).is_relative_to(self._caller.workspace)
        return inside or not self._only_inside

    def _requests(self, skip: set[str] | None = None) -> list[Request]:
        """Return the requests of all jobs that are the caller's, but for those in `skip`.

        Somebody else's jobs are put there: whose a job is never changes.
        """
        skip = set() if skip is None else skip
        found = []
        for name in self._core.exchange.jobs():
            if name not in skip:
                try:
                    request = self._core.exchange.request(name)
                except (NotFound, Damaged):
                    continue
                if self._visible(request):
                    found.append(request)
                else:
                    skip.add(name)
        return found

    def _job(self, request: Request, line: _Line) -> Job:
        core, placement = self._core, Placement()
        if not layout.attempts(core.exchange.root / request.name):
            placement = line.placement(request.name)
        return _for_reader(core.view.job(request, placement), request, self._caller.workspace)


class _Line:
    """Where waiting jobs stand: asked of the backend at most once in a pass over many jobs."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._known: Mapping[str, Placement] | None = None

    def placement(self, name: str) -> Placement:
        """Return what is known of a job that has no attempt."""
        if self._known is None:
            waiting = self._core.view.requests_without_attempt()
            self._known = self._core.backend.placements(waiting)
        return self._known.get(name, Placement())


def _for_reader(job: Job, request: Request, workspace: str) -> Job:
    """Make the job's paths relative to the reader's workspace: `../` leads out of it."""
    if request.workspace == workspace:
        return job

    def seen(path: str) -> str:
        return posixpath.relpath(posixpath.join(request.workspace, path), workspace)

    delivery = job.delivery
    if delivery.path is not None:
        delivery = replace(delivery, path=seen(delivery.path))
    return replace(job, notebook=seen(job.notebook), delivery=delivery)


def _age(request: Request) -> str:
    return f"{request.submitted} {request.name}"
