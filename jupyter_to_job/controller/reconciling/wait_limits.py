"""How long a pod may wait for its start, and why a job is ended that waits longer.

A job that waits for ever tells nobody what is wrong. What may pass by itself has more time.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, fields

from job_runner.protocol.units import format_duration

from ...backends.kubernetes import PodRecord, waiting_reason
from ...domain.errors import BadInput
from ...domain.quantities import parse_duration
from .next_step import Ending


@dataclass(frozen=True)
class WaitLimits:
    """Seconds that a pod may wait for each of these; 0: for ever."""

    image: int = 600
    container: int = 300
    agent: int = 600
    unschedulable: int = 24 * 3600

    @classmethod
    def parse(cls, text: str) -> WaitLimits:
        """Return the limits that a setting such as `image=5m,unschedulable=0` changes.

        Raises BadInput.
        """
        names = [field.name for field in fields(cls)]
        limits = {}
        for entry in filter(None, text.split(",")):
            name, _, value = (part.strip() for part in entry.partition("="))
            if name not in names:
                raise BadInput(f"{entry!r} is no limit.", f"There are: {', '.join(names)}.")
            limits[name] = 0 if value == "0" else parse_duration(value)
        return cls(**limits)


@dataclass(frozen=True)
class Limit:
    """What a pod waits for, how many `seconds` it may, and what its job ends with after them."""

    name: str
    seconds: int
    ending: Ending


def limit_of(pod: PodRecord, limits: WaitLimits, *, is_claimed: bool) -> Limit | None:
    """Return the limit of what a pod waits for; None if it waits for nothing, or may for ever.

    An agent that `is_claimed` has begun: then an image is being pulled, which may take as long as
    it does.
    """
    if pod.begun or pod.is_over or pod.deleting:
        return None
    reason = waiting_reason(pod)
    if not pod.scheduled:
        name, seconds, problem = "unschedulable", limits.unschedulable, "No node took the pod"
    elif reason == "ImageUnavailable":
        name, seconds, problem = "image", limits.image, "The image cannot be pulled"
    elif reason is not None:
        name, seconds, problem = "container", limits.container, "The container cannot be created"
    else:
        seconds = 0 if is_claimed else limits.agent
        name, problem = "agent", "The job's agent did not begin"
    if not seconds:
        return None
    reason = reason or ("BackendError" if pod.scheduled else "Unschedulable")
    details = f": {pod.waiting_message}" if pod.waiting_message else "."
    return Limit(name, seconds, (reason, f"{problem} within {format_duration(seconds)}{details}"))


class WaitTimes:
    """Since when each pod waits for what, as this process has seen it.

    `look_after` has a job looked at when some seconds have passed.
    """

    def __init__(self, limits: WaitLimits, look_after: Callable[[str, float], object]) -> None:
        self._limits = limits
        self._look_after = look_after
        self._since: dict[str, dict[str, float]] = {}

    def ending_of(self, pods: Iterable[PodRecord], claims: Collection[str | None]) -> Ending | None:
        """Return why one of a job's pods has waited too long; `claims` are those that have begun.

        A reason counts from its first time: between two tries a pod shows none.
        """
        now = time.monotonic()
        for pod in pods:
            limit = limit_of(pod, self._limits, is_claimed=pod.uid in claims)
            if limit is None:
                continue
            first_seen = self._since.setdefault(pod.uid, {})
            if limit.name not in first_seen:
                first_seen[limit.name] = now
                self._look_after(pod.job, limit.seconds)
            if now - first_seen[limit.name] >= limit.seconds:
                return limit.ending
        return None

    def forget(self, pods: Iterable[PodRecord]) -> None:
        """Forget the pods of a job that has ended."""
        for pod in pods:
            self._since.pop(pod.uid, None)
