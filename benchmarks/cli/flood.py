"""Many submissions at once: all finish, each is delivered once, and the dispatcher stays small."""

from __future__ import annotations

import json
import subprocess
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from .place import COMMAND, Place
from .sidebyside import CELLS

MOST_MEMORY = 80e6
"""Bytes that the dispatcher may use at its peak."""


@dataclass
class Seen:
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


def flood(place: Place, jobs: int) -> Seen:
    """Start `jobs` processes that submit, and wait for what they submitted."""
    place.fresh()
    place.notebook("flood.ipynb", *CELLS)
    peaks: dict[int, int] = {}
    done = threading.Event()
    watcher = threading.Thread(target=_watch, args=(place, peaks, done))
    watcher.start()
    began = time.monotonic()
    started = [
        subprocess.Popen(
            [COMMAND, "submit", "flood.ipynb"],
            cwd=place.workspace,
            env=place.environment,
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(jobs)
    ]
    names = [name for process in started for name in process.communicate()[0].split()]
    submitting = time.monotonic() - began
    place.settle()
    whole = time.monotonic() - began
    done.set()
    watcher.join()
    listed = json.loads(place.run(COMMAND, "list", "--all", "--json").stdout)
    states = dict(Counter(job["state"] for job in listed))
    once = sum(_delivered_once(place.workspace, job) for job in listed)
    seen = Seen(jobs, len(set(names)), states, once, submitting, whole,
                len(peaks), max(peaks.values(), default=0))  # fmt: skip
    if (seen.submitted, once, states) != (jobs, jobs, {"succeeded": jobs}):
        seen.faults.append("a submission was lost, failed, or not delivered exactly once")
    if seen.peak > MOST_MEMORY:
        seen.faults.append(f"the dispatcher took {seen.peak / 1e6:.0f} MB")
    return seen


def _delivered_once(workspace: Path, job: dict[str, object]) -> bool:
    return [path.stem for path in workspace.glob(f"{job['name']}*")] == [job["name"]]


def _watch(place: Place, peaks: dict[int, int], done: threading.Event) -> None:
    """Note the peak memory of each dispatcher, as the kernel keeps it."""
    while not done.wait(0.1):
        for process in place.dispatchers():
            try:
                status = Path(f"/proc/{process.pid}/status").read_text()
            except OSError:  # it has left
                continue
            for line in status.splitlines():
                if line.startswith("VmHWM:"):
                    peaks[process.pid] = int(line.split()[1]) * 1024
