"""The one feed of the controller: finds out which jobs changed, and tells their owners' streams.

Whatever is written to a job passes through this process, which marks the job. One task looks at the
marked jobs, each at most `MAX_EVENTS` times a second, and gives what changed to the streams of the
job's owner. So the work grows with what happens to jobs that somebody watches: not with the number
of jobs, and hardly with that of streams. A look at all jobs, every `FULL_LOOK_INTERVAL` seconds,
finds what nobody marked.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from itertools import islice

from ...backends.kubernetes.records import Manifest
from ...domain.errors import JobsError, NotFound, Unavailable
from ...domain.job import DeliveryState
from ...domain.reasons import DAMAGED
from ...service.jobs import ServiceContext, with_paths_for
from ..callers.volumes import JobOrigins
from .event_queue import EventQueue
from .job_event import JobEvent

MAX_EVENTS = 4
"""Looks at one job in a second, and so events of it. Its final state is always looked at."""
LOOK_INTERVAL = 1 / MAX_EVENTS
PASS_INTERVAL = 0.05
"""Seconds between two passes: what is marked meanwhile is looked at, and sent, together."""
MAX_LOOKS = 100
"""Jobs that one pass looks at: somebody's thousand jobs keep others waiting for a moment only."""
FULL_LOOK_INTERVAL = 30.0
"""Seconds after which a change that nobody marked is seen."""
RETRY_INTERVAL = 1.0
"""Seconds to wait after an error that was nobody's job's."""
MAX_STREAMS = 200
"""Event streams of one owner."""
WORKSPACE = "/"
"""Clients of a gateway send and get absolute paths without the leading slash."""
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class _Look:
    """What a look at a job found: a job that is gone, or is being deleted, has no `owner`."""

    name: str
    owner: str | None = None
    event: JobEvent | None = None
    is_settled: bool = False


@dataclass
class _Owner:
    """The streams of one owner, and the latest event of each open job.

    A job is open until its delivery is decided, and while that is held. It has no event while no
    stream is about the job: then nobody looks at it.
    """

    streams: set[EventQueue] = field(default_factory=set)
    open_jobs: dict[str, JobEvent | None] = field(default_factory=dict)

    def watches(self, job: str) -> bool:
        """Tell whether a stream is about the job."""
        return any(stream.wants(job) for stream in self.streams)

    def tell(self, job: str, event: JobEvent) -> None:
        """Give an event to the streams that are about its job."""
        for stream in self.streams:
            stream.put(job, event)


class GatewayFeed:
    """Fans out the changes of jobs by owner. Call its methods on the event loop only."""

    def __init__(
        self, context: ServiceContext, full_look_interval: float = FULL_LOOK_INTERVAL
    ) -> None:
        self._context = context
        self._origins = JobOrigins(context.exchange)
        self._full_look_interval = full_look_interval
        self._owner_of: dict[str, str] = {}
        """The owner's name of each job: it tells who hears that the job was deleted."""
        self._owners: defaultdict[str, _Owner] = defaultdict(_Owner)
        self._marks: dict[str, bool] = {}
        """Jobs to look at, the first of them first, and whether something happened to them.

        Otherwise somebody began to watch them, or wants to be sure.
        """
        self._due_at: dict[str, float] = {}
        """When a job that was looked at a moment ago may be looked at again."""
        self._has_marks = asyncio.Event()
        self._unindexed: set[str] = set()
        """Jobs that settled here, and have no row in the index yet, for estimates and lists."""

    def mark(self, job: str) -> None:
        """Have a job looked at, if somebody is watching it: its directory or its pod changed."""
        owner = self._owner_of.get(job)
        if owner is None or self._owners[owner].watches(job):
            self._marks[job] = True
            self._has_marks.set()

    def clients(self) -> int:
        """Return how many streams are open."""
        return sum(len(owner.streams) for owner in self._owners.values())

    def is_watched(self, job: str) -> bool:
        """Tell whether a stream is about the job, as far as its owner is known yet."""
        owner = self._owner_of.get(job)
        return owner is not None and self._owners[owner].watches(job)

    @contextmanager
    def subscribe(
        self, owner: str, origin: Manifest, jobs: Collection[str] | None = None
    ) -> Iterator[EventQueue]:
        """Yield a queue of events: first of all open jobs of the owner, then of those that change.

        `origin` is the origin.json of the dev pod that reads it. With `jobs` it has the events of
        these alone. Raises Unavailable over `MAX_STREAMS`.
        """
        watching = self._owners[owner]
        if len(watching.streams) >= MAX_STREAMS:
            message = f"{owner} has {MAX_STREAMS} event streams open already."
            raise Unavailable(message, "Close some of them.")
        stream = EventQueue(origin, jobs)
        watching.streams.add(stream)
        for job, event in watching.open_jobs.items():
            if event:
                stream.put(job, event)
            elif stream.wants(job):
                self._marks.setdefault(job, False)
        self._has_marks.set()
        try:
            yield stream
        finally:
            watching.streams.discard(stream)
            unwatched = [job for job in watching.open_jobs if not watching.watches(job)]
            watching.open_jobs.update(dict.fromkeys(unwatched))

    async def run(self) -> None:
        """Look at jobs for ever. An error of a moment does not end it."""
        with ThreadPoolExecutor(1, thread_name_prefix="feed") as pool:
            full_look_at = 0.0
            while True:
                try:
                    if time.monotonic() >= full_look_at:
                        await (self._look_at_all(pool) if full_look_at else self._begin(pool))
                        full_look_at = time.monotonic() + self._full_look_interval
                    await self._look_at_marked(pool)
                except Exception:
                    _log.exception("the feed of jobs goes on after an error")
                    await asyncio.sleep(RETRY_INTERVAL)
                await asyncio.sleep(PASS_INTERVAL)
                await self._wait_for_marks(full_look_at)

    async def _wait_for_marks(self, full_look_at: float) -> None:
        """Wait until a job is marked, a marked one is due, or all are to be looked at."""
        self._has_marks.clear()
        due_at = (self._due_at.get(job, 0.0) for job in self._marks)
        timeout = max(0.0, min(due_at, default=full_look_at) - time.monotonic())
        with suppress(asyncio.TimeoutError):
            await asyncio.wait_for(self._has_marks.wait(), timeout)

    async def _look_at_marked(self, pool: Executor) -> None:
        """Look at the marked jobs whose turn it is, and tell their owners what changed."""
        moment = time.monotonic()
        self._due_at = {job: at for job, at in self._due_at.items() if at > moment}
        names = list(islice((job for job in self._marks if job not in self._due_at), MAX_LOOKS))
        due = {name: self._marks.pop(name) for name in names}
        self._due_at.update(dict.fromkeys(due, moment + LOOK_INTERVAL))
        if due:
            loop = asyncio.get_running_loop()
            for look in await loop.run_in_executor(pool, self._look, names):
                self._take(look, is_change=due[look.name])

    def _look(self, names: Iterable[str]) -> list[_Look]:
        """Look at jobs, in a thread. One that cannot be read is left to the next full look."""
        looks = []
        for name in names:
            try:
                looks.append(self._look_at(name))
            except JobsError as error:
                _log.warning("%s cannot be looked at: %s", name, error)
            except Exception:  # one job must not keep the feed from the others
                _log.exception("%s cannot be looked at", name)
        return looks

    def _look_at(self, name: str) -> _Look:
        reader = self._context.reader
        try:
            request = self._context.exchange.find_request(name)
            job = with_paths_for(self._context.read_job(request), request, WORKSPACE)
            event = JobEvent.of(job, request, self._origins)
        except NotFound:
            reader.forget(name)
            return _Look(name)
        is_held, is_damaged = job.delivery.state is DeliveryState.HELD, job.reason == DAMAGED
        is_deleted, is_settled = reader.is_deleted(name), job.decided and not is_held
        if is_deleted or is_settled:
            reader.forget(name)
        if is_deleted:
            return _Look(name)
        # A damaged job stays open: a document of it may be mended by hand.
        return _Look(name, request.owner, event, is_settled and not is_damaged)

    def _take(self, look: _Look, *, is_change: bool) -> None:
        """Tell the job's owner what a look found, if that is new."""
        name, previous_owner = look.name, self._owner_of.get(look.name)
        if previous_owner is not None and look.owner != previous_owner:
            self._forget(name)
        if look.owner is None or look.event is None:
            return
        self._owner_of[name] = look.owner
        owner = self._owners[look.owner]
        was_settled = previous_owner is not None and name not in owner.open_jobs
        previous = owner.open_jobs.pop(name, None)
        if look.is_settled:
            # Nobody needs to hear of a job that had settled before anybody was watching it.
            is_news = not was_settled and (is_change or previous is not None)
            if not was_settled:
                self._unindexed.add(name)
        else:
            is_news = look.event != previous
            owner.open_jobs[name] = look.event if owner.watches(name) else None
        if is_news:
            owner.tell(name, look.event)

    def _forget(self, name: str) -> None:
        """Tell the owner of a job that it was deleted."""
        owner = self._owners[self._owner_of.pop(name)]
        owner.open_jobs.pop(name, None)
        owner.tell(name, JobEvent.deleted(name))

    async def _begin(self, pool: Executor) -> None:
        """Find out whose the jobs are, and which are open. Streams may be waiting already."""
        settled, unsettled = await asyncio.get_running_loop().run_in_executor(pool, self._survey)
        self._owner_of.update(settled | unsettled)
        for name, owner in unsettled.items():
            self._owners[owner].open_jobs[name] = None
            if self._owners[owner].watches(name):
                self._marks.setdefault(name, False)

    def _survey(self) -> tuple[dict[str, str], dict[str, str]]:
        """Return the owners of the jobs that the index knows to be settled, and of the others."""
        names, lister = self._context.exchange.jobs(), self._context.lister
        rows = lister.settled_rows(names)
        held_names = {
            name for name, row in rows.items() if row.delivery == DeliveryState.HELD.value
        }
        settled = {name: row.owner for name, row in rows.items() if name not in held_names}
        unsettled = lister.read_requests(names - settled.keys())
        return settled, {request.name: request.owner for request in unsettled}

    def _index(self, names: Collection[str]) -> set[str]:
        """Give settled jobs their rows; return those that have one. One just written waits."""
        lister = self._context.lister
        lister.read_jobs(lister.read_requests(names), {})
        return set(lister.settled_rows(names))

    async def _look_at_all(self, pool: Executor) -> None:
        """Mark the jobs that may have changed without a mark, and forget those that are gone."""
        loop = asyncio.get_running_loop()
        names = await loop.run_in_executor(pool, self._context.exchange.jobs)
        for name in self._owner_of.keys() - names:
            self._forget(name)
        self._marks.update(dict.fromkeys(names - self._owner_of.keys(), True))
        self._unindexed &= names
        if self._unindexed:
            waiting = frozenset(self._unindexed)
            self._unindexed -= await loop.run_in_executor(pool, self._index, waiting)
        for owner_name, owner in self._owners.items():
            for name in owner.open_jobs:
                # Without an owner's name the request could not be read: it may be mended by now.
                if not owner_name or owner.watches(name):
                    self._marks.setdefault(name, False)
