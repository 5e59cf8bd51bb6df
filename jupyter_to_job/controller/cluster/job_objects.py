"""The Jobs and pods of our jobs, as the watches tell of them.

A pod that is gone stays known until its job has ended: how it was last seen decides what is said of
the attempt that it claimed.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial

from ...backends.kubernetes import JobRecord, PodRecord
from ...backends.kubernetes.records import RefusalRecord
from ...exchange.records import ClusterJob
from ..metrics import Metrics
from .cluster import Cluster
from .informer import Informer
from .watches import Watches

SILENCE = 60.0
"""Seconds without a word of the agent after which a pod that should be gone counts as lost."""
LINGERING = 20.0
"""Seconds after the end of a pod's main container, or of an init container that failed, from which
its agent counts as lingering."""
_DARK_NODE = "DeletionByTaintManager"


class JobObjects:
    """The records of Jobs and pods in the namespaces of dev pods.

    `on_change` hears of each job whose Job or pod changed. A record that is missing means nothing
    until those of its namespace are complete (`is_synced`). `clock` is monotonic.
    """

    def __init__(
        self,
        cluster: Cluster,
        namespaces: frozenset[str],
        on_change: Callable[[str], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._on_change = on_change
        self._clock = clock
        self._jobs = Watches(namespaces, partial(cluster.jobs, on_change=self._see_job))
        self._pods = Watches(namespaces, partial(cluster.pods, on_change=self._see_pod))
        self._refusals = Watches(namespaces, partial(cluster.refusals, on_change=self._see_refusal))
        self._known_pods: dict[str, dict[str, PodRecord]] = {}
        """The pods of each Job that was asked for, by the uids of both."""
        self._maker: dict[str, str] = {}
        """The uid of the Job that made a known pod: one that is orphaned does not tell any more."""
        self._deleted_since: dict[str, float] = {}
        """When each known pod was told to end, or first seen to be deleted."""
        self._ended_since: dict[str, float] = {}
        """When each known pod was first seen to have nothing to do but to end."""
        self._heard_at: dict[str, float] = {}
        """When the agent of each known pod was last heard: one without output is silent."""

    def _see_job(self, record: JobRecord) -> None:
        self._on_change(record.courier_of or record.name)

    def _see_pod(self, pod: PodRecord) -> None:
        maker = self._maker.get(pod.uid, pod.job_uid)
        if maker in self._known_pods:  # everybody may give a pod our label
            self._know(replace(pod, job_uid=maker))
        self._on_change(pod.job)

    def _see_refusal(self, record: RefusalRecord) -> None:
        self._on_change(record.name)

    def _know(self, pod: PodRecord) -> None:
        self._maker[pod.uid] = pod.job_uid
        if pod.deleting:
            self._deleted_since.setdefault(pod.uid, self._clock())
        is_deleted = pod.uid in self._deleted_since  # nobody can take that back
        self._known_pods[pod.job_uid][pod.uid] = replace(pod, deleting=is_deleted)
        if pod.ended is not None or pod.failed_init is not None:
            self._ended_since.setdefault(pod.uid, self._clock())

    def note_deleted(self, pod: PodRecord) -> None:
        """Note that a pod has been told to end: its watch may be behind, or know more already."""
        record = self._known_pods.get(pod.job_uid, {}).get(pod.uid)
        if record is not None:
            self._know(replace(record, deleting=True))

    async def run(self) -> None:
        """Watch for ever."""
        await asyncio.gather(self._jobs.run(), self._pods.run(), self._refusals.run())

    def measure(self, metrics: Metrics) -> None:
        """Show how many watches of each kind do not work."""
        gauge = metrics.failing_watches
        gauge.labels("jobs").set_function(self._jobs.count_failing)
        gauge.labels("pods").set_function(self._pods.count_failing)
        gauge.labels("events").set_function(self._refusals.count_failing)

    def watches(self) -> list[Informer[JobRecord] | Informer[PodRecord]]:
        """Return the informers without which nothing is known of any job."""
        return [*self._jobs.informers, *self._pods.informers]

    def covers(self, namespace: str) -> bool:
        """Tell whether a namespace is watched."""
        return self._jobs.covers(namespace)

    def is_synced(self, namespace: str) -> bool:
        """Tell whether a namespace's records are complete: before, a missing one means nothing."""
        return self._jobs.is_synced(namespace) and self._pods.is_synced(namespace)

    async def wait_until_synced(self, namespace: str) -> None:
        """Wait for the records of a watched namespace."""
        await self._jobs.wait_until_synced(namespace)
        await self._pods.wait_until_synced(namespace)

    def named(self, namespace: str, name: str) -> JobRecord | None:
        """Return the Job of a name, whoever made it."""
        return self._jobs.get(namespace, name)

    def record_of(self, job: ClusterJob) -> JobRecord | None:
        """Return the record of a Job; None if it is gone, also if another has its name."""
        record = self._jobs.get(job.namespace, job.name)
        return record if record is not None and record.uid == job.uid else None

    def couriers(self) -> list[JobRecord]:
        """Return the Jobs of couriers, whoever made them."""
        return [record for record in self._jobs.all() if record.courier_of]

    def pod(self, namespace: str, uid: str) -> PodRecord | None:
        """Return a pod with our label, whoever made it; None if it is gone."""
        return self._pods.get(namespace, uid)

    def pod_made_by(self, job: ClusterJob) -> PodRecord | None:
        """Return the pod of a courier's Job, None if no watch tells of one."""
        pods = self._pods.of(job.namespace)
        return next((pod for pod in pods if pod.job_uid == job.uid), None)

    def newest_pod(self, job: ClusterJob) -> PodRecord | None:
        """Return the latest pod of a Job that there is, also of one that has ended long ago."""
        pods = [pod for pod in self._pods.of(job.namespace) if pod.job_uid == job.uid]
        return max(pods, key=lambda pod: pod.created, default=None)

    def refusal_of(self, job: ClusterJob, since: float = 0.0) -> str | None:
        """Return why no pod of a Job can be created, as its events say since a unix time."""
        record = self._refusals.get(job.namespace, job.uid)
        return record.message if record is not None and record.last_time >= since else None

    def pods_of(self, job: ClusterJob) -> tuple[PodRecord, ...]:
        """Return all pods that a Job is known to have made, the oldest first."""
        if job.uid not in self._known_pods:
            self._known_pods[job.uid] = {}
            for pod in self._pods.of(job.namespace):
                if pod.job_uid == job.uid:
                    self._know(pod)
        pods = map(self._as_it_is, self._known_pods[job.uid].values())
        return tuple(sorted(pods, key=lambda pod: pod.created))

    def _as_it_is(self, pod: PodRecord) -> PodRecord:
        if self._pods.get(pod.namespace, pod.uid) is None:
            return replace(pod, gone=True)
        return replace(
            pod,
            lost=self.seconds_until_lost(pod) == 0,
            lingers=self._seconds_until_lingering(pod) == 0,
        )

    def hear(self, pod_uid: str) -> None:
        """Note that a pod's agent has just spoken."""
        if pod_uid in self._maker:
            self._heard_at[pod_uid] = self._clock()

    def seconds_until_lost(self, pod: PodRecord) -> float | None:
        """Return when a pod counts as lost if its agent stays silent; None if it is not deleted.

        A node that went away never says that its pods have ended. Where another pod is told to end,
        it has its grace first.
        """
        deleted_since = self._deleted_since.get(pod.uid)
        if not pod.deleting or pod.terminal or deleted_since is None:
            return None
        grace = 0 if pod.disruption == _DARK_NODE else pod.deletion_grace
        silent_since = max(deleted_since + grace, self._heard_at.get(pod.uid, 0.0))
        return max(0.0, silent_since + SILENCE - self._clock())

    def _seconds_until_lingering(self, pod: PodRecord) -> float | None:
        """Return when a pod counts as lingering, None if it does not come to that.

        Containers that run beside ours keep the kubelet from telling the agent that the run has
        ended. So an agent counts there only while it is heard: it may have much to send.
        """
        ended_since = self._ended_since.get(pod.uid)
        if ended_since is None or pod.terminal or pod.deleting:
            return None
        due = ended_since + LINGERING
        if pod.has_foreign_containers:
            due = max(ended_since, self._heard_at.get(pod.uid, 0.0)) + SILENCE
        return max(0.0, due - self._clock())

    def moments(self, pods: Iterable[PodRecord]) -> list[tuple[str, float]]:
        """Return the jobs of pods that come to count as lost or lingering, and when, in seconds."""
        moments: list[tuple[str, float]] = []
        for pod in pods:
            if pod.is_over:
                continue
            until_lost = self.seconds_until_lost(pod)
            if until_lost is not None:
                moments.append((pod.job, until_lost))
            elif until_lingering := self._seconds_until_lingering(pod):  # 0: nothing may be due
                moments.append((pod.job, until_lingering))
        return moments

    def forget(self, job: ClusterJob) -> None:
        """Forget the pods of a Job that is gone, and whose job has ended."""
        for uid in self._known_pods.pop(job.uid, {}):
            self._maker.pop(uid, None)
            self._deleted_since.pop(uid, None)
            self._ended_since.pop(uid, None)
            self._heard_at.pop(uid, None)
