"""When a courier is due, and what becomes of one: a pure function of observations.

A dev pod has the first minute. A courier that fails is followed by another one, ever later.
"""

from __future__ import annotations

from dataclasses import dataclass

from job_runner.protocol.units import format_duration

from ...backends.kubernetes import PodRecord, explain_refusal, waiting_reason
from ...backends.kubernetes.kueue import why_suspended
from .manifest import DEADLINE_SECONDS

MIN_BACKOFF, MAX_BACKOFF = 5.0, 3600.0
"""Seconds between the end of a courier that failed and the next one: at least, and at most."""
ERROR_LIMIT = 60.0
"""Seconds for which something may keep a courier from its start that does not pass by itself."""
STALE_WATCH = 10.0
"""Seconds after which a new Job that no watch has told of counts as gone."""


@dataclass(frozen=True)
class CourierObservation:
    """A courier that was started `age` seconds ago, and its pod as far as a watch has told of it.

    `is_known`: so has one of its Job; `is_over`: that Job has ended. `refusal` is what the cluster
    said when it created no pod. `has_reported`: the gateway has been told why nothing could be
    published. `error_age` is how long ago its pod first showed an error. `is_bound`: only one node
    has its volume. `wait_message` is what its job says of its wait. `is_suspended`: its Job gets no
    pod until it is released, by Kueue if it is in a `queue`. From then on `age` counts anew.
    """

    age: float
    is_known: bool = False
    is_over: bool = False
    pod: PodRecord | None = None
    refusal: str = ""
    has_reported: bool = False
    error_age: float = 0.0
    is_bound: bool = False
    wait_message: str = ""
    is_suspended: bool = False
    queue: str = ""


@dataclass(frozen=True)
class DeliveryObservation:
    """A job whose result is to be delivered. All times are seconds before now.

    `ended` is how long ago its outcome was decided, `failed` how long ago the last try failed, of
    a courier or a dev pod, and `failures` how many couriers failed.
    """

    ended: float
    failed: float | None = None
    failures: int = 0
    courier: CourierObservation | None = None


@dataclass(frozen=True)
class LookAgain:
    """Nothing is to be done for so many seconds, unless something happens."""

    seconds: float


@dataclass(frozen=True)
class StartCourier:
    """Start a courier."""


@dataclass(frozen=True)
class TellWait:
    """Say why a courier has not started yet, and look again after so many seconds."""

    problem: str
    seconds: float


@dataclass(frozen=True)
class EndCourier:
    """Delete a courier that has failed. `problem` says why, "" where that is on record."""

    problem: str


Step = LookAgain | StartCourier | TellWait | EndCourier


def backoff(failures: int, patience: float) -> float:
    """Return the seconds from a failure to the next try."""
    shortest = max(MIN_BACKOFF, patience)
    return float(min(shortest * 2 ** min(max(failures - 1, 0), 20), MAX_BACKOFF))


def next_step(delivery: DeliveryObservation, patience: float, start_limit: float) -> Step:
    """Return what is to be done. A dev pod has `patience` seconds before the first courier.

    A courier has `start_limit` seconds for its start, unless an error keeps it from that.
    """
    if delivery.courier is not None:
        return _step_beside(delivery.courier, start_limit)
    wait = patience - delivery.ended
    if delivery.failed is not None:
        wait = max(wait, backoff(delivery.failures, patience) - delivery.failed)
    return LookAgain(wait) if wait > 0 else StartCourier()


def shows_error(pod: PodRecord | None, *, is_bound: bool) -> bool:
    """Tell whether a pod that has not started shows something that does not pass by itself.

    One without a node does not, unless it `is_bound` to one: a new node may be on its way.
    """
    if pod is None:
        return True
    return is_bound if not pod.scheduled else waiting_reason(pod) is not None


def _step_beside(
    courier: CourierObservation, start_limit: float
) -> LookAgain | TellWait | EndCourier:
    """Return what becomes of a courier whose result is not delivered yet."""
    pod = courier.pod
    is_gone = not courier.is_known and courier.age > STALE_WATCH
    if is_gone or courier.is_over or (pod is not None and pod.is_over):
        return _end(courier, _last_word(pod))
    if pod is not None and pod.begun:
        remaining, problem = DEADLINE_SECONDS + start_limit - courier.age, _last_word(pod)
        return LookAgain(remaining) if remaining > 0 else _end(courier, problem)
    return _step_before_start(courier, start_limit)


def _step_before_start(
    courier: CourierObservation, start_limit: float
) -> LookAgain | TellWait | EndCourier:
    limit, age = start_limit, courier.age
    is_in_queue = courier.pod is None and courier.is_suspended and bool(courier.queue)
    if not is_in_queue and shows_error(courier.pod, is_bound=courier.is_bound):
        limit, age = ERROR_LIMIT, courier.error_age if courier.pod is not None else courier.age
    why = _why_not_started(courier)
    if age >= limit:
        within = format_duration(int(limit))
        return _end(courier, f"The courier did not start within {within}: {why}")
    remaining = limit - age
    if courier.age < ERROR_LIMIT:
        return LookAgain(min(remaining, ERROR_LIMIT - courier.age))
    message = f"The courier waits for its start: {why}"
    return LookAgain(remaining) if message == courier.wait_message else TellWait(message, remaining)


def _end(courier: CourierObservation, problem: str) -> EndCourier:
    return EndCourier("" if courier.has_reported else problem)


def _last_word(pod: PodRecord | None) -> str:
    word = ""
    if pod is not None:
        word = (pod.ended.message.strip() if pod.ended else "") or pod.message or pod.reason
    return f"The courier could not deliver: {word}" if word else "The courier ended without a word."


def _why_not_started(courier: CourierObservation) -> str:
    pod = courier.pod
    if pod is None and courier.is_suspended:
        return why_suspended(courier.queue)
    if pod is None and courier.refusal:
        return f"its pod is refused. {explain_refusal(courier.refusal).message}"
    if pod is None:
        return "its pod was not created"
    reason = pod.waiting_message or pod.waiting
    if not pod.scheduled:
        return f"no node takes it: {reason}" if reason else "no node takes it"
    return reason or "its volume is not mounted yet, or its image not pulled"
