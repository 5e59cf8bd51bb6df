"""Which events of a job a hook is to be told now, and when to look again: pure functions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from job_runner.protocol import times

from ..domain.job import State
from .facts import JobFacts
from .hooks import RUNNING, WAITING, Hook


def due_events(hook: Hook, job: JobFacts, moment: float) -> Iterator[str]:
    """Yield the events of `when` that hold at `moment`, in unix seconds."""
    if job.group is not None and not hook.groups:
        return
    for event, limit in hook.when.items():
        if limit is None:
            if event == job.state.value:
                yield event
        else:
            begun = _begun(event, job)
            if begun is not None and moment >= begun + limit:
                yield event


def next_limit(hooks: Iterable[Hook], job: JobFacts, moment: float) -> float | None:
    """Return the unix time of the next event that only time brings; None if there is none."""
    limits = []
    for hook in hooks:
        for event, limit in hook.when.items():
            begun = _begun(event, job) if limit is not None else None
            if begun is not None and limit is not None and begun + limit > moment:
                limits.append(begun + limit)
    return min(limits, default=None)


def _begun(event: str, job: JobFacts) -> float | None:
    """Return since when a job waits or runs, whichever of them the event is about."""
    if job.state.final:
        return None
    since = None
    if event == WAITING and job.state is State.QUEUED:
        since = job.submitted
    elif event == RUNNING and job.state is not State.QUEUED:
        since = job.started
    return None if since is None else times.parse(since).timestamp()
