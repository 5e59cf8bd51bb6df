"""What a notification may tell of a job, read from its directory. Secrets of the job stay out."""

from __future__ import annotations

import contextlib
import string
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from job_runner.protocol import layout, times

from ..domain.errors import Damaged
from ..domain.job import State
from ..domain.state import (
    AttemptStatus,
    Placement,
    compute_state,
    deciding_attempt,
    delivered_attempt,
)
from ..exchange import FileExchange, Request
from ..exchange.records import DeliveryRecord, Wish
from ..service.reading.attempts import read_attempts

MAX_MESSAGE = 500
"""Characters of a job's message that are told."""
_MIN_MASKED = 6
"""Characters from which a value is taken out of a message: shorter ones are in any text."""
_MASK = "***"
_MARKS = ("…", '"')
"""What follows in a message where a value is cut."""
_STRIPPED = f"{string.whitespace}."
"""Characters that a message may leave out around a value."""
_MAX_READ, _MAX_FORMS = 10_000, 10_000
"""Characters of a message, and forms of a job's values, that are looked at: users may send any
number."""


@dataclass(frozen=True)
class JobFacts:
    """A job at one moment. Times are RFC 3339 in UTC.

    `started` is when its latest attempt began. `result` is the path of the notebook that was
    delivered. Both paths count from `workspace`, which is `/` for a job of a cluster. `is_settled`:
    nothing more is known of its delivery soon.
    """

    name: str
    notebook: str
    owner: str
    flavor: str
    device: str
    submitted: str
    state: State
    group: str | None = None
    reason: str | None = None
    message: str | None = None
    started: str | None = None
    finished: str | None = None
    result: str | None = None
    workspace: str = "/"
    is_settled: bool = False


def read_facts(exchange: FileExchange, name: str) -> JobFacts:
    """Read how a job stands. Raises NotFound and Damaged."""
    request = exchange.request(name)
    attempts = read_attempts(exchange, name)
    status = compute_state(attempts, Placement(), _cancelled_at(exchange, name))
    deciding = deciding_attempt(attempts)
    has_ended = deciding is not None and deciding.ended is not None
    latest = deciding or max(attempts, key=lambda a: a.number, default=None)
    outcome = exchange.outcome(name, deciding.number) if deciding is not None else None
    started = outcome.started if outcome is not None else None
    if latest is not None and not has_ended and latest.counts:
        started = _begun(exchange, name, latest)
    delivery = _delivery(exchange, name)
    is_nothing = has_ended and delivered_attempt(attempts) is None
    # With the retention the values are gone that are taken out of a message.
    has_message = has_ended and not exchange.has(name, layout.CLEARED)
    return JobFacts(
        name=request.name,
        notebook=request.notebook,
        owner=request.owner,
        flavor=request.flavor,
        device=request.device,
        submitted=request.submitted,
        group=request.group,
        state=status.state,
        reason=status.reason,
        message=_without_values(status.message, request) if has_message else None,
        started=started,
        finished=outcome.finished if outcome is not None else None,
        result=delivery.path if delivery is not None else None,
        workspace=request.workspace,
        is_settled=delivery is not None or is_nothing or exchange.has(name, layout.HELD),
    )


def _cancelled_at(exchange: FileExchange, name: str) -> str | None:
    """Return when a cancel was asked for; "" where the clocks of two hosts cannot be compared."""
    if not exchange.has(name, layout.CANCEL):
        return None
    if exchange.has(name, layout.ORIGIN):
        return ""
    with contextlib.suppress(Damaged):
        wish = exchange.record(name, layout.CANCEL, Wish)
        return wish.time if wish else None
    return ""


def _begun(exchange: FileExchange, name: str, attempt: AttemptStatus) -> str | None:
    """Return when an attempt was claimed: its runner.json is written then, and never again."""
    path = layout.attempt_dir(exchange.directory(name), attempt.number) / layout.RUNNER
    with contextlib.suppress(OSError):
        return times.from_unix(path.stat().st_mtime)
    return None


def _delivery(exchange: FileExchange, name: str) -> DeliveryRecord | None:
    with contextlib.suppress(Damaged):
        return exchange.record(name, layout.DELIVERY, DeliveryRecord)
    return None


def _without_values(message: str | None, request: Request) -> str | None:
    """Return a job's message without the values that it was given, and not too long.

    An exception may quote a variable or a parameter, which may be a secret. The runner shows one
    line of its text, and cuts that where it is long: at `…`, or at the end of a quotation.
    """
    if message is None:
        return None
    values = (*request.env.values(), *_texts(request.parameters))
    forms = {form for value in values for form in _forms(value)}
    if len(forms) > _MAX_FORMS:
        return None
    message, ordered = message[:_MAX_READ], sorted(forms)
    longest_first = sorted(forms, key=len, reverse=True)
    for form in longest_first:  # or a mark of its own would cut it
        if any(mark in form for mark in _MARKS):
            message = message.replace(form, _MASK)
    for mark in _MARKS:
        *cut, tail = message.split(mark)
        message = mark.join([*(_without_beginning(text, ordered) for text in cut), tail])
    for form in longest_first:
        message = message.replace(form, _MASK)
    return message if len(message) <= MAX_MESSAGE else f"{message[: MAX_MESSAGE - 1]}…"


def _without_beginning(text: str, forms: list[str]) -> str:
    """Return a text without the beginning of a form that it ends with; `forms` are sorted."""
    for start in range(len(text) - _MIN_MASKED + 1):
        end = text[start:]
        place = bisect_left(forms, end)
        if place < len(forms) and forms[place].startswith(end):
            return text[:start] + _MASK
    return text


def _forms(value: str) -> Iterator[str]:
    """Yield how a message may show a value that is long enough: whole, or one line of it."""
    for text in (value, *value.splitlines()):
        for form in (text, text.strip(_STRIPPED), repr(text)[1:-1]):
            if len(form) >= _MIN_MASKED:
                yield form


def _texts(value: Any) -> set[str]:
    """Return all texts and numbers in a JSON value, which may be nested deeply."""
    texts, parts = set(), [value]
    while parts:
        part = parts.pop()
        if isinstance(part, str | int | float):
            texts.add(str(part))
        elif isinstance(part, dict):
            parts += part.values()
        elif isinstance(part, list):
            parts += part
    return texts
