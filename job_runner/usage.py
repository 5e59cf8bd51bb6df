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
    cpu_seconds: float = 0.0
    seconds: float | None = None

    def add_cpu(self, cpu_seconds: float, seconds: float) -> None:
        """Take the CPU seconds so far, `seconds` after the start."""
        # Children that ended unawaited take their seconds with them.
        cpu_seconds = max(self.cpu_seconds, cpu_seconds)
        if self.seconds is not None and seconds > self.seconds:
            cores = (cpu_seconds - self.cpu_seconds) / (seconds - self.seconds)
            self.cpu_peak = max(self.cpu_peak or 0.0, cores)
        self.cpu_seconds, self.seconds = cpu_seconds, seconds

    def to_json(self) -> dict[str, Any]:
        """Return the receipt for outcome.json."""
        rated = self.cpu_peak is not None and self.seconds
        cpu_mean = self.cpu_seconds / self.seconds if rated and self.seconds else None
        return {
            "memory_peak": _whole(self.memory.peak),
            "memory_mean": _whole(self.memory.mean),
            "cpu_peak": _rounded(self.cpu_peak),
            "cpu_mean": _rounded(cpu_mean),
            "gpu_memory_peak": _whole(self.gpu_memory.peak),
            "gpu_memory_mean": _whole(self.gpu_memory.mean),
            "gpu_utilisation_peak": _rounded(self.gpu_utilisation.peak),
            "gpu_utilisation_mean": _rounded(self.gpu_utilisation.mean),
        }


def _whole(value: float | None) -> int | None:
    return None if value is None else int(value)


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 3)
