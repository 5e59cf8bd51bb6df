"""Notices what becomes of each job, and counts it: the source of the metrics and events of jobs.

The reconciler reads a job's documents whenever something happened to it, and shows them here. So
this costs no read of its own, and what happened between two looks counts as one change. A job that
had ended before this process began is counted among the jobs, and nothing is told of it.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from typing import Any

from job_runner.protocol import times
from job_runner.protocol.outcome import Outcome

from ..domain.job import DeliveryState, State
from ..domain.reasons import GROUP_LIMIT, REASONS
from ..exchange import Request
from ..exchange.records import ClusterJob
from .cluster_events import DELIVER, END, FAIL, HOLD, Tell
from .metrics import Metrics

WAITING = (State.QUEUED, State.STARTING)
OF_CLUSTER = ("BackendError", "ImageUnavailable", "RunnerMissing", "NodeLost", "Lost", "Evicted")
"""Reasons of which an alert of k8s/monitoring tells when many jobs end with them."""
OTHER = "Other"
"""Stands for reasons that are not ours: an outcome comes from a pod that a notebook shares."""


@dataclass(frozen=True)
class TrackedJob:
    """A job at one moment. `job` is its Job on record; `outcomes` are those of its attempts."""

    request: Request
    job: ClusterJob | None
    state: State
    reason: str | None
    delivery: DeliveryState
    ended_at: float | None
    outcomes: tuple[Outcome, ...]


@dataclass(frozen=True)
class _Known:
    """What is remembered of a job. Times are unix times.

    `waiting_since` is when it was submitted, or when the run ended that it waits to repeat.
    """

    state: State
    reason: str
    delivery: DeliveryState
    waiting_since: float
    ended_at: float | None
    has_run: bool


class JobTracker:
    """The present state of each job. Call its methods on the event loop only.

    `tell` makes an event of a Job on the cluster.
    """

    def __init__(
        self,
        metrics: Metrics,
        tell: Tell = lambda *_: None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.metrics = metrics
        self._tell = tell
        self._clock = clock
        self._jobs: dict[str, _Known] = {}
        for state in State:
            metrics.jobs.labels(state.value, "")
        for delivery in DeliveryState:
            metrics.deliveries.labels(delivery.value)
        metrics.oldest_waiting.set_function(self._oldest_waiting)
        metrics.oldest_delivery.set_function(self._oldest_delivery)

    def knows(self, name: str) -> bool:
        """Tell whether a job was shown before."""
        return name in self._jobs

    def see(self, name: str, sight: TrackedJob) -> None:
        """Take in how a job stands, and tell of what has changed since the last time."""
        before = self._jobs.get(name)
        now = _Known(
            sight.state,
            _label_of(sight.reason),
            sight.delivery,
            _waiting_since(sight),
            sight.ended_at,
            has_run=_has_run(sight) or (before is not None and before.has_run),
        )
        self._count(before, -1)
        self._count(now, 1)
        self._jobs[name] = now
        if before is None:
            self._prepare(sight.request)
        if before is None or before == now:
            return
        if before.state in WAITING and not before.has_run:
            self._start(now, sight)
        if now.state.final and not before.state.final:
            self._end(now, sight)
        if now.delivery is not before.delivery:
            self._deliver(now, sight)

    def forget(self, name: str) -> None:
        """Forget a job that is gone."""
        self._count(self._jobs.pop(name, None), -1)

    def keep(self, names: Collection[str]) -> None:
        """Forget all jobs but these: somebody may have removed their directories."""
        for name in self._jobs.keys() - names:
            self.forget(name)

    def give_up(self, job: ClusterJob | None, cause: str, message: str) -> None:
        """Tell that a job is being ended whose run has not begun, and the cause in a word."""
        if job is not None:
            self._tell(job, FAIL, cause, message)

    def _prepare(self, request: Request) -> None:
        """Begin the counters of an alert at 0: Prometheus sees no rise of one that is new."""
        for reason in OF_CLUSTER:
            self.metrics.ended.labels(State.FAILED.value, reason, request.flavor, request.device)

    def _count(self, known: _Known | None, change: int) -> None:
        if known is not None:
            self.metrics.jobs.labels(known.state.value, known.reason).inc(change)
            if known.state.final:
                self.metrics.deliveries.labels(known.delivery.value).inc(change)

    def _start(self, now: _Known, seen: TrackedJob) -> None:
        """Measure how long a job has waited, once it runs, or has run meanwhile."""
        submitted = _unix_time(seen.request.submitted)
        waited = max(0.0, self._clock() - submitted)
        begun = [_unix_time(o.started) for o in seen.outcomes if o.started is not None]
        if begun:
            waited = min(waited, max(0.0, min(begun) - submitted))
        if now.has_run:
            self.metrics.waiting.labels(seen.request.device).observe(waited)

    def _end(self, now: _Known, seen: TrackedJob) -> None:
        metrics, request = self.metrics, seen.request
        metrics.ended.labels(now.state.value, now.reason, request.flavor, request.device).inc()
        longest = max(0.0, self._clock() - _unix_time(request.submitted))
        for outcome in seen.outcomes:
            seconds = _seconds_of(outcome, longest)
            if seconds is None:
                continue
            metrics.running.labels(request.device).observe(seconds)
            units = units_of(request)
            if units:
                used = seconds * _utilisation(outcome.usage)
                metrics.gpu_given.labels(request.device).inc(units * seconds)
                metrics.gpu_used.labels(request.device).inc(units * used)
        if seen.job is not None:
            self._tell_end(seen.job, now)

    def _tell_end(self, job: ClusterJob, now: _Known) -> None:
        """Tell of an end. The job's message may quote the notebook, so it stays out."""
        more = f"`jupyter-to-job show {job.name}` says more."
        if now.state is State.CANCELLED:
            self._tell(job, END, "Cancelled", "The job was cancelled.")
        elif now.state is State.FAILED:
            self._tell(job, FAIL, "JobFailed", f"{now.reason}: {more}")

    def _deliver(self, now: _Known, seen: TrackedJob) -> None:
        if now.delivery is DeliveryState.DELIVERED and now.ended_at is not None:
            self.metrics.delivery.observe(max(0.0, self._clock() - now.ended_at))
        if seen.job is None:
            return
        more = f"`jupyter-to-job show {seen.job.name}` says why."
        if now.delivery is DeliveryState.DELIVERED:
            note = "The result is in the workspace."
            self._tell(seen.job, DELIVER, "Delivered", note)
        elif now.delivery is DeliveryState.HELD:
            note = f"The result could not be published yet: {more}"
            self._tell(seen.job, HOLD, "DeliveryHeld", note)
        elif now.delivery is DeliveryState.FAILED:
            note = f"The result cannot be published: {more}"
            self._tell(seen.job, FAIL, "DeliveryFailed", note)

    def _oldest_waiting(self) -> float:
        """Return how long the oldest job has waited that its own group does not hold back."""
        return self._age(
            job.waiting_since
            for job in self._jobs.values()
            if job.state in WAITING and job.reason != GROUP_LIMIT
        )

    def _oldest_delivery(self) -> float:
        open_states = (DeliveryState.PENDING, DeliveryState.HELD)
        return self._age(
            job.ended_at
            for job in self._jobs.values()
            if job.ended_at is not None and job.state.final and job.delivery in open_states
        )

    def _age(self, moments: Iterable[float]) -> float:
        """Return how long ago the earliest of some moments was, 0 without any."""
        return max(0.0, self._clock() - min(moments, default=math.inf))


def _has_run(seen: TrackedJob) -> bool:
    return seen.state is State.RUNNING or any(o.started is not None for o in seen.outcomes)


def _waiting_since(seen: TrackedJob) -> float:
    moments = [seen.request.submitted, *(o.finished for o in seen.outcomes)]
    return max(map(_unix_time, moments))


def _unix_time(text: str) -> float:
    return times.parse(text).timestamp()


def _label_of(reason: str | None) -> str:
    return "" if reason is None else reason if reason in REASONS else OTHER


def _seconds_of(outcome: Outcome, longest: float) -> float | None:
    """Return how long a run took; None if it never began. No run was longer than its job."""
    if outcome.started is None:
        return None
    begun, ended = times.parse(outcome.started), times.parse(outcome.finished)
    return min(max(0.0, (ended - begun).total_seconds()), longest)


def _utilisation(usage: dict[str, Any]) -> float:
    """Return the mean share of its GPUs that a run used: what a pod says may be anything."""
    share = usage.get("gpu_utilisation_mean")
    if isinstance(share, bool) or not isinstance(share, int | float) or math.isnan(share):
        return 0.0
    return min(max(0.0, share), 1.0)


def units_of(request: Request) -> int:
    """Return how many units of its device a job has: `gpus`, one share, or none."""
    if request.device_spec.get("resource"):
        return int(request.flavor_spec.get("gpus", 0))
    return 1 if request.device_spec.get("limits") else 0
