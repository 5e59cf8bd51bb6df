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
OTHER_REASON = "Other"
"""Stands for reasons that are not ours: an outcome comes from a pod that a notebook shares."""


@dataclass(frozen=True)
class TrackedJob:
    """A job at one moment. `cluster_job` is its Job on record, `outcomes` are its attempts'."""

    request: Request
    cluster_job: ClusterJob | None
    state: State
    reason: str | None
    delivery: DeliveryState
    ended_at: float | None
    outcomes: tuple[Outcome, ...]


@dataclass(frozen=True)
class _JobSummary:
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
        self._jobs: dict[str, _JobSummary] = {}
        for state in State:
            metrics.jobs.labels(state.value, "")
        for delivery in DeliveryState:
            metrics.deliveries.labels(delivery.value)
        metrics.oldest_waiting.set_function(self._oldest_waiting)
        metrics.oldest_delivery.set_function(self._oldest_delivery)

    def knows(self, name: str) -> bool:
        """Tell whether a job was shown before."""
        return name in self._jobs

    def see(self, name: str, job: TrackedJob) -> None:
        """Take in how a job stands, and tell of what has changed since the last time."""
        previous = self._jobs.get(name)
        current = _JobSummary(
            job.state,
            _label_of(job.reason),
            job.delivery,
            _waiting_since(job),
            job.ended_at,
            has_run=_has_run(job) or (previous is not None and previous.has_run),
        )
        self._count(previous, -1)
        self._count(current, 1)
        self._jobs[name] = current
        if previous is None:
            self._prepare(job.request)
        if previous is None or previous == current:
            return
        if previous.state in WAITING and not previous.has_run:
            self._start(current, job)
        if current.state.final and not previous.state.final:
            self._end(current, job)
        if current.delivery is not previous.delivery:
            self._deliver(current, job)

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

    def _count(self, summary: _JobSummary | None, change: int) -> None:
        if summary is not None:
            self.metrics.jobs.labels(summary.state.value, summary.reason).inc(change)
            if summary.state.final:
                self.metrics.deliveries.labels(summary.delivery.value).inc(change)

    def _start(self, summary: _JobSummary, job: TrackedJob) -> None:
        """Measure how long a job has waited, once it runs, or has run meanwhile."""
        submitted = _unix_time(job.request.submitted)
        waited = max(0.0, self._clock() - submitted)
        begun = [_unix_time(o.started) for o in job.outcomes if o.started is not None]
        if begun:
            waited = min(waited, max(0.0, min(begun) - submitted))
        if summary.has_run:
            self.metrics.waiting.labels(job.request.device).observe(waited)

    def _end(self, summary: _JobSummary, job: TrackedJob) -> None:
        metrics, request = self.metrics, job.request
        metrics.ended.labels(
            summary.state.value, summary.reason, request.flavor, request.device
        ).inc()
        longest = max(0.0, self._clock() - _unix_time(request.submitted))
        for outcome in job.outcomes:
            seconds = _seconds_of(outcome, longest)
            if seconds is None:
                continue
            metrics.running.labels(request.device).observe(seconds)
            units = units_of(request)
            if units:
                used = seconds * _utilisation(outcome.usage)
                metrics.gpu_given.labels(request.device).inc(units * seconds)
                metrics.gpu_used.labels(request.device).inc(units * used)
        if job.cluster_job is not None:
            self._tell_end(job.cluster_job, summary)

    def _tell_end(self, job: ClusterJob, summary: _JobSummary) -> None:
        """Tell of an end. The job's message may quote the notebook, so it stays out."""
        more = f"`jupyter-to-job show {job.name}` says more."
        if summary.state is State.CANCELLED:
            self._tell(job, END, "Cancelled", "The job was cancelled.")
        elif summary.state is State.FAILED:
            self._tell(job, FAIL, "JobFailed", f"{summary.reason}: {more}")

    def _deliver(self, summary: _JobSummary, job: TrackedJob) -> None:
        if summary.delivery is DeliveryState.DELIVERED and summary.ended_at is not None:
            self.metrics.delivery.observe(max(0.0, self._clock() - summary.ended_at))
        if job.cluster_job is None:
            return
        more = f"`jupyter-to-job show {job.cluster_job.name}` says why."
        if summary.delivery is DeliveryState.DELIVERED:
            note = "The result is in the workspace."
            self._tell(job.cluster_job, DELIVER, "Delivered", note)
        elif summary.delivery is DeliveryState.HELD:
            note = f"The result could not be published yet: {more}"
            self._tell(job.cluster_job, HOLD, "DeliveryHeld", note)
        elif summary.delivery is DeliveryState.FAILED:
            note = f"The result cannot be published: {more}"
            self._tell(job.cluster_job, FAIL, "DeliveryFailed", note)

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


def _has_run(job: TrackedJob) -> bool:
    return job.state is State.RUNNING or any(o.started is not None for o in job.outcomes)


def _waiting_since(job: TrackedJob) -> float:
    moments = [job.request.submitted, *(o.finished for o in job.outcomes)]
    return max(map(_unix_time, moments))


def _unix_time(text: str) -> float:
    return times.parse(text).timestamp()


def _label_of(reason: str | None) -> str:
    return "" if reason is None else reason if reason in REASONS else OTHER_REASON


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
