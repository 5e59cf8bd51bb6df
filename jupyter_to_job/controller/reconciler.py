"""The reconciler: brings each job's Job and directory to what they should be, level-triggered.

It looks at one job at a time, decides from what is there now, and does the next step; every step
is safe to repeat, so a restart begins with all jobs and loses nothing.
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
from .pod_failures import verdict

CANCEL_GRACE = 30
RESYNC = 30.0
"""Seconds after which every unfinished job is looked at again, whatever the watches said."""
RETRY, MAX_RETRY = 2.0, 60.0
"""Seconds before a step that failed is tried again: at first, and at most."""
WORKERS = 8
"""Jobs that are looked at at a time: one that is slow to finish must not hold up the others."""
_log = logging.getLogger(__name__)


@dataclass
class Reconciler:
    """Works off a queue of job names. `poke` may be called from the event loop only."""

    cluster: Cluster
    exchange: FileExchange
    pods_in_common: JobPods
    _queue: asyncio.Queue[str] = field(default_factory=asyncio.Queue)
    _queued: set[str] = field(default_factory=set)
    _busy: set[str] = field(default_factory=set)
    _again: set[str] = field(default_factory=set)
    _failures: dict[str, int] = field(default_factory=dict)
    _settled: set[str] = field(default_factory=set)
    _created: dict[str, float] = field(default_factory=dict)
    _namespaces: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.jobs = self.cluster.jobs(lambda record: self.poke(record.name))
        self.pods = self.cluster.pods(lambda record: self.poke(record.job))

    def poke(self, job: str) -> None:
        """Have a job looked at soon; once, however often it is asked for."""
        if job not in self._queued:
            self._queued.add(job)
            self._queue.put_nowait(job)

    def pod_of(self, job: str) -> PodRecord | None:
        """Return the latest record of a job's pod."""
        record = self._job_of(job)
        return self.pods.records.get(record.uid) if record else None

    def job_uid(self, job: str) -> str | None:
        """Return the uid of a job's Job. Raises Unavailable while the records are not complete."""
        if not (self.jobs.synced.is_set() and self.pods.synced.is_set()):
            raise Unavailable("The controller is starting.", "It is tried again.")
        record = self._job_of(job)
        return record.uid if record else None

    def _job_of(self, job: str) -> JobRecord | None:
        """Return the record of a job's Job: in the namespace where we made it, and no other."""
        if job not in self._namespaces:
            try:
                origin = self.exchange.document(job, layout.ORIGIN)
            except NotFound:
                return None
            self._namespaces[job] = (origin or {}).get("namespace", "")
        return self.jobs.records.get(f"{self._namespaces[job]}/{job}")

    async def run(self) -> None:
        """Work for ever."""
        workers = (self._work() for _ in range(WORKERS))
        await asyncio.gather(self.jobs.run(), self.pods.run(), self._resync(), *workers)

    async def _resync(self) -> None:
        while True:
            await self._synced()
            for name in await asyncio.to_thread(self.exchange.jobs):
                if name not in self._settled:
                    self.poke(name)
            await asyncio.sleep(RESYNC)

    async def _synced(self) -> None:
        """Wait until the records are complete: before that, absence means nothing."""
        await self.jobs.synced.wait()
        await self.pods.synced.wait()

    async def _work(self) -> None:
        await self._synced()
        while True:
            name = await self._queue.get()
            self._queued.discard(name)
            if name in self._busy:
                self._again.add(name)  # never two steps of one job at a time
                continue
            self._busy.add(name)
            try:
                await self._reconcile(name)
                self._failures.pop(name, None)
            except JobsError as error:
                _log.warning("%s: %s", name, error)
                self._try_again(name)
            except Exception:  # whatever is wrong with one job must not stop the others
                _log.exception("%s cannot be worked on", name)
                self._try_again(name)
            finally:
                self._busy.discard(name)
                if name in self._again:
                    self._again.discard(name)
                    self.poke(name)

    def _try_again(self, name: str) -> None:
        """Look at a job again later, and later each time."""
        count = self._failures[name] = self._failures.get(name, 0) + 1
        delay = min(RETRY * 2 ** min(count - 1, 10), MAX_RETRY)
        asyncio.get_running_loop().call_later(delay, self.poke, name)

    async def _reconcile(self, name: str) -> None:
        """Do one job's next step."""
        if not (self.exchange.root / name / layout.REQUEST).is_file():
            return  # a Job whose directory was deleted, or none of ours
        request = self.exchange.request(name)
        directory = self.exchange.directory(name)
        if await self._has_ended(name):
            return
        if (directory / layout.CANCEL).exists():
            await self._end(request)
        elif self._job_of(name) is None:
            await self._create_or_mourn(request)
        else:
            await self._check(name)

    async def _has_ended(self, name: str) -> bool:
        """Tell whether the last attempt has its outcome; a deleted job is removed then."""
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

    async def _create_or_mourn(self, request: Request) -> None:
        """Create the Job; if there had been one, its disappearance is the end of the attempt."""
        name, directory = request.name, self.exchange.directory(request.name)
        if layout.attempts(directory):
            message = "The Job was deleted while it ran; what it had printed is kept."
            await self._finish(name, "Lost", message)
            return
        if time.monotonic() - self._created.get(name, -RESYNC) < RESYNC:
            return  # created a moment ago: the watch has not said so yet
        origin = self.exchange.document(name, layout.ORIGIN) or {}
        try:
            await self.cluster.create_job(job_manifest(request, origin, self.pods_in_common))
        except Conflict:  # created before, and not listed yet
            pass
        except (Refused, NotFound) as error:  # by policy or quota, or its namespace is gone
            await self._finish(name, "BackendError", error.message)
            return
        self._created[name] = time.monotonic()
        _log.info("%s: Job created", name)

    async def _check(self, name: str) -> None:
        """See whether a job's pod died without telling: then finish for it."""
        pod, job = self.pod_of(name), self._job_of(name)
        if pod is None and (job is None or not job.finished):
            return
        if pod is not None and not pod.terminal:
            return
        reason, message = verdict(pod)
        _log.info("%s: %s %s", name, reason, message)
        await self._finish(name, reason, message)

    async def _end(self, request: Request) -> None:
        """Carry out a cancel: the pod's deletion, or the Job's where there is no pod to tell."""
        name = request.name
        pod = self.pod_of(name)
        if pod is not None and pod.scheduled:
            if not pod.terminal:
                await self.cluster.delete_pod(pod.namespace, pod.name, CANCEL_GRACE)
                return
        elif namespace := (self.exchange.document(name, layout.ORIGIN) or {}).get("namespace"):
            # Whatever the records say: it may have been created so lately that none is there yet.
            await self.cluster.delete_job(namespace, name)
        await self._finish(name, "Terminated", "The job was cancelled.")

    async def _finish(self, name: str, reason: str, message: str) -> None:
        """Have result and outcome written by the runner's own code, in a process."""
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "job_runner",
            "finish",
            str(self.exchange.directory(name)),
            "--reason",
            reason,
            "--message",
            message,
        )
        if await process.wait() != 0:
            raise Unavailable(f"job_runner finish ended with {process.returncode}.")
        self.poke(name)
