"""Says of waiting jobs what they wait for, and estimates when they start.

The queue is played through some times with run times of earlier jobs. That is never promised: the
answer has a range, and the number of runs that it comes from.
"""

from __future__ import annotations

import math
import threading
import time
from collections import OrderedDict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone

from job_runner.protocol import times

from ...backends.port import Backend, QueueForecaster
from ...domain.errors import JobsError
from ...domain.job import Job, State
from ...domain.reasons import GROUP_LIMIT
from ...domain.state import Placement
from ...domain.wait import Estimate, JobWait
from ...exchange import FileExchange, Request
from .listing import JobLister
from .past_runs import SAMPLES, Draws, PastRuns
from .view import JobReader

MAX_QUEUE = 100
"""Jobs of a queue that are played through. Those behind them go on at the same pace."""
FORECAST_TTL = 5.0
"""Seconds for which a forecast and the earlier runs count: a page asks for many jobs at once."""
MAX_OWNERS = 100
"""Owners whose earlier runs are kept in memory."""
_NOWHERE = Placement()
_MAY_START = (None, GROUP_LIMIT)
"""The reasons of jobs that wait for their turn. Others are too large for ever."""


@dataclass(frozen=True)
class _Forecast:
    """The estimates of a host's queue, of its first jobs, and the places of all.

    `made_at` is when it was made, by `time.monotonic`; `waiting` are the jobs that waited then,
    also those that have no place; `back` is the queue key of the final job.
    """

    made_at: float
    waiting: Collection[str]
    places: Mapping[str, int]
    starts: Sequence[Estimate | None]
    back: tuple[int, str]

    def counts_for(self, request: Request, *, submitted: bool) -> bool:
        """Tell whether it says of a request what a new forecast would."""
        if time.monotonic() - self.made_at > FORECAST_TTL:
            return False
        return not submitted or request.name in self.waiting or self._place_of(request) is not None

    def _place_of(self, request: Request) -> int | None:
        """Return the place of a job; None if it has none.

        A job that came to the back of a long queue later has the place after the last one.
        """
        is_behind = len(self.places) >= MAX_QUEUE and request.queue_key > self.back
        return self.places.get(request.name, len(self.places) if is_behind else None)

    def start_of(self, request: Request) -> Estimate | None:
        """Return when a job starts; None if nobody knows."""
        place = self._place_of(request)
        return None if place is None else self.start_at(place)

    def start_at(self, place: int) -> Estimate | None:
        """Return when the job at a place starts."""
        if place < len(self.starts):
            return self.starts[place]
        last_start = self.starts[-1] if self.starts else None
        if last_start is None:
            return None
        pace = (place + 1) / len(self.starts)
        low, likely, high = (
            round(s * pace, 1) for s in (last_start.low, last_start.likely, last_start.high)
        )
        return Estimate(low, likely, high, last_start.runs)


@dataclass
class _OwnersRuns:
    """The earlier runs of an owner, and when they were read."""

    past: PastRuns = field(default_factory=PastRuns)
    read_at: float = -math.inf
    lock: threading.Lock = field(default_factory=threading.Lock)


@dataclass
class QueueForecasts:
    """Forecasts for one process. Several threads may use it."""

    exchange: FileExchange
    backend: Backend
    lister: JobLister
    reader: JobReader
    _owners: OrderedDict[str, _OwnersRuns] = field(default_factory=OrderedDict)
    _forecasts: dict[str, _Forecast] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _building: threading.Lock = field(default_factory=threading.Lock)

    def with_wait(self, job: Job, request: Request) -> Job:
        """Return a waiting job with what is known of its wait; others as they are."""
        backend = self.backend
        if job.state is not State.QUEUED or job.cancel_requested:
            return job
        past = self._past_of(request.owner)
        wait = JobWait(times.now(), run=past.estimate(request))
        if not isinstance(backend, QueueForecaster):
            return job if wait.run is None else replace(job, wait=wait)
        place = None if job.position is None else job.position - 1
        wait = replace(wait, needs=backend.needs(request), before=place)
        if job.reason in _MAY_START:
            start = self._forecast(request, past, submitted=True).start_of(request)
            wait = replace(wait, start=start)
        return replace(job, wait=wait)

    def of_trial(self, request: Request) -> JobWait:
        """Return what a job that is not submitted yet would wait for."""
        backend = self.backend
        past = self._past_of(request.owner)
        wait = JobWait(times.now(), run=past.estimate(request))
        if not isinstance(backend, QueueForecaster):
            return wait
        waiting = self._queue_of(request, self.lister.waiting_requests())
        place = sum(queued.queue_key < request.queue_key for queued in waiting)
        needs = backend.needs(request)
        if not place and not needs:
            return replace(wait, before=0)
        if place >= MAX_QUEUE:
            start = self._forecast(request, past, submitted=False).start_at(place)
        else:
            queue = [*waiting[:place], request]
            start = self._play(queue, past)[-1]
            if not needs and start is not None and start.high == 0:
                place = 0  # What waits there needs something else.
        return replace(wait, needs=needs, before=place, start=start)

    def _past_of(self, owner: str) -> PastRuns:
        """Return an owner's earlier runs. Reading them keeps no other owner waiting."""
        with self._lock:
            runs = self._owners.setdefault(owner, _OwnersRuns())
            self._owners.move_to_end(owner)
            if len(self._owners) > MAX_OWNERS:
                self._owners.popitem(last=False)
        with runs.lock:
            if time.monotonic() - runs.read_at > FORECAST_TTL:
                runs.past.update(self.lister.ended(owner))
                runs.read_at = time.monotonic()
        return runs.past

    def _forecast(self, request: Request, past: PastRuns, *, submitted: bool) -> _Forecast:
        """Return the forecast of a request's queue, a moment old perhaps.

        If the request is `submitted` and waits, the forecast has its place.
        """
        host = request.environment.host
        with self._building:
            forecast = self._forecasts.get(host)
            if forecast is not None and forecast.counts_for(request, submitted=submitted):
                return forecast
            waiting = self.lister.waiting_requests()
            # One that does not wait any more has no place, however often it is looked for.
            is_waiting = submitted and request.name in waiting
            if forecast is not None and forecast.counts_for(request, submitted=is_waiting):
                return forecast
            made_at = time.monotonic()
            queue = self._queue_of(request, waiting)
            places = {queued.name: place for place, queued in enumerate(queue)}
            starts = self._play(queue[:MAX_QUEUE], past)
            back = queue[-1].queue_key if queue else (0, "")
            forecast = _Forecast(made_at, frozenset(waiting), places, starts, back)
            self._forecasts[host] = forecast
            return forecast

    def _queue_of(self, request: Request, waiting: Mapping[str, Request]) -> list[Request]:
        """Return the jobs that wait on a job's host and may start at some time, next first."""
        placements = self.backend.queue_status(waiting)
        host = request.environment.host
        queue = [
            queued
            for name, queued in waiting.items()
            if queued.environment.host == host and _may_start(placements.get(name, _NOWHERE))
        ]
        return sorted(queue, key=lambda queued: queued.queue_key)

    def _play(self, queue: Sequence[Request], past: PastRuns) -> list[Estimate | None]:
        """Return the estimates of the first jobs of a queue."""
        backend = self.backend
        assert isinstance(backend, QueueForecaster)
        running: dict[str, tuple[Request, float] | None] = {}

        def elapsed(name: str) -> tuple[Request, float] | None:
            if name not in running:
                running[name] = self._running(name)
            return running[name]

        samples: list[list[float]] = [[] for _ in queue]
        runs = 0
        for number in range(SAMPLES):
            draws = Draws(past, number)

            def remaining(name: str, draws: Draws = draws) -> float | None:
                run = elapsed(name)
                return 0.0 if run is None else draws.remaining(*run)

            starts = backend.forecast(queue, draws.slot_time, remaining)
            for collected, start in zip(samples, starts, strict=True):
                if start is not None:
                    collected.append(start)
            runs = sum(draws.used.values())
        return [Estimate.of(s, runs) if len(s) == SAMPLES else None for s in samples]

    def _running(self, name: str) -> tuple[Request, float] | None:
        """Return a running job's request and for how many seconds it ran; None if it is gone."""
        try:
            request = self.exchange.find_request(name)
            job = self.reader.job(request, _NOWHERE)
        except JobsError:
            return None
        if job.started is None or job.state.final:
            return (request, 0.0) if not job.state.final else None
        span = datetime.now(timezone.utc) - times.parse(job.started)
        return request, max(span.total_seconds(), 0.0)


def _may_start(placement: Placement) -> bool:
    """Tell whether a job waits for its turn: it has no slot yet, and is not too large for ever."""
    return not placement.starting and placement.reason in _MAY_START
