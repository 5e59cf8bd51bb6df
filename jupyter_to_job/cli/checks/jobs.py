"""Checks the jobs of the exchange: damaged records, and runs whose runner does not answer."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

from job_runner.protocol import layout, liveness
from job_runner.protocol.units import format_duration

from ...domain.names import is_job_name
from .. import session
from ..display import formats
from .result import CheckResult, ok, problem, warning

SILENT_AFTER = 3 * liveness.HEARTBEAT_INTERVAL
"""Seconds without a heartbeat after which a runner is said to be stopped."""


def check_jobs() -> Iterator[CheckResult]:
    """Check every job that the exchange has."""
    from ...exchange import FileExchange
    from ...service.damage import find_damage

    exchange = FileExchange(session.settings().exchange_root())
    is_sound = True
    names = {path.name for path in exchange.root.iterdir() if is_job_name(path.name)}
    if others := sorted(names - exchange.jobs()):
        is_sound = False
        yield warning(
            f"What is no job of yours in the exchange is ignored: {', '.join(others)}.",
            f"Remove it, and see that only you may write to {exchange.root}.",
        )
    for damage in find_damage(exchange):
        is_sound = False
        message = f"{damage.job}: {damage.message}"
        yield problem(message, damage.remedy, damage.mend)
    for name in sorted(exchange.jobs()):
        for number in layout.attempts(exchange.root / name)[-1:]:
            stuck = _stuck(name, layout.attempt_dir(exchange.root / name, number))
            if stuck is not None:
                is_sound = False
                yield stuck
    if is_sound:
        yield ok(f"{formats.plural(len(exchange.jobs()), 'job')}, none damaged or stuck")


def _stuck(name: str, attempt: Path) -> CheckResult | None:
    """Return a warning of a runner that is silent, or of a result that nobody can write."""
    heartbeat = liveness.last_heartbeat(attempt)
    silence = 0.0 if heartbeat is None else time.time() - heartbeat
    if silence < SILENT_AFTER or (attempt / layout.OUTCOME).exists():
        return None
    duration = format_duration(int(silence))
    if liveness.is_alive(attempt):
        return warning(
            f"{name}: its runner has a slot, and gave no sign of life for {duration}.",
            f"Was it stopped? `jupyter-to-job cancel {name}` ends it and frees the slot.",
        )
    return warning(
        f"{name}: its runner is gone for {duration}, and its result cannot be put together.",
        "It is tried again. The dispatcher's last error says why it failed.",
    )
