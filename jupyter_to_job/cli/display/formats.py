"""Times, states and usage of jobs as text."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import Any

from job_runner.protocol import times
from job_runner.protocol.units import format_bytes, format_bytes_of, format_duration

from ...domain.job import Job


def clock(seconds: float) -> str:
    """Return seconds as a running clock: `0:07`, `12:30`, `1:02:30`."""
    total = max(int(seconds), 0)
    hours, minutes = divmod(total // 60, 60)
    return f"{hours}:{minutes:02}:{total % 60:02}" if hours else f"{minutes}:{total % 60:02}"


def ago(text: str | None, current_time: datetime | None = None) -> str:
    """Return a time of a Job as `5 s ago`, `3 min ago`, `2 h ago`, `4 d ago`, or as its date."""
    if text is None:
        return ""
    seconds = ((current_time or datetime.now(timezone.utc)) - times.parse(text)).total_seconds()
    for unit, length, limit in (("s", 1, 60), ("min", 60, 60), ("h", 3600, 24), ("d", 86_400, 30)):
        if seconds < length * limit:
            return f"{max(int(seconds // length), 0)} {unit} ago"
    return text[:10]


def elapsed(job: Job) -> float | None:
    """Return the seconds that a job ran, or has run so far; None if they are unknown."""
    if job.started is None or (job.state.final and job.finished is None):
        return None
    end = times.parse(job.finished) if job.finished else datetime.now(timezone.utc)
    return max((end - times.parse(job.started)).total_seconds(), 0.0)


def waiting_text(job: Job) -> str:
    """Return how long a job has waited for its first cell; empty if it does not wait."""
    if job.state.final or job.started is not None or job.submitted is None:
        return ""
    waited = datetime.now(timezone.utc) - times.parse(job.submitted)
    return format_duration(max(waited.total_seconds(), 0.0))


def elapsed_text(job: Job) -> str:
    """Return the time that a job ran, or has run so far; empty if it is unknown."""
    seconds = elapsed(job)
    return "" if seconds is None else format_duration(seconds)


def cells(job: Job) -> str:
    """Return how many code cells have run, of how many: `3/7`. Empty while that is unknown."""
    done, total = job.progress.cells_done, job.progress.cells_total
    return f"{done}/{total}" if total or done else ""


def running_cell(job: Job) -> str:
    """Return the running cell as `3 of 7`, by its place in the notebook that was sent; or ""."""
    progress = job.progress
    if progress.current_cell is None:
        return ""
    place = str(progress.current_cell + 1)
    return f"{place} of {progress.cells}" if progress.cells else place


def state(job: Job) -> str:
    """Return a job's state, with its reason or its place in the queue."""
    if job.cancel_requested:
        return f"{job.state.value} (cancel requested)"
    if job.reason:
        return f"{job.state.value} ({job.reason})"
    if job.position is not None:
        return f"{job.state.value} (place {job.position})"
    return job.state.value


def ending(job: Job, took: str = "") -> str:
    """Return how a job ended: its name and state, the time it took, and its message."""
    message = f": {job.message}" if job.message else ""
    return f"{job.name} {state(job)}{took}{message}"


def plural(count: int, noun: str) -> str:
    """Return `1 job`, `2 jobs`."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def usage(figures: dict[str, Any]) -> list[tuple[str, str]]:
    """Return names and texts of a job's usage; figures that are unknown are left out."""
    kinds = (
        ("memory", "memory", _bytes_of),
        ("CPU", "cpu", _cores_of),
        ("GPU memory", "gpu_memory", _bytes_of),
        ("GPU busy", "gpu_utilisation", lambda share, _limit: f"{share:.0%}"),
    )
    lines = []
    for title, key, format_amount in kinds:
        peak, mean = figures.get(f"{key}_peak"), figures.get(f"{key}_mean")
        limit = figures.get(f"{key}_given")
        parts = [f"{format_amount(peak, limit)} at most"] if peak is not None else []
        parts += [f"{format_amount(mean, limit)} on average"] if mean is not None else []
        if parts:
            lines.append((title, ", ".join(parts)))
    if figures.get("cpu_seconds") is not None:
        lines.append(("CPU time", format_duration(figures["cpu_seconds"])))
    return lines


def _bytes_of(amount: float, limit: float | None) -> str:
    """Return bytes in the unit of their limit, so that the two can be compared."""
    return format_bytes_of(amount, limit) if limit else format_bytes(amount)


def _cores_of(amount: float, limit: float | None) -> str:
    return f"{amount:.2f} of {limit:g} cores" if limit else f"{amount:.2f} cores"


def receipt(job: Job) -> str | None:
    """Return the usage of an ended job in one line, with advice on its flavor.

    `used 0.9 of 4 CPU on average, 1.2 of 16 GiB of memory at most; flavor small would have been
    enough`. None if no figure is known.
    """
    figures = job.usage or {}
    parts = []
    if figures.get("cpu_mean") is not None and figures.get("cpu_given"):
        parts.append(f"{figures['cpu_mean']:.1f} of {figures['cpu_given']:g} CPU on average")
    if figures.get("memory_peak") is not None and figures.get("memory_given"):
        amount = format_bytes_of(figures["memory_peak"], figures["memory_given"])
        parts.append(f"{amount} of memory at most")
    if figures.get("gpu_idle"):
        parts.append("no GPU")
    elif figures.get("gpu_utilisation_mean") is not None:
        parts.append(f"{figures['gpu_utilisation_mean']:.0%} of its GPU on average")
    if not parts:
        return None
    hint = advice(figures)
    return f"used {', '.join(parts)}" + (f"; {hint}" if hint else "")


def advice(figures: dict[str, Any]) -> str | None:
    """Return advice on a flavor that would suit the job better; None if there is none."""
    if figures.get("enough"):
        return f"flavor {figures['enough']} would have been enough"
    if figures.get("larger"):
        return f"flavor {figures['larger']} has more memory"
    return None
