"""Times, sizes and states as people read them."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import Any

from job_runner.protocol.units import format_bytes, format_bytes_of, format_duration

from ...domain.job import Job


def clock(seconds: float) -> str:
    """Return seconds as a running clock: `0:07`, `12:30`, `1:02:30`."""
    whole = max(int(seconds), 0)
    hours, minutes = divmod(whole // 60, 60)
    return f"{hours}:{minutes:02}:{whole % 60:02}" if hours else f"{minutes}:{whole % 60:02}"


def moment(text: str) -> datetime:
    """Read a time of a Job."""
    return datetime.fromisoformat(text.replace("Z", "+00:00"))


def ago(text: str | None, now: datetime | None = None) -> str:
    """Return a time of a Job as `5 s ago`, `3 min ago`, `2 h ago`, `4 d ago`, then as its date."""
    if text is None:
        return ""
    seconds = ((now or datetime.now(timezone.utc)) - moment(text)).total_seconds()
    for unit, length, limit in (("s", 1, 60), ("min", 60, 60), ("h", 3600, 24), ("d", 86_400, 30)):
        if seconds < length * limit:
            return f"{max(int(seconds // length), 0)} {unit} ago"
    return text[:10]


def elapsed(job: Job) -> float | None:
    """Return the seconds that a job has run, until now if it still does; None: unknown."""
    if job.started is None or (job.state.final and job.finished is None):
        return None
    end = moment(job.finished) if job.finished else datetime.now(timezone.utc)
    return max((end - moment(job.started)).total_seconds(), 0.0)


def cells(job: Job) -> str:
    """Return how many code cells ran, of how many: `3/7`; empty before anybody counted them."""
    done, total = job.progress.cells_done, job.progress.cells_total
    return f"{done}/{total}" if total or done else ""


def state(job: Job) -> str:
    """Return a job's state, with what there is to say of it."""
    if job.cancel_requested:
        return f"{job.state.value} (cancel requested)"
    if job.reason:
        return f"{job.state.value} ({job.reason})"
    if job.position is not None:
        return f"{job.state.value} (place {job.position})"
    return job.state.value


def plural(count: int, thing: str) -> str:
    """Return `1 job`, `2 jobs`."""
    return f"{count} {thing}" if count == 1 else f"{count} {thing}s"


def usage(figures: dict[str, Any]) -> list[tuple[str, str]]:
    """Return lines of a job's usage: what, and its peak and mean; what is unknown is left out."""
    kinds = (
        ("memory", "memory", format_bytes),
        ("CPU", "cpu", lambda cores: f"{cores:.2f} cores"),
        ("GPU memory", "gpu_memory", format_bytes),
        ("GPU busy", "gpu_utilisation", lambda share: f"{share:.0%}"),
    )
    lines = []
    for title, key, form in kinds:
        peak, mean = figures.get(f"{key}_peak"), figures.get(f"{key}_mean")
        said = [f"{form(peak)} at most"] if peak is not None else []
        said += [f"{form(mean)} on average"] if mean is not None else []
        said += [f"of {form(given)}"] if said and (given := figures.get(f"{key}_given")) else []
        if said:
            lines.append((title, ", ".join(said)))
    if figures.get("cpu_seconds") is not None:
        lines.append(("CPU time", format_duration(figures["cpu_seconds"])))
    return lines


def receipt(job: Job) -> str | None:
    """Return in one line what an ended job used of what it had, and what would suit it.

    `used 0.9 of 4 CPU on average, 1.2 of 16 GiB of memory at most; flavor small would have been
    enough`. None where nothing is known.
    """
    figures = job.usage or {}
    said = []
    if figures.get("cpu_mean") is not None and figures.get("cpu_given"):
        said.append(f"{figures['cpu_mean']:.1f} of {figures['cpu_given']:g} CPU on average")
    if figures.get("memory_peak") is not None and figures.get("memory_given"):
        amount = format_bytes_of(figures["memory_peak"], figures["memory_given"])
        said.append(f"{amount} of memory at most")
    if figures.get("gpu_idle"):
        said.append("no GPU")
    elif figures.get("gpu_utilisation_mean") is not None:
        said.append(f"{figures['gpu_utilisation_mean']:.0%} of its GPU on average")
    if not said:
        return None
    hint = advice(figures)
    return f"used {', '.join(said)}" + (f"; {hint}" if hint else "")


def advice(figures: dict[str, Any]) -> str | None:
    """Return which other flavor would suit a job; None: none that is known."""
    if figures.get("enough"):
        return f"flavor {figures['enough']} would have been enough"
    if figures.get("larger"):
        return f"flavor {figures['larger']} has more memory"
    return None
