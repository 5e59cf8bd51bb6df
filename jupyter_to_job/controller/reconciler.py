"""The reconciler: brings each job's Job and directory to the state that they should have.

It is level-triggered: for one job at a time it reads the current state, and takes the next step.
Every step is safe to repeat, so a restart begins with all jobs and loses nothing.
"""

from __future__ import annotations

import asyncio
import logging
import sys
import time
from dataclasses import dataclass, field

from job_runner.protocol import layout
from job_runner.protocol.outcome import read_outcome

from ..backends.kubernetes import JobPods, JobRecord, PodRecord, job_manifest
from ..domain.errors import Conflict, JobsError, NotFound, Refused, Unavailable
from ..exchange import FileExchange, Request
from .cluster import Cluster
from .pod_failures import failure_of

CANCEL_GRACE = 30
"""Seconds that a cancelled pod has to end by itself."""
RESYNC_INTERVAL = 30.0
"""Seconds after which every unfinished job is reconciled again, even without an event."""
MIN_RETRY_DELAY, MAX_RETRY_DELAY = 2.0, 60.0
"""Seconds before a failed step is tried again: the first time, and at most."""
WORKERS = 8
"""Jobs that are reconciled at the same time: one that is slow must not delay the others."""
_log = logging.getLogger(__name__)


@dataclass
class Reconciler:
    """Works through a queue of job names. Call its methods on the event loop only.

    `_dirty` are the jobs that were queued again while a worker was `_processing` them. `_settled`
    jobs have their outcome. `_created` has the time at which each Job was created.
    """

    cluster: Cluster
    exchange: FileExchange
    pod_settings: JobPods
    _queue: asyncio.Queue[str] = field(default_factory=asyncio.Queue)
    _queued: set[str] = field(default_factory=set)
    _processing: set[str] = field(default_factory=set)
    _dirty: set[str] = field(default_factory=set)
    _failures: dict[str, int] = field(default_factory=dict)
    _settled: set[str] = field(default_factory=set)
    _created: dict[str, float] = field(default_factory=dict)
    _namespaces: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.jobs = self.cluster.jobs(lambda record: self.enqueue(record.name))
        self.pods = self.cluster.pods(lambda record: self.enqueue(record.job))

    def enqueue(self, job: str) -> None:
        """Queue a job, unless it is queued already."""
        if job not in self._queued:
            self._queued.add(job)
            self._queue.put_nowait(job)

    def pod_of(self, job: str) -> PodRecord | None:
        """Return the latest record of a job's pod."""
        record = self._job_of(job)
        return self.pods.records.get(record.uid) if record else None

    def job_uid(self, job: str) -> str | None:
        """Return the uid of a job's Job. Raises Unavailable until the informers are synced."""
        if not (self.jobs.synced.is_set() and self.pods.synced.is_set()):
            raise Unavailable("The controller is starting.", "It is tried again.")
        record = self._job_of(job)
        return record.uid if record else None

    def _job_of(self, job: str) -> JobRecord | None:
        """Return the record of a job's Job, in the namespace where we created it."""
        if job not in self._namespaces:
            try:
                origin = self.exchange.document(job, layout.ORIGIN)
            except NotFound:
                return None
            self._namespaces[job] = (origin or {}).get("namespace", "")
        return self.jobs.records.get(f"{self._namespaces[job]}/{job}")

    async def run(self) -> None:
        """Run informers, resync and workers for ever."""
        workers = (self._work() for _ in range(WORKERS))
        await asyncio.gather(self.jobs.run(), self.pods.run(), self._resync(), *workers)

    async def _resync(self) -> None:
        """Queue all unfinished jobs at regular intervals."""
        while True:
            await self._wait_until_synced()
            for name in await asyncio.to_thread(self.exchange.jobs):
                if name not in self._settled:
                    self.enqueue(name)
            await asyncio.sleep(RESYNC_INTERVAL)

    async def _wait_until_synced(self) -> None:
        """Wait for the informers: before that, a missing record means nothing."""
        await self.jobs.synced.wait()
        await self.pods.synced.wait()

    async def _work(self) -> None:
        await self._wait_until_synced()
        while True:
            name = await self._queue.get()
            self._queued.discard(name)
            if name in self._processing:
                self._dirty.add(name)  # a job is never reconciled twice at the same time
                continue
            self._processing.add(name)
            try:
                await self._reconcile(name)
                self._failures.pop(name, None)
            except JobsError as error:
                _log.warning("%s: %s", name, error)
                self._retry_later(name)
            except Exception:  # an error of one job must not stop the others
                _log.exception("%s cannot be worked on", name)
                self._retry_later(name)
            finally:
                self._processing.discard(name)
                if name in self._dirty:
                    self._dirty.discard(name)
                    self.enqueue(name)

    def _retry_later(self, name: str) -> None:
        """Queue a job again after a delay, which doubles with each failure."""
        count = self._failures[name] = self._failures.get(name, 0) + 1
        delay = min(MIN_RETRY_DELAY * 2 ** min(count - 1, 10), MAX_RETRY_DELAY)
        asyncio.get_running_loop().call_later(delay, self.enqueue, name)

    async def _reconcile(self, name: str) -> None:
        """Take the next step of a job."""
        if not (self.exchange.root / name / layout.REQUEST).is_file():
            return  # the directory was deleted, or the Job is not ours
        request = self.exchange.request(name)
        directory = self.exchange.directory(name)
        if await self._has_ended(name):
            return
        if (directory / layout.CANCEL).exists():
            await self._cancel(request)
        elif self._job_of(name) is None:
            await self._create_or_mark_lost(request)
        else:
            await self._finish_if_dead(name)

    async def _has_ended(self, name: str) -> bool:
        """Return whether the last attempt has its outcome. If so, remove a job that was deleted."""
        directory = self.exchange.directory(name)
        numbers = layout.attempts(directory)
        attempt = layout.attempt_dir(directory, numbers[-1]) if numbers else None
        if attempt is None or read_outcome(attempt) is None:
            return False
        self._settled.add(name)
        self._created.pop(name, None)
        if (directory / layout.DELETE).exists():
            await asyncio.to_thread(self.exchange.remove, name)
        return True

    async def _create_or_mark_lost(self, request: Request) -> None:
        """Create the Job. If it was deleted after an attempt had begun, end that as `Lost`."""
        name, directory = request.name, self.exchange.directory(request.name)
        if layout.attempts(directory):
            message = "The Job was deleted while it ran; what it had printed is kept."
            await self._finish(name, "Lost", message)
            return
        if time.monotonic() - self._created.get(name, -RESYNC_INTERVAL) < RESYNC_INTERVAL:
            return  # created a moment ago: the informer does not have it yet
        origin = self.exchange.document(name, layout.ORIGIN) or {}
        try:
            await self.cluster.create_job(job_manifest(request, origin, self.pod_settings))
        except Conflict:  # the informer does not have it yet
            pass
        except (Refused, NotFound) as error:  # by a policy or quota, or its namespace is gone
            await self._finish(name, "BackendError", error.message)
            return
        self._created[name] = time.monotonic()
        _log.info("%s: Job created", name)

    async def _finish_if_dead(self, name: str) -> None:
        """Finish an attempt whose pod or Job has ended without an outcome."""
        pod, job = self.pod_of(name), self._job_of(name)
        is_dead = pod.terminal if pod is not None else job is not None and job.finished
        if not is_dead:
            return
        reason, message = failure_of(pod)
        _log.info("%s: %s %s", name, reason, message)
        await self._finish(name, reason, message)

    async def _cancel(self, request: Request) -> None:
        """Delete the pod of a cancelled job, or its Job where no pod was scheduled."""
        name = request.name
        pod = self.pod_of(name)
        if pod is not None and pod.scheduled:
            if not pod.terminal:
                await self.cluster.delete_pod(pod.namespace, pod.name, CANCEL_GRACE)
                return
        elif namespace := (self.exchange.document(name, layout.ORIGIN) or {}).get("namespace"):
            # Even without a record: it may have been created a moment ago.
            await self.cluster.delete_job(namespace, name)
        await self._finish(name, "Terminated", "The job was cancelled.")

    async def _finish(self, name: str, reason: str, message: str) -> None:
        """Run `job_runner finish`, which writes result and outcome, and queue the job again."""
        command = (sys.executable, "-m", "job_runner", "finish", self.exchange.directory(name))
        options = ("--reason", reason, "--message", message)
        process = await asyncio.create_subprocess_exec(*command, *options)
        if await process.wait() != 0:
            raise Unavailable(f"job_runner finish ended with {process.returncode}.")
        self.enqueue(name)
