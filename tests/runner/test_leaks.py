"""A run of very many small outputs: its runner holds on to neither memory nor descriptors."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from .jobs import BOUND, Job, notebook, until

MIB = 1 << 20
PAGE = os.sysconf("SC_PAGE_SIZE")
SHOWS = """\
from IPython.display import display
for i in range({count}):
    display({{'text/plain': f'{{i:01000}}'}}, raw=True)
"""
"""A kilobyte each: who keeps it, or what came of it, is found after a few thousand."""


@dataclass(frozen=True)
class Sample:
    """One look at a runner: bytes in memory, open descriptors, threads."""

    memory: int
    descriptors: int
    threads: int


def watched(job: Job, cells: int, each: int, *, period: float) -> list[Sample]:
    """Run `cells` cells with `each` outputs; return looks at the runner from its first cell on."""
    process = job.start()
    until(lambda: any(r["k"] == "cell_end" for r in _records(job)), "the first cell")
    samples = []
    end = time.monotonic() + 10 * BOUND
    while process.poll() is None:
        assert time.monotonic() < end
        samples += _look(process.pid)
        time.sleep(period)
    assert process.returncode == 0, job.outcome().message
    assert job.outcome().cells == {"done": cells, "total": cells}
    shown = [c.outputs for c in job.result().cells if c.cell_type == "code"]
    assert [len(outputs) for outputs in shown] == [each] * cells
    last = shown[-1][-1]["data"]["text/plain"]
    assert last == f"{each - 1:01000}"
    return samples


def many(cells: int, each: int) -> str:
    return notebook(*[SHOWS.format(count=each)] * cells)


def _records(job: Job) -> list[dict[str, Any]]:
    return job.records() if job.attempt().exists() else []


def _look(pid: int) -> list[Sample]:
    """Return a look, none at a process that ended meanwhile."""
    try:
        memory = int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * PAGE
        descriptors, threads = (
            len(os.listdir(f"/proc/{pid}/{what}"))  # noqa: PTH208 - counted, not read
            for what in ("fd", "task")
        )
    except OSError:
        return []
    return [Sample(memory, descriptors, threads)] if memory else []


def check(samples: list[Sample], *, growth: int) -> dict[str, str]:
    """Hold the last quarter of the looks to the first; return the figures."""
    part = len(samples) // 4
    assert part >= 3, f"only {len(samples)} looks"
    first, last = samples[:part], samples[-part:]
    memory = [median(s.memory for s in quarter) for quarter in (first, last)]
    found = {
        "memory": " -> ".join(f"{amount / MIB:.1f} MiB" for amount in memory),
        "descriptors": f"{max(s.descriptors for s in first)} -> {max(s.descriptors for s in last)}",
        "looks": str(len(samples)),
    }
    assert memory[1] - memory[0] < growth, found
    assert max(s.descriptors for s in last) <= max(s.descriptors for s in first) + 1, found
    assert max(s.threads for s in samples) < 20, found
    return found


def test_ten_thousand_small_outputs(job: Callable[..., Job]) -> None:
    """A hundred thousand of them: `tests/soak`."""
    samples = watched(job(many(100, 100)), 100, 100, period=0.05)
    check(samples, growth=4 * MIB)
