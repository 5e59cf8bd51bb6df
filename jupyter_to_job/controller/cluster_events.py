"""Kubernetes events on the Jobs of our jobs, for people who look at a cluster with kubectl.

They are told beside the work: a few a second, from a short queue. One that does not fit, or that
the API server does not take, is lost, for the exchange has it all. An event is read by everybody
who may read events of the namespace, so it has no text that comes from a notebook.
"""

from __future__ import annotations

import asyncio
import logging
import os
import secrets
import socket
from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from typing import Protocol

from ..backends.kubernetes.records import PREFIX, Manifest
from ..domain.errors import JobsError
from ..exchange.records import ClusterJob

REPORTER = f"{PREFIX}/controller"
INTERVAL = 0.2
"""Seconds between two events."""
MAX_WAITING = 100
"""Events in the queue, at most."""
MAX_NOTE = 1024
"""Bytes of a note that the API server takes."""
END, FAIL, DELIVER, HOLD = "End", "Fail", "Deliver", "Hold"
"""What was done, in an event's field `action`."""
Tell = Callable[[ClusterJob, str, str, str], object]
"""Makes an event of a Job: its action, a reason in CamelCase, and a note for people."""
_log = logging.getLogger(__name__)


class EventsCluster(Protocol):
    """The part of the cluster that this needs."""

    async def create_event(self, event: Manifest) -> None:
        """Create an event. Raises errors of our tree."""
        ...


class ClusterEvents:
    """Tells of jobs on their Jobs. Call its methods on the event loop only."""

    def __init__(self, cluster: EventsCluster) -> None:
        self._cluster = cluster
        self._queue: asyncio.Queue[Manifest] = asyncio.Queue(MAX_WAITING)
        self._problem = ""

    def tell(self, job: ClusterJob, action: str, reason: str, note: str) -> None:
        """Queue an event on a Job. One with the action `Fail` is a warning."""
        if not self._queue.full():
            self._queue.put_nowait(event_manifest(job, action, reason, note))

    async def run(self) -> None:
        """Send events for ever."""
        while True:
            event = await self._queue.get()
            try:
                await self._cluster.create_event(event)
            except JobsError as error:
                self._report(str(error))
            except Exception:  # an event must not end the controller
                _log.exception("an event is lost")
            else:
                self._report("")
            await asyncio.sleep(INTERVAL)

    def _report(self, problem: str) -> None:
        """Log a problem when it begins and changes; not for each event."""
        if problem and problem != self._problem:
            _log.warning("events of jobs are lost: %s", problem)
        self._problem = problem


def event_manifest(job: ClusterJob, action: str, reason: str, note: str) -> Manifest:
    """Return an event of events.k8s.io/v1 about a Job."""
    moment = datetime.now(timezone.utc)
    if moment.microsecond == 0:  # it would be written without them, which the API server refuses
        moment += timedelta(microseconds=1)
    return {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"name": f"{job.name}.{secrets.token_hex(8)}", "namespace": job.namespace},
        "eventTime": moment.isoformat(),
        "action": action,
        "reason": reason,
        "type": "Warning" if action == FAIL else "Normal",
        "note": note.encode()[:MAX_NOTE].decode(errors="ignore"),
        "reportingController": REPORTER,
        "reportingInstance": f"{socket.gethostname()}-{os.getpid()}",
        "regarding": {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "namespace": job.namespace,
            "name": job.name,
            "uid": job.uid,
        },
    }
