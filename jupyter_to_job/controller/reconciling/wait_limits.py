"""How long a pod may wait for its start, and why a job is ended that waits longer.

A job that waits for ever tells nobody what is wrong. What may pass by itself has more time.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

from job_runner.protocol.units import format_duration

from ...backends.kubernetes import PodRecord, waiting_reason
from ...domain.errors import BadInput
from ...domain.quantities import parse_duration


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
    ending: tuple[str, str]


def limit_of(pod: PodRecord, limits: WaitLimits, *, is_claimed: bool) -> Limit | None:
    """Return the limit of what a pod waits for; None if it waits for nothing, or may for ever.

    An agent that `is_claimed` has begun: then an image is being pulled, which may take as long as
    it does.
    """
    if pod.begun or pod.is_over or pod.deleting:
        return None
    reason = waiting_reason(pod)
    if not pod.scheduled:
        name, seconds, what = "unschedulable", limits.unschedulable, "No node took the pod"
    elif reason == "ImageUnavailable":
        name, seconds, what = "image", limits.image, "The image cannot be pulled"
    elif reason is not None:
        name, seconds, what = "container", limits.container, "The container cannot be created"
    else:
        seconds = 0 if is_claimed else limits.agent
        name, what = "agent", "The job's agent did not begin"
    if not seconds:
        return None
    reason = reason or ("BackendError" if pod.scheduled else "Unschedulable")
    details = f": {pod.waiting_message}" if pod.waiting_message else "."
    return Limit(name, seconds, (reason, f"{what} within {format_duration(seconds)}{details}"))
