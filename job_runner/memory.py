"""What the run used, and whether the host killed for memory: from psutil and from cgroups."""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

PERIOD = 1.0
_CGROUP = Path("/sys/fs/cgroup")


@dataclass
class Usage:
    """Peaks and means of the kernel's process tree; memory in bytes, CPU in cores."""

    samples: int = 0
    memory_peak: int = 0
    memory_sum: int = 0
    cpu_seconds: float = 0.0
    seconds: float = 0.0

    def add(self, memory: int, cpu_seconds: float, seconds: float) -> None:
        """Take one sample: memory now, CPU seconds so far, seconds since the start."""
        self.samples += 1
        self.memory_peak = max(self.memory_peak, memory)
        self.memory_sum += memory
        self.cpu_seconds = max(self.cpu_seconds, cpu_seconds)
        self.seconds = seconds

    def to_json(self) -> dict[str, Any]:
        """Return the receipt; null where unknown, never 0."""
        known = self.samples > 0
        return {
            "memory_peak": self.memory_peak if known else None,
            "memory_mean": self.memory_sum // self.samples if known else None,
            "cpu_mean": round(self.cpu_seconds / self.seconds, 3) if self.seconds > 0 else None,
            "gpu_memory_peak": None,
            "gpu_utilisation_mean": None,
        }


async def sample(pid: int, usage: Usage) -> None:
    """Sample the process tree of `pid` every `PERIOD` seconds, until cancelled."""
    loop = asyncio.get_running_loop()
    began = loop.time()
    while True:
        with contextlib.suppress(psutil.Error):
            root = psutil.Process(pid)
            tree = [root, *root.children(recursive=True)]
            memory = cpu = 0.0
            for process in tree:
                with contextlib.suppress(psutil.Error), process.oneshot():
                    times = process.cpu_times()
                    memory += process.memory_info().rss
                    cpu += times.user + times.system
            usage.add(int(memory), cpu, loop.time() - began)
        await asyncio.sleep(PERIOD)


def oom_kills() -> int:
    """Return how often the kernel's cgroup killed for memory so far (cgroup v1 and v2)."""
    for path, key in _event_files():
        with contextlib.suppress(OSError, ValueError):
            for line in path.read_text().splitlines():
                name, _, value = line.partition(" ")
                if name == key:
                    return int(value)
    return 0


def _event_files() -> list[tuple[Path, str]]:
    """List where the count may be: this process's own cgroup, else the root that it sees."""
    files = []
    with contextlib.suppress(OSError):
        for line in Path("/proc/self/cgroup").read_text().splitlines():
            _, controllers, path = line.split(":", 2)
            inside = path.lstrip("/")
            if controllers == "":
                files.append((_CGROUP / inside / "memory.events", "oom_kill"))
            elif "memory" in controllers.split(","):
                files.append((_CGROUP / "memory" / inside / "memory.oom_control", "oom_kill"))
    files.append((_CGROUP / "memory.events", "oom_kill"))
    files.append((_CGROUP / "memory" / "memory.oom_control", "oom_kill"))
    return files
