"""Advises on flavors: the smallest that would have been enough, and the next with more memory.

The advice depends only on the run's usage and on the flavors around the job's own, as they were at
submission. It has margins, and there is none where a figure is missing: wrong advice costs a run.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

MIN_WALL = 10.0
"""Seconds that a run must have lasted. In a shorter one the kernel's start counts as much as the
work, there are few samples, and a smaller flavor would have saved nothing."""
MARGIN = 1.2
"""A flavor must have this many times the memory and time that the run used."""
SPARE_MEMORY = 64 << 20
"""Bytes of memory on top of that, for what every kernel takes before its first cell."""
MAX_SLOWDOWN = 1.25
"""How many times as long a run on fewer cores may at worst have taken."""
IDLE_GPU_MEMORY = 1 << 30
"""Bytes in use on a GPU below which no model was loaded: the driver itself takes some."""


@dataclass(frozen=True)
class Alternative:
    """A flavor that the job could have had: cores, bytes, seconds (None: no limit).

    `frees_gpu`: the job had an accelerator, and this has none.
    """

    flavor: str
    cpu: float
    memory: int
    max_runtime: int | None = None
    frees_gpu: bool = False


@dataclass(frozen=True)
class AlternativeFlavors:
    """The flavors around the one that a job got, of those that its owner may use.

    `smaller` has the smallest first. `larger` is the next one with more memory for the same device.
    """

    smaller: tuple[Alternative, ...] = ()
    larger: str | None = None


def smallest_sufficient(smaller: Iterable[Alternative], usage: Mapping[str, Any]) -> str | None:
    """Return the first of `smaller` that would have been enough for a run that succeeded.

    None: no flavor, or it is unknown. `usage` is that of outcome.json.
    """
    wall, memory = _number(usage, "wall"), _number(usage, "memory_peak")
    if wall is None or memory is None or wall < MIN_WALL:
        return None
    for alternative in smaller:
        slowdown, limit = _slowdown(usage, alternative.cpu), alternative.max_runtime
        if (
            slowdown is not None
            and slowdown <= MAX_SLOWDOWN
            and memory * MARGIN + SPARE_MEMORY <= alternative.memory
            and (limit is None or wall * slowdown * MARGIN <= limit)
            and (not alternative.frees_gpu or gpu_idle(usage))
        ):
            return alternative.flavor
    return None


def gpu_idle(usage: Mapping[str, Any]) -> bool | None:
    """Tell whether no sample of the run's GPUs was busy; None: it is unknown."""
    busy, memory = _number(usage, "gpu_utilisation_peak"), _number(usage, "gpu_memory_peak")
    if busy is None:  # a part of a GPU has no such figure; empty memory is enough
        return True if memory == 0 else None
    return busy == 0 and (memory or 0) < IDLE_GPU_MEMORY


def _slowdown(usage: Mapping[str, Any], cores: float) -> float | None:
    """Return how many times as long the run would have taken on `cores`, in the worst case.

    The worst case is that it used either no CPU or as much as at its peak. Then every core second
    takes 1/cores seconds instead of 1/peak.
    """
    mean, peak = _number(usage, "cpu_mean"), _number(usage, "cpu_peak")
    if mean is None or peak is None or cores <= 0:
        return None
    peak = max(peak, mean)
    return 1.0 if peak <= cores else 1.0 + mean * (1 / cores - 1 / peak)


def _number(usage: Mapping[str, Any], key: str) -> float | None:
    value = usage.get(key)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value)
