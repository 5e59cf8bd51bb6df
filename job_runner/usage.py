"""What a run used: the kernel's process tree, sampled. Unknown is null, never 0."""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import dataclass
from typing import Any

import psutil

_PERIOD = 1.0


@dataclass
class Usage:
    """Peaks and means of the kernel's process tree; memory in bytes, CPU in cores."""

    samples: int = 0
    memory_peak: int = 0
    memory_sum: int = 0
    cpu_peak: float = 0.0
    cpu_seconds: float = 0.0
    seconds: float = 0.0

    def add(self, memory: int, cpu_seconds: float, seconds: float) -> None:
        """Take one sample: memory now, CPU seconds so far, seconds since the start."""
        if self.samples and seconds > self.seconds:
            cores = (cpu_seconds - self.cpu_seconds) / (seconds - self.seconds)
            self.cpu_peak = max(self.cpu_peak, cores)
        self.samples += 1
        self.memory_peak = max(self.memory_peak, memory)
        self.memory_sum += memory
        # Children that ended take their seconds with them.
        self.cpu_seconds = max(self.cpu_seconds, cpu_seconds)
        self.seconds = seconds

    def to_json(self) -> dict[str, Any]:
        """Return the receipt for outcome.json."""
        rated = self.samples > 1 and self.seconds > 0
        return {
            "memory_peak": self.memory_peak if self.samples else None,
            "memory_mean": self.memory_sum // self.samples if self.samples else None,
            "cpu_peak": round(self.cpu_peak, 3) if rated else None,
            "cpu_mean": round(self.cpu_seconds / self.seconds, 3) if rated else None,
            "gpu_memory_peak": None,
            "gpu_memory_mean": None,
            "gpu_utilisation_peak": None,
            "gpu_utilisation_mean": None,
        }


async def sample(pid: int, usage: Usage) -> None:
    """Sample the process tree of `pid` once a second, until cancelled."""
    loop = asyncio.get_running_loop()
    began = loop.time()
    while True:
        with contextlib.suppress(psutil.Error):
            memory, cpu = _tree(psutil.Process(pid))
            usage.add(memory, cpu, loop.time() - began)
        await asyncio.sleep(_PERIOD)


def _tree(root: psutil.Process) -> tuple[int, float]:
    """Return memory (bytes) and CPU seconds of a process and its descendants."""
    memory, cpu = 0, 0.0
    for process in [root, *root.children(recursive=True)]:
        with contextlib.suppress(psutil.Error), process.oneshot():
            times = process.cpu_times()
            memory += process.memory_info().rss
            cpu += times.user + times.system
    return memory, cpu
