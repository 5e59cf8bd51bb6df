"""Many submissions at once: all finish, each is delivered once, and the dispatcher stays small."""

from __future__ import annotations

import json
import subprocess
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from .comparison import CELLS
from .workspace import COMMAND, Workspace

MAX_MEMORY = 80e6
"""Bytes that the dispatcher may use at its peak."""


@dataclass
class FloodResult:
    """What became of a flood."""

    asked: int
    submitted: int
    states: dict[str, int]
    delivered_once: int
    submitting: float
    whole: float
    dispatchers: int
    peak: int
    faults: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        return (
            f"{self.asked} submissions at once: {self.submitted} taken in {self.submitting:.1f} s, "
            f"{self.states}, {self.delivered_once} delivered once, all in {self.whole:.1f} s\n"
            f"dispatchers: {self.dispatchers}, peak {self.peak / 1e6:.1f} MB"
        )


def flood(workspace: Workspace, jobs: int) -> FloodResult:
    """Start `jobs` processes that submit, and wait for what they submitted."""
    workspace.use_new_exchange()
    workspace.notebook("flood.ipynb", *CELLS)
    peaks: dict[int, int] = {}
    done = threading.Event()
    watcher = threading.Thread(target=_watch, args=(workspace, peaks, done))
    watcher.start()
    began = time.monotonic()
    started = [
        subprocess.Popen(
            [COMMAND, "submit", "flood.ipynb"],
            cwd=workspace.folder,
            env=workspace.environment,
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(jobs)
    ]
    names = [name for process in started for name in process.communicate()[0].split()]
    submitting = time.monotonic() - began
    workspace.wait_until_idle()
    whole = time.monotonic() - began
    done.set()
    watcher.join()
    listed = json.loads(workspace.run(COMMAND, "list", "--all", "--json").stdout)
    states = dict(Counter(job["state"] for job in listed))
    once = sum(_delivered_once(workspace.folder, job) for job in listed)
    result = FloodResult(jobs, len(set(names)), states, once, submitting, whole,
                len(peaks), max(peaks.values(), default=0))  # fmt: skip
    if (result.submitted, once, states) != (jobs, jobs, {"succeeded": jobs}):
        result.faults.append("a submission was lost, failed, or not delivered exactly once")
    if result.peak > MAX_MEMORY:
        result.faults.append(f"the dispatcher took {result.peak / 1e6:.0f} MB")
    return result


def _delivered_once(workspace: Path, job: dict[str, object]) -> bool:
    return [path.stem for path in workspace.glob(f"{job['name']}*")] == [job["name"]]


def _watch(workspace: Workspace, peaks: dict[int, int], done: threading.Event) -> None:
    """Note the peak memory of each dispatcher, as the kernel keeps it."""
    while not done.wait(0.1):
        for process in workspace.dispatchers():
            try:
                status = Path(f"/proc/{process.pid}/status").read_text()
            except OSError:  # it has left
                continue
            for line in status.splitlines():
                if line.startswith("VmHWM:"):
                    peaks[process.pid] = int(line.split()[1]) * 1024
