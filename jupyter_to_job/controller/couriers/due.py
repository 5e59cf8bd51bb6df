"""When a courier is due, and what becomes of one: a pure function of what was seen.

A dev pod has the first minute. A courier that fails is followed by another one, ever later.
"""

from __future__ import annotations

from dataclasses import dataclass

from job_runner.protocol.units import format_duration

from ...backends.kubernetes import PodRecord, explain_refusal
from .manifest import DEADLINE_SECONDS

MIN_BACKOFF, MAX_BACKOFF = 5.0, 3600.0
"""Seconds between the end of a courier that failed and the next one: at least, and at most."""
START_LIMIT = 60.0
"""Seconds within which a courier's container has to start."""
STALE_WATCH = 10.0
"""Seconds after which a new Job that no watch has told of counts as gone."""


@dataclass(frozen=True)
class SeenCourier:
    """A courier that was started `age` seconds ago, and its pod as far as a watch has told of it.

    `is_known`: so has one of its Job; `is_over`: that Job has ended. `refusal` is what the cluster
    said when it created no pod. `has_reported`: the gateway has been told why nothing could be
    published.
    """

    age: float
    is_known: bool = False
    is_over: bool = False
    pod: PodRecord | None = None
    refusal: str = ""
    has_reported: bool = False


@dataclass(frozen=True)
class SeenDelivery:
    """A job whose result is to be delivered. All times are seconds before now.

    `ended` is how long ago its outcome was decided, `failed` how long ago the last try failed, of
    a courier or a dev pod, and `failures` how many couriers failed.
    """

    ended: float
    failed: float | None = None
    failures: int = 0
    courier: SeenCourier | None = None


@dataclass(frozen=True)
class LookAgain:
    """Nothing is to be done for so many seconds, unless something happens."""

    seconds: float


@dataclass(frozen=True)
class StartCourier:
    """Start a courier."""


@dataclass(frozen=True)
class EndCourier:
    """Delete a courier that has failed. `problem` says why, "" where that is on record."""

    problem: str


Step = LookAgain | StartCourier | EndCourier


def backoff(failures: int, after: float) -> float:
    """Return the seconds from a failure to the next try."""
    shortest = max(MIN_BACKOFF, after)
    return float(min(shortest * 2 ** min(max(failures - 1, 0), 20), MAX_BACKOFF))


def next_step(seen: SeenDelivery, after: float) -> Step:
    """Return what is to be done. A dev pod has `after` seconds before the first courier."""
    if seen.courier is not None:
        return _step_beside(seen.courier)
    wait = after - seen.ended
    if seen.failed is not None:
        wait = max(wait, backoff(seen.failures, after) - seen.failed)
    return LookAgain(wait) if wait > 0 else StartCourier()


def _step_beside(courier: SeenCourier) -> LookAgain | EndCourier:
    """Return what becomes of a courier whose result is not delivered yet."""
    pod = courier.pod
    is_gone = not courier.is_known and courier.age > STALE_WATCH
    if is_gone or courier.is_over or (pod is not None and pod.is_over):
        return EndCourier("" if courier.has_reported else _last_word(pod))
    if pod is not None and pod.begun:
        limit, problem = DEADLINE_SECONDS + START_LIMIT, _last_word(pod)
    else:
        limit, problem = START_LIMIT, _not_started(courier)
    if courier.age < limit:
        return LookAgain(limit - courier.age)
    return EndCourier("" if courier.has_reported else problem)


def _last_word(pod: PodRecord | None) -> str:
    word = ""
    if pod is not None:
        word = (pod.ended.message.strip() if pod.ended else "") or pod.message or pod.reason
    return f"The courier could not deliver: {word}" if word else "The courier ended without a word."


def _not_started(courier: SeenCourier) -> str:
    limit, pod = format_duration(int(START_LIMIT)), courier.pod
    if pod is None and courier.refusal:
        return f"The courier's pod is refused: {explain_refusal(courier.refusal).message}"
    if pod is None:
        return f"The courier's pod was not created within {limit}."
    if not pod.scheduled:
        return f"No node took the courier: {pod.waiting_message or pod.waiting}"
    reason = pod.waiting_message or pod.waiting or "its volume could not be mounted in time"
    return f"The courier did not start within {limit}: {reason}"
