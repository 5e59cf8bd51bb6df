"""How many jobs of a group may have a Job at once: the others wait until one ends.

What is known is in memory only. A controller that starts lets no job of a limited group begin
before it has looked at every job once: until then it does not know which ones run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from ...domain.reasons import GROUP_LIMIT, group_limit_message
from ...domain.state import Placement
from ...exchange import Request
from .job_files import JobFiles
from .next_step import JobObservation

_Group = tuple[str, str]
"""Owner and name."""


class GroupLimits:
    """Counts the jobs of each group that have a Job. Call its methods on the event loop only.

    `enqueue` is called with the name of a job that may begin now.
    """

    def __init__(self, enqueue: Callable[[str], object]) -> None:
        self._enqueue = enqueue
        self._unseen: set[str] | None = None
        self._running: dict[_Group, set[str]] = {}
        self._waiting: dict[_Group, dict[str, str]] = {}
        """The age of each job that waits, by its name."""
        self._unknown: dict[_Group, set[str]] = {}
        """Jobs that may have a Job that is not on record: their group waits until that is known."""

    def begin(self, names: Iterable[str]) -> None:
        """Note at the start which jobs there are to look at; later calls change nothing."""
        if self._unseen is None:
            self._unseen = set(names)
            self._wake_if_all_seen()

    def saw(self, name: str) -> None:
        """Note that a job was looked at."""
        if self._unseen and name in self._unseen:
            self._unseen.discard(name)
            self._wake_if_all_seen()

    def note(self, files: JobFiles, *, is_known: bool = True) -> None:
        """Note a job that has a Job, or has ended.

        `is_known`: it has no Job if none is on record. Otherwise the cluster must be asked first.
        """
        request = files.request
        if request.group is None:
            return
        group = _group_of(request)
        if JobObservation(attempts=files.attempts).has_ended:
            self.release(request.name)
        elif files.job is not None:
            self._running.setdefault(group, set()).add(request.name)
        elif not is_known:
            self._unknown.setdefault(group, set()).add(request.name)
            return
        self._know(group, request.name)

    def _know(self, group: _Group, name: str) -> None:
        """Note that it is known whether a job has a Job; the last one wakes its group."""
        unknown = self._unknown.get(group, set())
        unknown.discard(name)
        if not unknown and self._unknown.pop(group, None) is not None:
            self._wake(group)

    def held_back(self, request: Request) -> Placement | None:
        """Return why a job's Job must not be created now; None: it counts as running then."""
        if request.group is None:
            return None
        group, limit = _group_of(request), request.group_limit
        running = self._running.setdefault(group, set())
        # None: nothing was listed yet.
        is_unsure = self._unseen != set() or group in self._unknown
        is_full = limit is not None and (len(running) >= limit or is_unsure)
        if limit is not None and is_full and request.name not in running:
            self._waiting.setdefault(group, {})[request.name] = request.age
            message = group_limit_message(request.group, limit)
            return Placement(reason=GROUP_LIMIT, message=message)
        self._waiting.get(group, {}).pop(request.name, None)
        running.add(request.name)
        return None

    def holds_back(self, name: str) -> bool:
        """Tell whether a job waits for another one of its group."""
        return any(name in waiting for waiting in self._waiting.values())

    def release(self, name: str, *, was_refused: bool = False) -> None:
        """Note that a job has no Job any more, and let the one begin that waits longest.

        Where the cluster refused the Job nobody is woken: one after the other would be refused.
        """
        for group in list(self._unknown):
            self._know(group, name)
        for group, running in list(self._running.items()):
            waiting = self._waiting.get(group, {})
            waiting.pop(name, None)
            if name in running:
                running.discard(name)
                if waiting and not was_refused:
                    oldest = min(waiting, key=lambda waiter: waiting[waiter])
                    del waiting[oldest]  # it comes back where the place is taken again
                    self._enqueue(oldest)
            if not running and not waiting:
                self._running.pop(group, None)
                self._waiting.pop(group, None)

    def _wake_if_all_seen(self) -> None:
        if self._unseen is not None and not self._unseen:
            for group in self._waiting:
                self._wake(group)

    def _wake(self, group: _Group) -> None:
        waiting = self._waiting.get(group, {})
        for name in sorted(waiting, key=lambda waiter: waiting[waiter]):
            self._enqueue(name)


def _group_of(request: Request) -> _Group:
    return request.owner, request.group or ""
