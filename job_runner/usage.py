"""What a run used, from samples: the receipt. Unknown is null, never 0."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass
class _Series:
    """Peak and mean of something that is sampled; `None` without a sample."""

    count: int = 0
    total: float = 0.0
    peak: float | None = None

    def add(self, value: float) -> None:
        self.count += 1
        self.total += value
        self.peak = value if self.peak is None else max(self.peak, value)

    @property
    def mean(self) -> float | None:
        return self.total / self.count if self.count else None


@dataclass
class Usage:
    """Peaks and means of the kernel's process tree and of the GPUs that it sees.

    Memory in bytes, CPU in cores, utilisation of GPUs from 0 to 1 (of all of them together).
    """

    memory: _Series = field(default_factory=_Series)
    gpu_memory: _Series = field(default_factory=_Series)
    gpu_utilisation: _Series = field(default_factory=_Series)
    cpu_peak: float | None = None
    _first_look: tuple[float, float] | None = None
    _last_look: tuple[float, float] | None = None

    def add_cpu(self, cpu_seconds: float, moment: float) -> None:
        """Take the CPU seconds used until `moment`, in seconds of a clock that never goes back."""
        if self._first_look is None or self._last_look is None:
            self._first_look = self._last_look = (cpu_seconds, moment)
            return
        # Children that ended unawaited take their seconds with them.
        look = (max(self._last_look[0], cpu_seconds), moment)
        cores = _cores(self._last_look, look)
        if cores is not None:
            self.cpu_peak = max(self.cpu_peak or 0.0, cores)
            self._last_look = look

    def to_json(self) -> dict[str, Any]:
        """Return the receipt for outcome.json."""
        return {
            "memory_peak": _whole(self.memory.peak),
            "memory_mean": _whole(self.memory.mean),
            "cpu_peak": _rounded(self.cpu_peak),
            "cpu_mean": _rounded(_cores(self._first_look, self._last_look)),
            "gpu_memory_peak": _whole(self.gpu_memory.peak),
            "gpu_memory_mean": _whole(self.gpu_memory.mean),
            "gpu_utilisation_peak": _rounded(self.gpu_utilisation.peak),
            "gpu_utilisation_mean": _rounded(self.gpu_utilisation.mean),
        }


def _cores(earlier: tuple[float, float] | None, later: tuple[float, float] | None) -> float | None:
    """Return the cores that were busy between two looks; None if they are the same one."""
    if earlier is None or later is None or later[1] <= earlier[1]:
        return None
    return (later[0] - earlier[0]) / (later[1] - earlier[1])


def _whole(value: float | None) -> int | None:
    return None if value is None else int(value)


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 3)
