"""Tasks that may take long or much memory: each runs in a fork, so that no other job waits."""

from __future__ import annotations

import contextlib
import sys

from job_runner.protocol import layout

from ..domain.errors import NotFound
from ..exchange import FileExchange
from ..exchange.ballast import hold_ballast
from ..service.delivery import deliver


def deliver_or_remove(exchange: FileExchange, job: str) -> int:
    """Deliver an ended job, or remove it if that was requested; return an exit status."""
    try:
        with contextlib.suppress(NotFound):  # it was removed meanwhile
            if exchange.has(job, layout.DELETE):
                exchange.remove(job)
            else:
                deliver(exchange, job)
    finally:
        hold_ballast(exchange.root)
    return 0


def retain(exchange: FileExchange) -> int:
    """Clear what killed processes left behind, and what was kept long enough."""
    # Imported in this process only: the dispatcher itself needs no settings.
    from ..exchange.retention import Policy, enforce
    from ..wiring import Settings

    try:
        exchange.remove_leftovers()
        settings = Settings.load()
        for name in enforce(exchange, Policy.parse(settings.retention, settings.exchange_cap)):
            sys.stderr.write(f"{name}: cleared\n")
    finally:
        hold_ballast(exchange.root)
    return 0


def hold(exchange: FileExchange) -> int:
    """Make the exchange's ballast, unless it is there."""
    hold_ballast(exchange.root)
    return 0
