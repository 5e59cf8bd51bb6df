"""Retention: clears large pieces of jobs some time after their delivery. Request and outcome stay.

`cleared.json` is written first. From then on the job counts as cleared, so no reader takes a part
of it for all of it. The snapshot is removed last: while it exists, a later run finishes a removal
that was killed.
"""

from __future__ import annotations

import contextlib
import logging
import shutil
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import NamedTuple

from job_runner.protocol import documents, layout, times
from job_runner.protocol.outcome import Outcome
from job_runner.protocol.units import format_duration

from ..domain.errors import BadInput, Cleared, JobsError
from ..domain.quantities import parse_duration, parse_quantity
from .ballast import with_ballast
from .disk_use import bytes_on_disk, freed_with, remove_folder
from .files import FileExchange
from .records import ClearedRecord, DeliveryRecord, HeldRecord, PodEnd

FOREVER = "forever"
_log = logging.getLogger(__name__)
_IN_ATTEMPT = (layout.JOURNAL, layout.ARTIFACTS, layout.CREATED, layout.RESULT)


@dataclass(frozen=True)
class Policy:
    """`retention`: seconds after delivery, None for ever. `cap`: bytes in all, None for no cap."""

    retention: int | None
    cap: int | None = None

    @classmethod
    def parse(cls, retention: str, cap: str = "") -> Policy:
        """Read the settings: `7d`, `0` (as soon as delivered) or `forever`; `20Gi` or nothing.

        Raises BadInput.
        """
        text = retention.strip()
        seconds = 0 if text == "0" else None if text == FOREVER else parse_duration(text)
        amount = int(parse_quantity(cap)) if cap.strip() else None
        if amount == 0:
            raise BadInput("A cap of 0 bytes is none.", "Leave it empty for no cap.")
        return cls(seconds, amount)


class _Candidate(NamedTuple):
    """A job that may be cleared: unix time of its delivery or end, and name.

    `has_failed`: it can never be delivered, so this is the only copy of its result.
    """

    since: float
    name: str
    has_failed: bool


def enforce(exchange: FileExchange, policy: Policy, moment: float | None = None) -> list[str]:
    """Clear what is over the retention, then the oldest while the exchange is over its cap.

    Return the names of the cleared jobs. Only delivered jobs, those without a result, and after the
    retention those that can never be delivered, are ever cleared. Safe to repeat, to kill, and to
    run in several processes at once. `moment` is unix time. A job that cannot be read or removed
    now is left for the next run.
    """
    moment = time.time() if moment is None else moment
    cleared = []
    if policy.retention is not None:
        note = f"Kept for {format_duration(policy.retention)} after"
        for job in _candidates(exchange):
            message = f"{note} its delivery failed" if job.has_failed else f"{note} delivery"
            if job.since + policy.retention <= moment and _clear(exchange, job.name, message):
                cleared.append(job.name)
    if policy.cap is not None:
        message = "Removed early, because the exchange was over its cap"
        for job in _jobs_over_cap(exchange, policy.cap):
            if _clear(exchange, job.name, message):
                cleared.append(job.name)
    return cleared


def delivered_at(exchange: FileExchange, name: str) -> float | None:
    """Return when the retention of a job began, in unix seconds; None while it has not."""
    try:
        candidate = _candidate(exchange, name)
    except (JobsError, ValueError, OSError):  # it is kept
        return None
    return None if candidate is None else candidate.since


def raise_if_cleared(exchange: FileExchange, job: str) -> None:
    """Raise Cleared if the job's snapshot, journal and result were cleared, with the date."""
    cleared = exchange.record(job, layout.CLEARED, ClearedRecord)
    if cleared is not None:
        delivery = exchange.record(job, layout.DELIVERY, DeliveryRecord)
        hint = f"The result was delivered as {delivery.path}." if delivery else ""
        raise Cleared(f"{job}: {cleared.message}; gone since {cleared.time[:10]}.", hint)


def _candidates(exchange: FileExchange) -> Iterator[_Candidate]:
    """Yield the jobs of whose delivery nothing more is to come, and that are not cleared yet."""
    for name in exchange.jobs():
        try:
            if not (exchange.root / name / layout.SNAPSHOT).exists():
                continue  # cleared, or being removed
            candidate = _candidate(exchange, name)
        except (JobsError, ValueError, OSError):
            _log.warning("%s cannot be read, and is kept", name)
            continue
        if candidate is not None:
            yield candidate


def _candidate(exchange: FileExchange, name: str) -> _Candidate | None:
    """Return a job that was delivered, or never will be: it has failed, or has no result.

    A delivery counts from when it was written down: its client may report any time. Raises errors
    of our tree, ValueError and OSError.
    """
    directory = exchange.directory(name)
    if (directory / layout.DELETE).exists():
        return None
    outcomes = [exchange.outcome(name, number) for number in layout.attempts(directory)]
    if not outcomes or outcomes[-1] is None:
        return None
    delivery = exchange.record(name, layout.DELIVERY, DeliveryRecord)
    if delivery is not None:
        # A client of the gateway may report a wrong digest. Then this may be the only copy. On this
        # host another digest is that of a damaged result that was put together again.
        digests = [outcome.result_sha256 for outcome in outcomes if outcome]
        if delivery.sha256 not in digests and exchange.has(name, layout.ORIGIN):
            return None
        return _Candidate((directory / layout.DELIVERY).stat().st_mtime, name, has_failed=False)
    record = exchange.record(name, layout.HELD, HeldRecord)
    if record is not None and record.failed:
        return _Candidate((directory / layout.HELD).stat().st_mtime, name, has_failed=True)
    if not _has_no_result(outcomes) or _is_retried(exchange, name, len(outcomes)):
        return None
    ended = times.parse(outcomes[-1].finished).timestamp()
    return _Candidate(ended, name, has_failed=False)


def _is_retried(exchange: FileExchange, name: str, attempt: int) -> bool:
    """Tell whether a cluster ended an attempt, and starts another one."""
    pod = exchange.record(name, f"attempt-{attempt}/{layout.POD}", PodEnd)
    return pod is not None and pod.retried


def _has_no_result(outcomes: list[Outcome | None]) -> bool:
    return all(outcome is not None and outcome.result_sha256 is None for outcome in outcomes)


def _jobs_over_cap(exchange: FileExchange, cap: int) -> Iterator[_Candidate]:
    """Yield the jobs to clear, oldest first, until the exchange is within `cap` bytes.

    The only copy of a result is not removed before its time.
    """
    total = bytes_on_disk(exchange.root)
    if total <= cap:
        return
    for job in sorted(job for job in _candidates(exchange) if not job.has_failed):
        if total <= cap:
            return
        freed = freed_with(exchange.root / job.name)
        yield job
        total -= freed - freed_with(exchange.root / job.name)


def _clear(exchange: FileExchange, name: str, message: str) -> bool:
    """Remove the large pieces of a job; False if that is not possible now."""
    directory = exchange.root / name
    try:
        record = {"time": times.now(), "message": message}
        write = partial(documents.write_document_once, directory / layout.CLEARED, record)
        with_ballast(exchange.root, write)
        _remove(directory / layout.INPUTS)
        for number in layout.attempts(directory):
            for piece in _IN_ATTEMPT:
                _remove(layout.attempt_dir(directory, number) / piece)
            documents.remove_drafts(layout.attempt_dir(directory, number))
            remove_folder(layout.attempt_dir(directory, number) / layout.SCRATCH)
        documents.remove_drafts(directory)
        _forget_values(exchange, name)
        _remove(directory / layout.SNAPSHOT)
    except (OSError, JobsError) as error:
        _log.warning("%s cannot be cleared now: %s", name, error)
        return False
    return True


def _forget_values(exchange: FileExchange, name: str) -> None:
    """Take out of a request what a run alone needs: values of variables may be secrets.

    Raises OSError.
    """
    request = exchange.request(name)
    environment = replace(request.environment, variables={})
    cleared = replace(request, env={}, environment=environment, packages=None, kernel_spec=None)
    if cleared != request:
        path = exchange.directory(name) / layout.REQUEST
        documents.write_document(path, cleared.to_document())


def _remove(path: Path) -> None:
    """Remove a file or a folder, if it exists."""
    with contextlib.suppress(FileNotFoundError):
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink()
