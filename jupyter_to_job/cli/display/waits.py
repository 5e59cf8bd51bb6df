"""What a waiting job waits for, and estimates of it, as text."""

from __future__ import annotations

from decimal import Decimal

from job_runner.protocol.units import format_bytes, format_duration

from ...domain.quantities import format_resource
from ...domain.wait import Estimate, JobWait, Need
from .formats import plural

_STEPS = ((60, 5), (600, 60), (3600, 300), (36_000, 600), (172_800, 3600))
"""Up to how many seconds an estimate is rounded to which step: it is not exact."""
_LARGEST_STEP = 21_600


def needs(wait: JobWait) -> str:
    """Return what is lacking: `2 CPUs, 1 is free`; empty if nothing is."""
    return "; ".join(map(_need, wait.needs))


def why(wait: JobWait) -> str:
    """Return why a job waits, as a sentence; empty if nothing is known."""
    parts = [f"needs {_need(need)}" for need in wait.needs]
    if wait.before:
        verb = "is" if wait.before == 1 else "are"
        parts.append(f"{plural(wait.before, 'job')} {verb} before it")
    text = "; ".join(parts)
    return f"{text[:1].upper()}{text[1:]}." if text else ""


def start(wait: JobWait) -> str:
    """Return when a job starts: `in about 12 min (8 to 20 min)`; empty if nobody knows."""
    estimate = wait.start
    if estimate is None:
        return ""
    return f"in about {_range(estimate)}" if estimate.high >= 1 else "in a moment"


def run(wait: JobWait) -> str:
    """Return how long a job runs, likewise."""
    return "" if wait.run is None else f"about {_range(wait.run)}"


def basis(estimate: Estimate | None) -> str:
    """Return that something is an estimate, and what it comes from."""
    if estimate is None or not estimate.runs:
        return ""
    return f"estimated from {plural(estimate.runs, 'earlier run')}"


def _need(need: Need) -> str:
    amount, free = Decimal(need.amount), Decimal(need.free)
    has = format_bytes(float(free)) if need.resource == "memory" else f"{free:f}"
    verb = "is" if free == 1 or need.resource == "memory" else "are"
    return f"{format_resource(need.resource, amount)}, {has if free else 'none'} {verb} free"


def _range(estimate: Estimate) -> str:
    low, likely, high = (rounded(s) for s in (estimate.low, estimate.likely, estimate.high))
    text = format_duration(likely)
    return text if low == high else f"{text} ({format_duration(low)} to {format_duration(high)})"


def rounded(seconds: float) -> int:
    """Return seconds as exactly as an estimate may say them."""
    step = next((step for limit, step in _STEPS if seconds < limit), _LARGEST_STEP)
    return max(round(seconds / step) * step, 1)
