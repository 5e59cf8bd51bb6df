"""The reconciler: brings each job's Job and directory to the state that they should have.

It is level-triggered: for one job at a time it reads the current state, and takes the next step.
Every step is safe to repeat, so a restart begins with all jobs and loses nothing.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from job_runner.protocol import layout

from ... import logs
from ...backends.kubernetes import (
    JobPods,
    PodRecord,
    explain_refusal,
    job_manifest,
    placement_of_error,
)
from ...backends.kubernetes.records import Manifest
from ...domain.errors import BadInput, Conflict, Damaged, JobsError, NotFound, Refused, Unavailable
from ...domain.state import Placement
from ...exchange import FileExchange, Request
from ...exchange.records import ClusterJob
from ..cluster.api_groups import ApiGroups
from ..cluster.cluster import Cluster
from ..cluster.job_objects import JobObjects
from ..job_tracker import JobTracker
from ..metrics import Metrics
from .claims import require_same_claims
from .create_limit import CreateLimit
from .folds import Folds
from .group_limits import GroupLimits
from .job_files import (
    JobFiles,
    read_cluster_job,
    read_job_files,
    read_place,
    write_job,
    write_pod_end,
)
from .known_kernels import KnownKernels
from .next_step import (
    CreateJob,
    DeleteJob,
    DeletePod,
    EndAttempt,
    JobObservation,
    RecordPodEnd,
    RecordStop,
    Step,
    next_step,
)
from .parked_jobs import ParkedJobs
from .placements import find_placement
from .required_queue import require_queue
from .run_admission import RunAdmission
from .tracked_jobs import tracked_job
from .unrecorded_jobs import find_job, known_job
from .wait_limits import WaitLimits, WaitTimes
from .work_queue import WorkQueue

CANCEL_GRACE = 30
"""Seconds that a cancelled pod has to end by itself."""
JOB_KEPT = 3600.0
"""Seconds after a job's end for which its Job is kept, for who wants to look at it."""
STRAY_KEPT = 60.0
"""The same for a Job that has not ended by itself: its pods run for nothing."""
STALE_WATCH_INTERVAL = 2.0
"""Seconds after which a job is looked at again whose Job no watch has told of yet."""
RESYNC_INTERVAL = 30.0
"""Seconds after which every unfinished job is reconciled again, even without an event."""
WORKERS = 16
"""Jobs that are reconciled at the same time: one that is slow must not delay the others."""
_log = logging.getLogger(__name__)


@dataclass
class Reconciler:
    """Works through the queue of jobs. Call its methods on the event loop only.

    `on_change` hears of each job whose pod changed, or that was worked on: for the feed. `on_ended`
    hears of each job that has ended, whenever it was looked at: for its delivery. `pod_patch` is
    asked for the administrator's patch in force. `tracker` is shown each job. `_settled` jobs have
    ended. `_jobs` are the Jobs on record, `_deleted_uids` the uids of those that do not exist any
    more, and `_refusals` why others could not be created.
    """

    cluster: Cluster
    exchange: FileExchange
    pod_settings: JobPods
    namespaces: frozenset[str]
    on_change: Callable[[str], None]
    wait_limits: WaitLimits = field(default_factory=WaitLimits)
    max_record: int | None = None
    pod_patch: Callable[[], Manifest] = dict
    on_ended: Callable[[str], object] = str
    tracker: JobTracker = field(default_factory=lambda: JobTracker(Metrics()))
    _queue: WorkQueue = field(default_factory=WorkQueue)
    _settled: set[str] = field(default_factory=set)
    _jobs: dict[str, ClusterJob] = field(default_factory=dict)
    _refusals: dict[str, Placement] = field(default_factory=dict)
    _deleted_uids: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self._queue.measure(self.tracker.metrics, "jobs")
        self._wait_times = WaitTimes(self.wait_limits, self._queue.add_after)
        self.objects = JobObjects(self.cluster, self.namespaces, self._on_event)
        self.groups = ApiGroups(self.cluster)
        self.kernels = KnownKernels()
        self.runs = RunAdmission(self.cluster, self.exchange, self.tracker, self.enqueue)
        self._groups = GroupLimits(self.enqueue)
        self._creates = CreateLimit(self.enqueue)
        self._parked = ParkedJobs(self.objects, self.enqueue)
        self.folds = Folds(self.exchange, self.max_record, self.enqueue)

    def _on_event(self, job: str) -> None:
        self.enqueue(job)
        self.on_change(job)

    def enqueue(self, job: str) -> None:
        """Queue a job, unless it is queued already."""
        self._queue.add(job)

    def hear(self, pod_uid: str) -> None:
        """Note that a pod's agent has just spoken."""
        self.objects.hear(pod_uid)

    def pod_of(self, job: str) -> PodRecord | None:
        """Return the record of a job's pod, the one that runs if there were several."""
        record = self._jobs.get(job)
        pods = self.objects.pods_of(record) if record else ()
        return next((pod for pod in pods if not pod.is_over), pods[-1] if pods else None)

    def placement_of(self, job: str) -> Placement | None:
        """Return where a job stands that does not run; None if nothing is known yet."""
        placement, record = None, self._jobs.get(job)
        if record is not None:
            placement = find_placement(record, self.pod_of(job), self.objects, self.groups)
        return placement or self._refusals.get(job)

    async def job_uid(self, job: str) -> str | None:
        """Return the uid of the Job on record.

        Raises Unavailable until the records of its namespace are complete.
        """
        record = self._jobs.get(job)
        namespace = record.namespace if record else ""
        if record is None:
            namespace, record = await asyncio.to_thread(read_place, self.exchange, job)
        if self.objects.covers(namespace) and not self.objects.is_synced(namespace):
            raise Unavailable("The controller is starting.", "It is tried again.")
        if record is None:
            return None
        self._jobs[job] = record
        return record.uid

    async def run(self) -> None:
        """Run informers, resync and workers for ever."""
        workers = (self._work() for _ in range(WORKERS))
        await asyncio.gather(self.objects.run(), self.groups.run(), self._resync(), *workers)

    async def _resync(self) -> None:
        """Queue all unfinished jobs at regular intervals. An error of a moment does not end it."""
        while True:
            try:
                await self._queue_unfinished()
            except Exception:
                _log.exception("the jobs are looked at again in %g s", RESYNC_INTERVAL)
            await asyncio.sleep(RESYNC_INTERVAL)

    async def _queue_unfinished(self) -> None:
        names = await asyncio.to_thread(self.exchange.jobs)
        self.tracker.keep(names)
        self._groups.begin(names)
        for name in names:
            # One that failed and is held back now has no retry to come.
            has_retry = self._queue.is_failing(name) and not self._groups.holds_back(name)
            if name not in self._settled and not has_retry:
                self.enqueue(name)

    async def _work(self) -> None:
        while True:
            name = await self._queue.get()
            is_first_look = not self.tracker.knows(name)
            try:
                with logs.context(job=name):
                    await self._try_to_reconcile(name)
            finally:
                self._groups.saw(name)
                self._creates.release(name)
                if not (is_first_look and name in self._settled):  # else it is no news
                    self.on_change(name)
                self._queue.done(name)

    async def _try_to_reconcile(self, name: str) -> None:
        """Take the next step of a job; again a little later if that fails."""
        try:
            await self._reconcile(name)
            # Else its Job was not tried, and may fail again.
            if not (self._groups.holds_back(name) or self._creates.is_waiting(name)):
                self._queue.forget(name)
        except JobsError as error:
            _log.warning("%s: %s", name, error)
            self._queue.add_rate_limited(name, is_error=not explain_refusal(error.message).passes)
        except Exception:  # an error of one job must not stop the others
            _log.exception("%s cannot be worked on", name)
            self._queue.add_rate_limited(name)

    async def _reconcile(self, name: str) -> None:
        """Take the next step of a job."""
        try:
            files = await asyncio.to_thread(read_job_files, self.exchange, name)
        except Damaged:
            if not await asyncio.to_thread(self.exchange.has, name, layout.DELETE):
                raise
            await self._remove(name, await asyncio.to_thread(read_cluster_job, self.exchange, name))
            return
        if files is None:  # the directory was deleted, or the Job is not ours
            self._forget(name)
            return
        logs.add_context(request_id=files.request.request_id)
        namespace = files.origin.get("namespace", "")
        is_synced = self.objects.is_synced(namespace)
        self._groups.note(files, is_known=is_synced or not self.objects.covers(namespace))
        if not is_synced:
            self._park(name, namespace)
            return
        job = files.job or await self._adopt(name, files)
        if job is not None:
            self._jobs[name] = job
        record = self.objects.record_of(job) if job else None
        pods = self.objects.pods_of(job) if job else ()
        observation = JobObservation(
            cancelled=files.cancelled,
            waited=self._wait_times.ending_of(pods, {a.pod for a in files.attempts}),
            stop=(files.stop.reason, files.stop.message) if files.stop else None,
            job=job,
            record=record,
            pods=pods,
            attempts=files.attempts,
        )
        self.tracker.see(name, tracked_job(files, observation, self.placement_of(name)))
        if observation.has_ended:
            await self._tidy(name, files, observation)
            return
        if job is not None and record is None and not await self._is_gone(job):
            self._queue.add_after(name, STALE_WATCH_INTERVAL)
            return
        for job_name, seconds in self.objects.moments(pods):  # no event tells of them
            self._queue.add_after(job_name, seconds)
        await self._take(next_step(observation), name, files)

    def _park(self, name: str, namespace: str) -> None:
        """Leave a job alone until the records of its namespace are complete."""
        if (placement := self._parked.park(name, namespace)) is not None:
            self._refusals[name] = placement

    async def _is_gone(self, job: ClusterJob) -> bool:
        """Tell whether a Job of which the watch tells nothing is gone: the watch may be behind."""
        if job.uid not in self._deleted_uids:
            record = await self.cluster.find_job(job.namespace, job.name)
            if record is None or record.uid != job.uid:
                self._deleted_uids.add(job.uid)
        return job.uid in self._deleted_uids

    async def _adopt(self, name: str, files: JobFiles) -> ClusterJob | None:
        """Record a Job that was created just before the controller ended, if there is one."""
        job = known_job(self.objects, name, files)
        if job is not None:
            self._groups.note(replace(files, job=job))
            await asyncio.to_thread(write_job, self.exchange, name, job)
            self._refusals.pop(name, None)
        return job

    async def _take(self, step: Step, name: str, files: JobFiles) -> None:
        """Take a step. What it changes on the cluster is reported by the informers."""
        match step:
            case CreateJob():
                await self._create(name, files)
            case DeletePod(pod):
                await self.cluster.delete_pod(pod, CANCEL_GRACE)
                self.objects.note_deleted(pod)
            case DeleteJob(job):
                await self.cluster.delete_job(job)
            case RecordStop():
                await self.runs.stop(name, step, files.job, "WaitedTooLong")
            case RecordPodEnd():
                await asyncio.to_thread(write_pod_end, self.exchange, name, step)
                _log.info("%s: attempt %d: %s", name, step.attempt.number, step.reason)
                self.enqueue(name)
            case EndAttempt() if files.deleted and not files.attempts:  # a full disk has no room
                await self._remove(name, files.job or await find_job(self.cluster, name, files))
            case EndAttempt():
                self.folds.start(name, step)

    async def _create(self, name: str, files: JobFiles) -> None:
        """Create the Job, and record its uid, unless its group or too many creates hold it back."""
        if (placement := self._groups.held_back(files.request)) is not None:
            self._refusals[name] = placement
            return
        if not self._creates.admit(name):
            return
        try:
            uid = await self._create_or_end(name, files)
        except Unavailable as error:  # as of a webhook that is down
            self._refusals[name] = placement_of_error(error)
            raise
        except (BadInput, Conflict, Refused) as error:  # quota, policy, patch or claim may change
            self._groups.release(name, was_refused=True)
            self._refusals[name] = placement_of_error(error)
            raise Unavailable(error.message) from error
        if uid is None:
            return
        job = ClusterJob(files.origin["namespace"], name, uid)
        await asyncio.to_thread(write_job, self.exchange, name, job)
        self._jobs[name] = job
        self._refusals.pop(name, None)
        _log.info("%s: Job created", name)

    async def _create_or_end(self, name: str, files: JobFiles) -> str | None:
        """Create the Job, and return its uid; None: it can never be created, and the job ends."""
        require_queue(files.request, self.groups)
        await require_same_claims(self.cluster, files.request, files.origin)
        manifest = await asyncio.to_thread(self.manifest, files.request, files.origin)
        try:
            return await self.cluster.create_job(manifest)
        except Conflict:
            message = self._word_on_taken_name(name, files)
        except (BadInput, NotFound) as error:  # no valid Job, or its namespace is gone
            if isinstance(error, BadInput) and self.pod_patch is not dict:
                raise  # the administrator may mend the patch
            message = explain_refusal(error.message).sentence
        self.folds.start(name, EndAttempt(len(files.attempts) + 1, "BackendError", message))
        return None

    def manifest(self, request: Request, origin: Manifest) -> Manifest:
        """Return a request's Job. Raises BadInput if the administrator's patch is wrong.

        Threads may call it, too.
        """
        return job_manifest(request, origin, replace(self.pod_settings, patch=self.pod_patch()))

    def _word_on_taken_name(self, name: str, files: JobFiles) -> str:
        """Return why a job ends whose name is a Job's that the controller did not make.

        Raises Unavailable while the informer does not know that Job yet, or that one is going.
        """
        record = self.objects.named(files.origin["namespace"], name)
        if record is None or record.deleting or record.nonce == files.origin.get("nonce"):
            raise Unavailable("The namespace has a Job of this name just now.")
        return "The namespace has a Job of this name that is not ours: submit again."

    async def _tidy(self, name: str, files: JobFiles, observation: JobObservation) -> None:
        """Delete the Job of a job that has ended, in time, and a directory that is not wanted."""
        self._settled.add(name)
        for attempt in observation.attempts:
            self.kernels.learn(files.request, files.origin, attempt.status)
        self.on_ended(name)
        self.exchange.forget_request(name)
        self._refusals.pop(name, None)
        job, record = observation.job, observation.record
        if job is not None and record is None:
            self._deleted_uids.discard(job.uid)
            self.objects.forget(job)
            self._wait_times.forget(observation.pods)
        if files.deleted:
            await self._remove(name, job or await find_job(self.cluster, name, files))
        elif job is not None and record is not None and files.ended_at is not None:
            retention = JOB_KEPT if record.finished else STRAY_KEPT
            # The pod wrote when it ended: it cannot have its Job kept for longer.
            remaining = min(retention, files.ended_at + retention - time.time())
            if remaining <= 0:
                await self.cluster.delete_job(job)
            else:
                self._queue.add_after(name, remaining)

    async def _remove(self, name: str, job: ClusterJob | None) -> None:
        """Remove a job's Job, and then its directory: nothing tells of the Job any more."""
        if job is not None:
            await self.cluster.delete_job(job)
        await asyncio.to_thread(self.exchange.remove, name)
        self._forget(name)

    def _forget(self, name: str) -> None:
        """Forget a job that is gone: another one may get its name."""
        self._settled.discard(name)
        self._groups.release(name)
        self._refusals.pop(name, None)
        self.tracker.forget(name)
        if (job := self._jobs.pop(name, None)) is not None:
            self._deleted_uids.discard(job.uid)
            self._wait_times.forget(self.objects.pods_of(job))
            self.objects.forget(job)
