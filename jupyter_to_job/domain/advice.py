"""Which flavor would have been enough, by what a run used; and which one has more memory.

A pure function of the receipt and of the flavors on either side of the job's own, as they were when
it was submitted. What it says has margins, and where a figure is missing it says nothing: a wrong
advice costs a run.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from typing import Any

SHORTEST = 10.0
"""Seconds that a run must have lasted: about as many looks at it. In a shorter one the start of the
kernel counts as much as the work, and a smaller flavor would have saved nothing."""
MARGIN = 1.2
"""What is asked of memory and time for a run that used one."""
SPARE = 64 << 20
"""Bytes of memory on top of that: for what is there before the first cell of any run."""
SLOWER = 1.25
"""How many times as long a run on fewer cores may at worst have taken."""
IDLE_MEMORY = 1 << 30
"""Bytes in use on a GPU below which nobody put a model there: the driver itself takes some."""


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

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> AlternativeFlavors:
        """Read what `asdict` made of it, or a newer version. Raises TypeError."""
        known = {each.name for each in fields(Alternative)}
        smaller = tuple(
            Alternative(**{name: value for name, value in each.items() if name in known})
            for each in document.get("smaller", ())
        )
        return cls(smaller, document.get("larger"))


def smallest_sufficient(smaller: Iterable[Alternative], usage: Mapping[str, Any]) -> str | None:
    """Return the first of `smaller` that would have done for a run that succeeded; None: unknown.

    `usage` is that of outcome.json.
    """
    wall, memory = _number(usage, "wall"), _number(usage, "memory_peak")
    if wall is None or memory is None or wall < SHORTEST:
        return None
    for each in smaller:
        slower = _slower(usage, each.cpu)
        if (
            slower is not None
            and slower <= SLOWER
            and memory * MARGIN + SPARE <= each.memory
            and (each.max_runtime is None or wall * slower * MARGIN <= each.max_runtime)
            and (not each.frees_gpu or gpu_idle(usage))
        ):
            return each.flavor
    return None


def gpu_idle(usage: Mapping[str, Any]) -> bool | None:
    """Tell whether the GPUs that a run had were never seen busy; None: nobody knows."""
    busy, memory = _number(usage, "gpu_utilisation_peak"), _number(usage, "gpu_memory_peak")
    if busy is None:  # a part of a GPU does not tell; that nothing is in its memory is enough
        return True if memory == 0 else None
    return busy == 0 and (memory or 0) < IDLE_MEMORY


def _slower(usage: Mapping[str, Any], cores: float) -> float | None:
    """Return how many times as long the run had taken on `cores`, if the worst is assumed.

    That is: whenever it used any CPU it used as much as at its peak. Then every core second takes
    1/cores seconds instead of 1/peak.
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
