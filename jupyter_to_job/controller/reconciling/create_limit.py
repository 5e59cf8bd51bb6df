"""How many Jobs are created at a time: an admission webhook may hang, and hold each create.

Without a limit the creates of a sweep take all workers, and cancels and the ends of runs wait.
"""

from __future__ import annotations

from collections.abc import Callable

MAX_CREATES = 8
"""Jobs that are created at a time: half of the reconciler's workers."""


class CreateLimit:
    """The jobs that may create their Job now, and the line of those whose turn comes later.

    `enqueue` is called with a job whose turn has come.
    """

    def __init__(self, enqueue: Callable[[str], object]) -> None:
        self._enqueue = enqueue
        self._admitted: set[str] = set()
        self._line: dict[str, None] = {}

    def admit(self, job: str) -> bool:
        """Tell whether a job may create its Job now; if not, it keeps a place in the line."""
        if len(self._admitted) < MAX_CREATES:
            self._admitted.add(job)
        elif job not in self._admitted:
            self._line.setdefault(job)
        return job in self._admitted

    def is_waiting(self, job: str) -> bool:
        """Tell whether a job is in the line."""
        return job in self._line

    def release(self, job: str) -> None:
        """Note that a worker is done with a job, and admit the first one of the line.

        That one stays admitted until it was looked at, so nobody overtakes it. It may have been
        cancelled meanwhile.
        """
        if job in self._admitted:
            self._admitted.remove(job)
            if self._line:
                first = next(iter(self._line))
                del self._line[first]
                self._admitted.add(first)
                self._enqueue(first)
