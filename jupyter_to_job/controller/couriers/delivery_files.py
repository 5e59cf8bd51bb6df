"""What a job's directory says to the couriers, and what they write there."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import Any

from job_runner.protocol import layout

from ...domain.errors import Damaged, NotFound
from ...exchange import FileExchange, Request
from ...exchange.records import HeldRecord
from ...service.delivery import find_deliverable, hold


@dataclass(frozen=True)
class DeliveryFiles:
    """A job whose result is to be delivered. Times are unix times of this host.

    `held_at`: when the last try failed that said why, None without one.
    """

    request: Request
    origin: dict[str, Any]
    ended_at: float
    held_at: float | None


def read_delivery_files(exchange: FileExchange, name: str) -> DeliveryFiles | None:
    """Read a job's documents; None if nothing is, or can be, delivered of it. Raises Damaged."""
    try:
        deliverable = find_deliverable(exchange, name)
        origin = exchange.document(name, layout.ORIGIN)
        record = _read_held(exchange, name)
        if deliverable is None or origin is None or (record is not None and record.failed):
            return None
        directory = exchange.directory(name)
        outcome = layout.attempt_dir(directory, deliverable.attempt) / layout.OUTCOME
        held_at = None if record is None else read_held_at(exchange, name)
        return DeliveryFiles(exchange.request(name), origin, outcome.stat().st_mtime, held_at)
    except (NotFound, FileNotFoundError):  # removed meanwhile
        return None


def read_held_at(exchange: FileExchange, name: str) -> float | None:
    """Return when the last try to deliver a job failed, None without one."""
    with contextlib.suppress(FileNotFoundError, NotFound):
        return (exchange.directory(name) / layout.HELD).stat().st_mtime
    return None


def hold_once(exchange: FileExchange, name: str, record: HeldRecord) -> bool:
    """Record why a job is not delivered; False if that is known, or it is delivered after all."""
    with contextlib.suppress(NotFound):
        return _read_held(exchange, name) != record and hold(exchange, name, record)
    return False


def _read_held(exchange: FileExchange, name: str) -> HeldRecord | None:
    with contextlib.suppress(Damaged):
        return exchange.record(name, layout.HELD, HeldRecord)
    return None
