"""What the reconciler shows of a job to those who count jobs: a pure function."""

from __future__ import annotations

from dataclasses import replace

from ...domain.state import AttemptStatus, Placement, compute_state
from ..job_tracker import TrackedJob
from .job_files import JobFiles
from .next_step import AttemptObservation, JobObservation


def tracked_job(
    files: JobFiles, observation: JobObservation, placement: Placement | None
) -> TrackedJob:
    """Return how a job stands. It runs from the moment when its container does.

    Readers say so from the first cell on; that moment is in the journal, which is not read here.
    """
    statuses = tuple(_status_of(attempt, observation) for attempt in files.attempts)
    cancelled_at = "" if files.cancelled else None
    status = compute_state(statuses, placement or Placement(), cancelled_at)
    return TrackedJob(
        request=files.request,
        cluster_job=observation.job,
        state=status.state,
        reason=status.reason,
        delivery=files.delivery,
        ended_at=files.ended_at,
        outcomes=files.outcomes,
    )


def _status_of(attempt: AttemptObservation, observation: JobObservation) -> AttemptStatus:
    pod = observation.pod_of(attempt)
    is_running = attempt.status.running or (pod is not None and pod.begun)
    return replace(attempt.status, running=is_running)
