"""The pods of a Job, as its watch tells of them: also one that is lost, orphaned, or somebody's."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from jupyter_to_job.backends.kubernetes import ContainerEnd, PodRecord
from jupyter_to_job.backends.kubernetes.records import RefusalRecord
from jupyter_to_job.controller.cluster.job_objects import LINGERING, SILENCE, JobObjects
from jupyter_to_job.exchange.records import ClusterJob

from ..pretend_cluster import Clock
from .test_next_step import AWAY, RUNNING

JOB = ClusterJob("team", "train-abcdefgh", "job-1")
DELETED = replace(RUNNING, deleting=True)


class Informer:
    """Tells of what a test puts into it."""

    def __init__(self, on_change: Callable[[Any], None]) -> None:
        self.records: dict[tuple[str, str], Any] = {}
        self.on_change = on_change

    def put(self, key: str, record: Any) -> None:
        self.records[record.namespace, key] = record
        self.on_change(record)

    def remove(self, key: str) -> None:
        self.on_change(self.records.pop(("team", key)))


class World:
    """The objects of one namespace, and who heard of a change."""

    def __init__(self) -> None:
        self.clock = Clock()
        self.changed: list[str] = []
        cluster: Any = self
        self.objects = JobObjects(
            cluster, frozenset(["team"]), self.changed.append, clock=self.clock
        )

    def jobs(self, _: str | None, on_change: Callable[[Any], None]) -> Informer:
        self.job_informer = Informer(on_change)
        return self.job_informer

    def pods(self, _: str | None, on_change: Callable[[Any], None]) -> Informer:
        self.pod_informer = Informer(on_change)
        return self.pod_informer

    def refusals(self, _: str | None, on_change: Callable[[Any], None]) -> Informer:
        self.refusal_informer = Informer(on_change)
        return self.refusal_informer

    def see(self, pod: PodRecord) -> None:
        self.pod_informer.put(pod.uid, pod)

    @property
    def pod(self) -> PodRecord:
        (pod,) = self.objects.pods_of(JOB)
        return pod

    def has_lost(self) -> bool:
        return self.pod.lost and self.pod.is_over


@pytest.fixture
def world() -> World:
    world = World()
    world.see(RUNNING)
    assert world.pod == RUNNING
    return world


def test_a_pod_that_is_gone_stays_known(world: World) -> None:
    world.pod_informer.remove("pod-1")
    assert world.pod == replace(RUNNING, gone=True) and world.pod.is_over
    world.objects.forget(JOB)
    assert world.objects.pods_of(JOB) == ()


def test_an_orphaned_pod_stays_its_jobs(world: World) -> None:
    world.see(replace(RUNNING, job_uid="", phase="Failed"))
    assert world.pod.phase == "Failed" and world.pod.job_uid == "job-1"


def test_a_pod_of_somebody_else_is_not_kept(world: World) -> None:
    world.see(replace(RUNNING, uid="forged", job_uid=""))
    world.see(replace(RUNNING, uid="other", job_uid="another"))
    assert world.pod == RUNNING
    assert world.changed == ["train-abcdefgh"] * 3


def test_a_pod_that_was_told_to_end_is_not_told_again(world: World) -> None:
    world.objects.note_deleted(RUNNING)
    assert world.pod.deleting
    world.see(RUNNING)  # the watch is behind
    assert world.pod.deleting


def test_what_a_watch_told_meanwhile_is_kept(world: World) -> None:
    world.see(DELETED)
    world.objects.note_deleted(RUNNING)  # as it was before it was told to end
    assert world.pod == DELETED


@pytest.mark.parametrize(("pod", "grace"), [(AWAY, 0), (DELETED, DELETED.deletion_grace)])
def test_a_pod_that_should_be_gone_is_lost_in_silence(
    world: World, pod: PodRecord, grace: int
) -> None:
    world.objects.hear(pod.uid)
    world.clock.now += 1e6  # it has printed nothing for long
    world.see(pod)
    assert world.objects.seconds_until_lost(pod) == grace + SILENCE
    assert not world.has_lost()
    world.clock.now += grace + SILENCE - 1
    assert not world.has_lost()
    world.objects.hear(pod.uid)
    world.clock.now += 2
    assert not world.has_lost()  # its agent is still there
    world.see(replace(pod, message="The node is away."))  # an event is no word of the agent
    world.clock.now += grace + SILENCE
    assert world.has_lost()
    world.see(replace(pod, phase="Failed"))
    assert not world.has_lost()


def test_a_lost_pod_is_waited_for_no_more(world: World) -> None:
    world.see(AWAY)
    assert world.objects.moments([world.pod]) == [("train-abcdefgh", SILENCE)]
    world.clock.now += SILENCE
    assert world.has_lost()
    assert world.objects.moments([world.pod]) == []


def test_only_a_pod_that_is_deleted_can_be_lost(world: World) -> None:
    world.objects.hear(RUNNING.uid)
    world.clock.now += 1e6
    assert world.objects.seconds_until_lost(world.pod) is None and not world.has_lost()


def test_an_agent_that_stays_after_the_run_lingers(world: World) -> None:
    ended = replace(RUNNING, ended=ContainerEnd(1, "Error", "No module named job_runner"))
    assert world.objects.moments([RUNNING]) == []
    world.see(ended)
    assert not world.pod.lingers
    assert world.objects.moments([ended]) == [("train-abcdefgh", LINGERING)]
    world.clock.now += LINGERING
    world.see(ended)  # news of it do not begin the time anew
    assert world.pod == replace(ended, lingers=True)
    assert world.objects.moments([ended]) == []
    for over in (replace(ended, phase="Failed"), replace(ended, deleting=True)):
        world.see(over)
        assert not world.pod.lingers


def test_an_agent_whose_run_cannot_begin_lingers(world: World) -> None:
    failed = replace(RUNNING, failed_init=("fetch-data", ContainerEnd(1, "Error", "")))
    world.see(failed)
    assert world.objects.moments([failed]) == [("train-abcdefgh", LINGERING)]
    world.clock.now += LINGERING
    assert world.pod == replace(failed, lingers=True)


def test_an_agent_beside_containers_of_others_lingers_in_silence(world: World) -> None:
    killed = replace(RUNNING, ended=ContainerEnd(137, "OOMKilled", ""), has_foreign_containers=True)
    world.see(killed)
    assert world.objects.moments([killed]) == [("train-abcdefgh", SILENCE)]
    world.clock.now += SILENCE - 1
    world.objects.hear(killed.uid)  # it sends what it has
    world.clock.now += SILENCE - 1
    assert not world.pod.lingers
    world.clock.now += 1
    assert world.pod == replace(killed, lingers=True)


def test_why_no_pod_is_created(world: World) -> None:
    assert world.objects.refusal_of(JOB) is None
    refusal = RefusalRecord("team", "train-abcdefgh", "event-1", "job-1", "exceeded quota: gpus")
    world.refusal_informer.put("job-1", refusal)
    assert world.objects.refusal_of(JOB) == "exceeded quota: gpus"
    assert world.objects.refusal_of(JOB, since=1.0) is None
    assert world.objects.refusal_of(replace(JOB, uid="older")) is None
