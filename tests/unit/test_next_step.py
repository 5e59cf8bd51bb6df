"""What the reconciler does next, for everything that it may find."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from jupyter_to_job.backends.kubernetes import ContainerEnd, JobRecord, PodRecord
from jupyter_to_job.controller.reconciling.next_step import (
    AttemptObservation,
    CreateJob,
    DeleteJob,
    DeletePod,
    EndAttempt,
    JobObservation,
    RecordPodEnd,
    Wait,
    next_step,
)
from jupyter_to_job.domain.job import State
from jupyter_to_job.domain.state import AttemptStatus, Ended
from jupyter_to_job.exchange.records import ClusterJob

JOB = ClusterJob("team", "train-abcdefgh", "job-1")
ACTIVE = JobRecord("team", "train-abcdefgh", "job-1", finished=False)
GOING = replace(ACTIVE, deleting=True)
FAILED = replace(ACTIVE, finished=True, message="Backoff limit reached.")
RUNNING = PodRecord(
    namespace="team", name="p", uid="pod-1", job="train-abcdefgh", job_uid="job-1",
    phase="Running", reason="", message="", disruption="", node="node-1", deleting=False,
    deletion_grace=30, created=0.0, scheduled=True, begun=True, waiting="", waiting_message="",
    ended=None,
)  # fmt: skip
PENDING = replace(RUNNING, phase="Pending", scheduled=False, begun=False, node="")
PULLING = replace(RUNNING, phase="Pending", begun=False, waiting="ImagePullBackOff")
OTHER = replace(RUNNING, uid="pod-2", created=1.0)
TOO_LONG = ("ImageUnavailable", "The image cannot be pulled.")
KILLED = replace(RUNNING, phase="Failed", ended=ContainerEnd(137, "Error", ""))
OOM = replace(RUNNING, phase="Failed", ended=ContainerEnd(137, "OOMKilled", ""))
WITHOUT_US = replace(RUNNING, ended=ContainerEnd(1, "Error", "No module named job_runner"))
NOT_STARTED = replace(RUNNING, ended=ContainerEnd(128, "StartError", "No GPU."))
NO_DATA = replace(RUNNING, failed_init=("fetch-data", ContainerEnd(1, "Error", "")))
RAN = replace(RUNNING, ended=ContainerEnd(0, "Completed", ""))
BESIDE_PROXY = replace(
    RUNNING, ended=ContainerEnd(137, "OOMKilled", ""), has_foreign_containers=True
)
EVICTED = replace(KILLED, disruption="EvictionByEvictionAPI")
AWAY = replace(RUNNING, deleting=True, disruption="DeletionByTaintManager")
LOST_NODE = replace(AWAY, lost=True)
CLAIMED = AttemptObservation(AttemptStatus(1, alive=True), "pod-1")
OF_OTHER = replace(CLAIMED, pod="pod-2")
STOPPED = replace(CLAIMED, has_outcome=True)


def seen(*pods: PodRecord, record: JobRecord | None = ACTIVE, **fields: Any) -> JobObservation:
    return JobObservation(**{"job": JOB, "record": record, "pods": pods, **fields})


def shown(step: Any) -> str:
    match step:
        case RecordPodEnd():
            return f"pod.json {step.reason}{', retried' if step.retried else ''}"
        case EndAttempt():
            return f"end {step.attempt} {step.reason}"
        case _:
            return type(step).__name__


WITH_WORD = replace(CLAIMED, has_pod_end=True)
ENDED = Ended(State.FAILED, "Evicted", None, "2026-11-21T09:30:00.000Z")
RETRIED = AttemptObservation(
    AttemptStatus(1, alive=False, ended=ENDED, retried=True),
    "pod-1",
    has_outcome=True,
    has_pod_end=True,
)
UNCLAIMED = replace(CLAIMED, pod=None)
SECOND = AttemptObservation(AttemptStatus(2, alive=True), "pod-2")


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (JobObservation(), "CreateJob"),
        (seen(), "Wait"),
        (seen(PENDING), "Wait"),
        (seen(RUNNING), "Wait"),
        (seen(RUNNING, attempts=(CLAIMED,)), "Wait"),
        # A pod that is over: the cluster's word first, then the attempt's end. Both come once it
        # is sure that no other pod follows.
        (seen(KILLED, attempts=(CLAIMED,)), "Wait"),
        (seen(KILLED, attempts=(CLAIMED,), record=FAILED), "pod.json None"),
        (seen(KILLED, attempts=(WITH_WORD,), record=FAILED), "end 1 Lost"),
        (seen(OOM, attempts=(WITH_WORD,), record=FAILED), "end 1 OutOfMemory"),
        (seen(EVICTED, attempts=(STOPPED,)), "Wait"),
        (seen(EVICTED, attempts=(STOPPED,), record=FAILED), "pod.json Evicted"),
        (seen(EVICTED, attempts=(WITH_WORD,), record=FAILED), "end 1 Evicted"),
        (seen(AWAY, attempts=(CLAIMED,)), "Wait"),
        (seen(replace(AWAY, gone=True), attempts=(CLAIMED,), record=FAILED), "pod.json NodeLost"),
        # The controller began an attempt to end it, and was killed.
        (seen(attempts=(UNCLAIMED,)), "Wait"),
        (seen(RUNNING, attempts=(UNCLAIMED,), cancelled=True), "DeletePod"),
        (seen(attempts=(UNCLAIMED,), cancelled=True, record=None), "end 1 Terminated"),
        (seen(attempts=(UNCLAIMED,), record=FAILED), "end 1 Lost"),
        # The pod of its second attempt was removed while the controller was down.
        (seen(EVICTED, attempts=(RETRIED, SECOND), record=FAILED), "pod.json None"),
        # So was that of its only attempt, and the pod before it is there, and claimed none.
        (seen(EVICTED, attempts=(OF_OTHER,), record=FAILED), "pod.json None"),
        (seen(EVICTED, attempts=(replace(WITH_WORD, pod="pod-2"),), record=FAILED), "end 1 Lost"),
        # No watch has told yet of the pod that follows.
        (seen(EVICTED, attempts=(OF_OTHER,)), "Wait"),
        # It was removed, and the one after it goes on, or is on a node that is away.
        (seen(RUNNING, attempts=(OF_OTHER,)), "pod.json None, retried"),
        (seen(LOST_NODE, attempts=(OF_OTHER,)), "pod.json None, retried"),
        # Another pod follows.
        (seen(EVICTED, OTHER, attempts=(CLAIMED,)), "pod.json Evicted, retried"),
        (seen(EVICTED, OTHER, attempts=(WITH_WORD,)), "end 1 Evicted"),
        # It never claimed an attempt: the Job may make another pod.
        (seen(KILLED), "Wait"),
        (seen(KILLED, record=FAILED), "end 1 Lost"),
        (seen(record=FAILED), "end 1 BackendError"),
        (seen(EVICTED, replace(OOM, uid="pod-2"), attempts=(OF_OTHER,), record=FAILED),
         "pod.json None"),
        # No watch has told of the pod of an attempt: it may be late.
        (seen(attempts=(CLAIMED,)), "Wait"),
        (seen(attempts=(WITH_WORD,)), "Wait"),
        (seen(attempts=(CLAIMED,), record=FAILED), "pod.json None"),
        (seen(attempts=(WITH_WORD,), record=FAILED), "end 1 Lost"),
        # The Job was deleted by hand: its pod has its grace.
        (seen(record=None), "end 1 Lost"),
        (seen(replace(RUNNING, deleting=True), attempts=(CLAIMED,), record=None), "Wait"),
        (seen(EVICTED, replace(RUNNING, uid="pod-2", deleting=True), attempts=(OF_OTHER,),
              record=None), "Wait"),
        (seen(attempts=(WITH_WORD,), record=None), "end 1 Lost"),
        (seen(KILLED, attempts=(STOPPED,), record=None), "pod.json Lost"),
        (seen(attempts=(STOPPED,), record=None), "pod.json Lost"),
        # Its Job goes when its pods are gone, as with `--cascade=foreground`.
        (seen(KILLED, attempts=(STOPPED,), record=GOING), "pod.json Lost"),
        (seen(replace(RUNNING, deleting=True), attempts=(CLAIMED,), record=GOING), "Wait"),
        (seen(record=GOING), "end 1 Lost"),
        (seen(cancelled=True, record=GOING), "end 1 Terminated"),
        # Its Job was deleted, and left it behind.
        (seen(RUNNING, attempts=(CLAIMED,), record=None), "DeletePod"),
        (seen(PENDING, record=None), "DeletePod"),
        # Its agent did not hear that it is to end, and has nothing to send, or it sends the rest.
        (seen(WITHOUT_US, attempts=(CLAIMED,)), "Wait"),
        (seen(replace(WITHOUT_US, lingers=True), attempts=(CLAIMED,)), "DeletePod"),
        (seen(replace(WITHOUT_US, lingers=True)), "DeletePod"),
        (seen(NO_DATA, attempts=(CLAIMED,)), "Wait"),
        (seen(replace(NO_DATA, lingers=True), attempts=(CLAIMED,)), "DeletePod"),
        (seen(replace(NOT_STARTED, lingers=True), attempts=(CLAIMED,)), "DeletePod"),
        (seen(replace(WITHOUT_US, deleting=True), attempts=(CLAIMED,)), "Wait"),
        (seen(replace(RAN, lingers=True), attempts=(CLAIMED,)), "Wait"),
        # A container of somebody else runs on, so the kubelet does not tell the agent of the end.
        (seen(BESIDE_PROXY, attempts=(CLAIMED,)), "Wait"),
        (seen(replace(BESIDE_PROXY, lingers=True), attempts=(CLAIMED,)), "DeletePod"),
        # Its node is away: nothing more is heard, and the Job makes no other pod.
        (seen(LOST_NODE, attempts=(CLAIMED,)), "pod.json NodeLost"),
        (seen(LOST_NODE, attempts=(WITH_WORD,)), "end 1 NodeLost"),
        (seen(LOST_NODE), "end 1 NodeLost"),
        (seen(LOST_NODE, cancelled=True, attempts=(WITH_WORD,)), "end 1 Terminated"),
        (seen(LOST_NODE, cancelled=True), "DeleteJob"),
        (seen(LOST_NODE, cancelled=True, record=None), "end 1 Terminated"),
        # It waits too long: why is on record before the Job is deleted, and the outcome comes last.
        (seen(PULLING, waited=TOO_LONG), "RecordStop"),
        (seen(PULLING, waited=TOO_LONG, stop=TOO_LONG), "DeleteJob"),
        (seen(PULLING, stop=TOO_LONG, record=None), "Wait"),
        (seen(stop=TOO_LONG, record=None), "end 1 ImageUnavailable"),
        (seen(stop=TOO_LONG, record=None, attempts=(CLAIMED,)), "pod.json ImageUnavailable"),
        (seen(stop=TOO_LONG, record=None, attempts=(WITH_WORD,)), "end 1 ImageUnavailable"),
        (seen(PULLING, waited=TOO_LONG, cancelled=True), "DeletePod"),
        # Cancelled: the pod ends, or the Job where none was scheduled.
        (JobObservation(cancelled=True), "end 1 Terminated"),
        (seen(cancelled=True), "DeleteJob"),
        (seen(PENDING, cancelled=True), "DeleteJob"),
        (seen(PENDING, cancelled=True, record=None), "Wait"),
        (seen(RUNNING, cancelled=True), "DeletePod"),
        (seen(replace(RUNNING, deleting=True), cancelled=True), "Wait"),
        (seen(cancelled=True, record=None), "end 1 Terminated"),
        (seen(cancelled=True, record=None, attempts=(CLAIMED,)), "pod.json None"),
        (seen(cancelled=True, record=None, attempts=(WITH_WORD,)), "end 1 Terminated"),
        (seen(KILLED, cancelled=True, attempts=(CLAIMED,)), "pod.json None"),
        (seen(KILLED, cancelled=True, attempts=(WITH_WORD,)), "end 1 Lost"),
    ],
)  # fmt: skip
def test_table(found: JobObservation, expected: str) -> None:
    assert shown(next_step(found)) == expected


def test_after_a_disruption_the_next_pod_decides() -> None:
    first = RETRIED
    found = seen(EVICTED, attempts=(first,))
    assert not found.has_ended and next_step(found) == Wait()
    second = AttemptObservation(AttemptStatus(2, alive=True), "pod-2")
    found = seen(EVICTED, OTHER, attempts=(first, second))
    assert not found.has_ended and next_step(found) == Wait()
    evicted = replace(EVICTED, uid="pod-2", created=1.0)
    found = seen(EVICTED, evicted, attempts=(first, second), record=FAILED)
    assert shown(next_step(found)) == "pod.json Evicted"
    ended = replace(second, status=AttemptStatus(2, alive=False, ended=ENDED), has_outcome=True)
    assert seen(EVICTED, attempts=(first, ended)).has_ended


def test_steps_carry_what_they_need() -> None:
    assert next_step(seen(PENDING, cancelled=True)) == DeleteJob(JOB)
    assert next_step(seen(RUNNING, cancelled=True)) == DeletePod(RUNNING)
    assert next_step(JobObservation()) == CreateJob()
