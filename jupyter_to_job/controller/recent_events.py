"""The latest events of a job's Job and pod: what Kubernetes itself says of why a job waits.

They are listed when somebody looks at one job, and not watched: most events are of other objects,
and nobody ever reads them.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import logging
import threading
from functools import partial
from typing import Protocol

from ..backends.kubernetes import PodRecord
from ..domain.errors import JobsError
from ..domain.job import ClusterEvent
from ..exchange import FileExchange
from ..exchange.records import ClusterJob
from .callers.shared_calls import SharedCalls
from .reconciling.job_files import read_cluster_job

MAX_EVENTS = 10
"""Events that are told of a job: its latest."""
TTL = 5.0
"""Seconds for which an answer counts: a panel may look at a job again and again."""
MAX_WAIT = 2.0
"""Seconds for which somebody waits for the cluster."""
MAX_ASKING = 2
"""Threads that may wait for it: all small answers share a few."""
MAX_WAIT_FOR_TURN = 0.1
"""Seconds for which another one waits for its turn."""
_log = logging.getLogger(__name__)


class EventSource(Protocol):
    """The part of the cluster that is asked."""

    async def events_of(self, namespace: str, uid: str) -> list[ClusterEvent]:
        """Return the events of the object with a uid."""
        ...


class KnownPods(Protocol):
    """What knows the pods of Jobs."""

    def newest_pod(self, job: ClusterJob) -> PodRecord | None:
        """Return the latest pod of a Job that there is."""
        ...


class RecentEvents:
    """Tells the latest events of jobs. Make it on the event loop."""

    def __init__(self, cluster: EventSource, exchange: FileExchange, pods: KnownPods) -> None:
        self._cluster = cluster
        self._exchange = exchange
        self._pods = pods
        self._answers: SharedCalls[str, tuple[ClusterEvent, ...]] = SharedCalls(TTL)
        self._loop = asyncio.get_running_loop()
        self._turns = threading.BoundedSemaphore(MAX_ASKING)

    def of(self, name: str) -> tuple[ClusterEvent, ...] | None:
        """Return the latest events of a job, the oldest first; None if nobody can tell them now.

        There are none without a Job, and Kubernetes forgets them after an hour. Call it in a thread
        of its own.
        """
        job = read_cluster_job(self._exchange, name)
        if job is None:
            return ()
        if not self._turns.acquire(timeout=MAX_WAIT_FOR_TURN):
            return None
        try:
            return self._ask(job)
        except (JobsError, concurrent.futures.TimeoutError) as error:
            _log.warning("events of %s: the cluster says nothing: %r", name, error)
            return None
        finally:
            self._turns.release()

    def _ask(self, job: ClusterJob) -> tuple[ClusterEvent, ...]:
        """Return the events of a Job and its pod. Raises errors of ours, or TimeoutError."""
        answer = self._answers.get(job.uid, partial(self._list, job))
        future = asyncio.run_coroutine_threadsafe(answer, self._loop)
        try:
            return future.result(MAX_WAIT)
        finally:
            future.cancel()  # nobody waits for it any more

    async def _list(self, job: ClusterJob) -> tuple[ClusterEvent, ...]:
        pod = self._pods.newest_pod(job)
        uids = [job.uid] if pod is None else [job.uid, pod.uid]
        lists = await asyncio.gather(*(self._cluster.events_of(job.namespace, u) for u in uids))
        events = sorted(
            (event for events_of_one in lists for event in events_of_one), key=lambda e: e.time
        )
        return tuple(events[-MAX_EVENTS:])
