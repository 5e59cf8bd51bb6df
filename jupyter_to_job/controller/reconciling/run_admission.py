"""Whether a run may begin, asked when the agent of its pod claims an attempt.

The Job may be long made by then: it was suspended, its pods were refused, or this is a retry. The
claims that it mounts could be exchanged until its pod was on a node. Now they cannot, and nothing
of them was executed: the notebook's container waits for the job's files, which the agent has only
after this (`backends.kubernetes.start_command`).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from job_runner.protocol import layout

from ...domain.errors import Conflict, NotFound, Refused
from ...exchange import FileExchange
from ...exchange.records import ClusterJob
from ..job_tracker import JobTracker
from .claims import ClaimsCluster, require_same_claims
from .job_files import is_ending, read_cluster_job, write_stop
from .next_step import RecordStop

_log = logging.getLogger(__name__)


class RunAdmission:
    """Admits runs, and stops jobs. Call its methods on the event loop only.

    `enqueue` has the reconciler end a job that was stopped.
    """

    def __init__(
        self,
        cluster: ClaimsCluster,
        exchange: FileExchange,
        tracker: JobTracker,
        enqueue: Callable[[str], None],
    ) -> None:
        self._cluster = cluster
        self._exchange = exchange
        self._tracker = tracker
        self._enqueue = enqueue

    async def admit(self, name: str, attempt: str) -> None:
        """Raise Refused, and have the job end, if a claim that it mounts is not its dev pod's.

        `attempt` is the folder of the attempt that is being claimed. One that was claimed before
        has been admitted. Raises Unavailable while the API server does not answer: then the agent
        tries again.
        """
        if await asyncio.to_thread(self._is_decided, name, attempt):
            return
        request = await asyncio.to_thread(self._exchange.request, name)
        origin = await asyncio.to_thread(self._exchange.document, name, layout.ORIGIN) or {}
        try:
            await require_same_claims(self._cluster, request, origin)
        except Conflict as error:
            job = await asyncio.to_thread(read_cluster_job, self._exchange, name)
            message = (
                f"{error.message} So the notebook was not run. "
                "Submit it again from a server that runs now."
            )
            await self.stop(name, RecordStop("BackendError", message), job, "VolumeReplaced")
            # No Conflict: after that an agent would claim the next attempt.
            raise Refused(error.message, "The job is being ended.") from error

    def _is_decided(self, name: str, attempt: str) -> bool:
        """Tell whether the attempt is claimed already, or the job ends: then nothing begins."""
        try:
            is_claimed = self._exchange.has(name, f"{attempt}/{layout.RUNNER}")
        except NotFound:
            return True
        return is_claimed or is_ending(self._exchange, name)

    async def stop(self, name: str, step: RecordStop, job: ClusterJob | None, cause: str) -> None:
        """Record why a job is being ended, and tell of it. `cause` is that of the event."""
        await asyncio.to_thread(write_stop, self._exchange, name, step)
        self._tracker.give_up(job, cause, f"{step.reason}: {step.message}")
        _log.info("%s: %s %s", name, step.reason, step.message)
        self._enqueue(name)
