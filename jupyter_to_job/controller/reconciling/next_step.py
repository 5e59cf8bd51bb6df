"""What is to be done next for one job: a pure function of its observation.

The reconciler looks, asks here, takes the step, and looks again. A step may be taken twice.
"""

from __future__ import annotations

from dataclasses import dataclass

from ...backends.kubernetes import JobRecord, PodRecord
from ...domain.job import State
from ...domain.state import AttemptStatus, deciding_attempt
from ...exchange.records import ClusterJob
from .pod_failures import disruption_of, failure_of, has_run

Ending = tuple[str, str]
"""Reason and message."""
CANCELLED: Ending = ("Terminated", "The job was cancelled.")
_JOB_DELETED = (
    "The Job was deleted by hand, or a day after its end while the controller did not run"
)
_DELETED = f"{_JOB_DELETED}; what it had printed is kept."
_DELETED_BEFORE = f"{_JOB_DELETED}; its run had not begun."


@dataclass(frozen=True)
class AttemptObservation:
    """An attempt: its status for readers, the pod that claimed it, and which documents there are.

    `pod` is a uid. `was_sent`: its agent has sent an outcome, which comes with the result.
    `has_pod_end`: the cluster's word is recorded. A run that was told to stop has no end before.
    """

    status: AttemptStatus
    pod: str | None
    was_sent: bool = False
    has_outcome: bool = False
    has_pod_end: bool = False

    @property
    def number(self) -> int:
        """Its number, from 1."""
        return self.status.number

    @property
    def succeeded(self) -> bool:
        """Whether its run succeeded: then nothing else counts."""
        return self.status.ended is not None and self.status.ended.state is State.SUCCEEDED


@dataclass(frozen=True)
class JobObservation:
    """A job's directory and its objects on the cluster.

    `job` is job.json; `record` the Job with its uid, None once it is gone; `pods` are all that this
    Job is known to have made, the oldest first, also those that are gone. `waited`: why the pod has
    waited too long; `stop`: that this is on record, and the job is being ended.
    """

    cancelled: bool = False
    waited: Ending | None = None
    stop: Ending | None = None
    job: ClusterJob | None = None
    record: JobRecord | None = None
    pods: tuple[PodRecord, ...] = ()
    attempts: tuple[AttemptObservation, ...] = ()

    @property
    def ordered_end(self) -> Ending | None:
        """The end that was asked for: by a cancel, or by the controller itself."""
        return CANCELLED if self.cancelled else self.stop

    @property
    def has_ended(self) -> bool:
        """Whether the job has ended for its readers."""
        return deciding_attempt(tuple(attempt.status for attempt in self.attempts)) is not None

    @property
    def is_job_deleted(self) -> bool:
        """Whether the Job is gone, or goes when its pods are."""
        return self.job is not None and (self.record is None or self.record.deleting)

    @property
    def is_job_over(self) -> bool:
        """Whether the Job makes no pod any more: it has ended, or was deleted."""
        return self.is_job_deleted or (self.record is not None and self.record.finished)

    @property
    def living(self) -> list[PodRecord]:
        """The pods of which something runs, or will run."""
        return [pod for pod in self.pods if not pod.is_over]

    def pod_of(self, attempt: AttemptObservation) -> PodRecord | None:
        """Return the pod that claimed an attempt, None if no watch has told of it."""
        return next((pod for pod in self.pods if pod.uid == attempt.pod), None)

    def pods_after(self, pod: PodRecord | None) -> tuple[PodRecord, ...]:
        """Return the pods that are surely younger than one, or than one that no watch told of.

        The Job makes a pod when the one before has ended. So of those that have ended nobody knows
        whether the unknown pod came before or after them.
        """
        if pod is None:
            return tuple(other for other in self.pods if not (other.terminal or other.gone))
        return self.pods[self.pods.index(pod) + 1 :]


@dataclass(frozen=True)
class Wait:
    """Nothing is to be done until something changes."""


@dataclass(frozen=True)
class CreateJob:
    """Create the Job, and record its uid."""


@dataclass(frozen=True)
class DeletePod:
    """Tell a pod to end."""

    pod: PodRecord


@dataclass(frozen=True)
class DeleteJob:
    """Delete the Job, so that none of its pods starts."""

    job: ClusterJob


@dataclass(frozen=True)
class RecordStop:
    """Write stop.json: from then on the job is being ended."""

    reason: str
    message: str


@dataclass(frozen=True)
class RecordPodEnd:
    """Write an attempt's pod.json. `pod` is None where nobody saw how it ended."""

    attempt: AttemptObservation
    pod: PodRecord | None = None
    reason: str | None = None
    message: str | None = None
    retried: bool = False


@dataclass(frozen=True)
class EndAttempt:
    """Write result and outcome of an attempt that nobody else will end."""

    attempt: int
    reason: str
    message: str


Step = Wait | CreateJob | DeletePod | DeleteJob | RecordStop | RecordPodEnd | EndAttempt


def next_step(observation: JobObservation) -> Step:
    """Return the next step for a job that has not ended.

    A watch may lag, and a step cannot be taken back. So nothing is concluded from a missing record
    while the Job goes on: what happened shows when it has ended, or has made another pod.
    """
    for attempt in observation.attempts:
        if (step := _end_of(attempt, observation)) is not None:
            return step
    if observation.ordered_end is not None:
        return _end_by_order(observation, observation.ordered_end)
    if observation.job is None:
        return CreateJob()
    if observation.living:
        return _step_beside_pod(observation)
    is_last = bool(observation.pods) and observation.pods[-1].lost
    return _end_without_pod(observation) if is_last or observation.is_job_over else Wait()


def _step_beside_pod(observation: JobObservation) -> Step:
    """Return what is to be done while a pod lives.

    It waits too long, or its Job was deleted, or nobody else will end its agent. That was told to
    end before it could hear it, because the notebook's container, or one before it, had failed so
    soon; or it is never told to, because a container that is not ours runs on. It has nothing to
    send.
    """
    if observation.waited:
        return RecordStop(*observation.waited)
    going_on = [pod for pod in observation.living if not pod.deleting]
    if not observation.is_job_deleted:
        going_on = [pod for pod in going_on if pod.lingers and _must_be_ended(pod)]
    return DeletePod(going_on[0]) if going_on else Wait()


def _must_be_ended(pod: PodRecord) -> bool:
    return pod.has_foreign_containers or not has_run(pod)


def _end_of(
    attempt: AttemptObservation, observation: JobObservation
) -> RecordPodEnd | EndAttempt | None:
    """Return what is to be written of the end of an attempt; None if that is nothing, or not yet.

    pod.json comes before the outcome: a reader never sees an attempt as final that is retried.
    """
    if attempt.succeeded or (attempt.has_outcome and attempt.has_pod_end):
        return None
    if attempt.was_sent and not attempt.has_outcome:
        return EndAttempt(attempt.number, *failure_of(None))  # what was sent counts more
    if attempt.pod is None:  # no pod ever claimed it
        return _end_of_unclaimed(attempt, observation)
    pod = observation.pod_of(attempt)
    earlier = {other.pod for other in observation.attempts if other.number <= attempt.number}
    is_followed = any(other.uid not in earlier for other in observation.pods_after(pod))
    if pod is not None and not pod.is_over:
        return None
    is_last = pod is not None and (pod.lost or observation.ordered_end is not None)
    if not (is_followed or is_last or observation.is_job_over):
        return None
    if not attempt.has_pod_end:
        reason, message = _word_of_cluster(pod, observation)
        is_retried = is_followed and observation.ordered_end is None
        return RecordPodEnd(attempt, pod, reason, message, is_retried)
    end = observation.ordered_end if pod is None or pod.ended is None else None
    if end is None and pod is None and observation.is_job_deleted:
        end = ("Lost", _DELETED)
    return EndAttempt(attempt.number, *(end or failure_of(pod)))


def _end_of_unclaimed(
    attempt: AttemptObservation, observation: JobObservation
) -> RecordPodEnd | EndAttempt | None:
    """Return what is to be written of an attempt that no pod claimed: the controller began it."""
    if attempt.has_outcome:
        return RecordPodEnd(attempt)
    is_over = observation.is_job_over or observation.ordered_end is not None
    if not is_over or observation.living:  # an agent may be just claiming it
        return None
    return EndAttempt(attempt.number, *(observation.ordered_end or failure_of(None)))


def _word_of_cluster(
    pod: PodRecord | None, observation: JobObservation
) -> tuple[str | None, str | None]:
    """Return why the cluster, or somebody, ended a run. Of an end that was asked for: nothing."""
    if observation.cancelled:
        return None, None
    if observation.stop is not None:
        return observation.stop
    disruption = disruption_of(pod) if pod is not None else None
    if disruption is None and observation.is_job_deleted:
        return "Lost", _DELETED
    return disruption or (None, None)


def _end_by_order(observation: JobObservation, end: Ending) -> Step:
    """Return how to end a job: by its pod if a run may have begun, else by its Job."""
    scheduled = [pod for pod in observation.living if pod.scheduled]
    if scheduled and observation.cancelled:
        due = [pod for pod in scheduled if not pod.deleting]
        return DeletePod(due[0]) if due else Wait()
    if observation.job is not None and not observation.is_job_deleted:
        return DeleteJob(observation.job)
    if observation.living or any(not attempt.has_outcome for attempt in observation.attempts):
        return Wait()
    return EndAttempt(_next_number(observation), *end)


def _end_without_pod(observation: JobObservation) -> EndAttempt:
    """Return the end of a job whose Job is over, and whose last pod claimed no attempt."""
    number = _next_number(observation)
    if observation.is_job_deleted or observation.record is None:
        return EndAttempt(number, "Lost", _DELETED_BEFORE if number == 1 else _DELETED)
    if observation.pods:
        return EndAttempt(number, *failure_of(observation.pods[-1]))
    return EndAttempt(
        number, "BackendError", f"Kubernetes ended the Job: {observation.record.message}"
    )


def _next_number(observation: JobObservation) -> int:
    return max((attempt.number for attempt in observation.attempts), default=0) + 1
