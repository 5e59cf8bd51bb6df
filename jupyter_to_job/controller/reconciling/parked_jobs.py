"""Jobs that are left alone until the records of their namespace are complete.

Before that a missing Job means nothing, so nothing can be decided.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from ...domain.state import Placement
from ..cluster.job_objects import JobObjects

_log = logging.getLogger(__name__)


class ParkedJobs:
    """The jobs of each namespace that wait. Call its methods on the event loop only.

    `enqueue` is called with the name of each one that can be worked on.
    """

    def __init__(self, objects: JobObjects, enqueue: Callable[[str], object]) -> None:
        self._objects = objects
        self._enqueue = enqueue
        self._waiting: dict[str, set[str]] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    def park(self, name: str, namespace: str) -> Placement | None:
        """Leave a job alone; return why if its namespace is not watched, and the job is new."""
        waiting = self._waiting.setdefault(namespace, set())
        is_watched, is_new = self._objects.covers(namespace), name not in waiting
        if not waiting and is_watched:
            unpark = asyncio.get_running_loop().create_task(self._unpark(namespace))
            self._tasks.add(unpark)
            unpark.add_done_callback(self._tasks.discard)
        waiting.add(name)
        if is_watched or not is_new:
            return None
        message = f"The namespace {namespace!r} is not in JUPYTER_TO_JOB_NAMESPACES any more."
        _log.warning("%s: %s", name, message)
        return Placement(reason="BackendError", message=message)

    async def _unpark(self, namespace: str) -> None:
        await self._objects.wait_until_synced(namespace)
        for name in self._waiting.pop(namespace, ()):
            self._enqueue(name)
