"""How many Jobs are created at the same time: the other jobs wait until one of them is done.

A webhook of the cluster may take many seconds for each. It must not hold up cancels and ends.
"""

from __future__ import annotations

from collections.abc import Callable


class CreationLimit:
    """Counts the jobs whose Job is being created. Call its methods on the event loop only.

    `enqueue` is called with the name of a job that waited, and may create its Job now.
    """

    def __init__(self, limit: int, enqueue: Callable[[str], object]) -> None:
        self._limit = limit
        self._enqueue = enqueue
        self._creating: set[str] = set()
        self._waiting: dict[str, None] = {}
        """A set that keeps its order: who waits longest is first."""

    def admit(self, name: str) -> bool:
        """Tell whether a job may create its Job now. It counts until `release`, or waits."""
        if name in self._creating:
            return True
        if len(self._creating) >= self._limit:
            self._waiting.setdefault(name)
            return False
        self._creating.add(name)
        return True

    def holds_back(self, name: str) -> bool:
        """Tell whether a job waits for another one."""
        return name in self._waiting

    def release(self, name: str) -> None:
        """Note that a job has been looked at, and admit the one that waits longest.

        That one may not want a Job any more. Its look releases it, too.
        """
        if name not in self._creating:
            return
        self._creating.discard(name)
        if self._waiting:
            oldest = next(iter(self._waiting))
            del self._waiting[oldest]
            self._creating.add(oldest)
            self._enqueue(oldest)
