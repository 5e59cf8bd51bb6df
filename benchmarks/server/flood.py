"""Many jobs posted at the same moment: answers, results, wall time, and memory at its peak."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from . import targets
from .census import Watch
from .kernels import Cost, alone
from .ours import Ours
from .peer import Peer
from .row import GB, Report, Row
from .side import Side

FULL = 50
"""Jobs from which on the targets hold: with fewer, starting and ending are most of it."""
LOST = 30.0
"""Seconds without a process at work after which what has not ended never will."""
LOOK = 0.02


@dataclass(frozen=True)
class Flood:
    """What became of it, in seconds and bytes: `answered` is when the last one was.

    `cpu` is the processor time of all: by it and the kernels' one can tell on a busy machine what
    the wall time would be on an idle one.
    """

    answered: float
    wall: float
    cpu: float
    memory: int
    processes: int
    faults: list[str]


def floods(ours: Ours, peer: Peer, jobs: int, rounds: Sequence[int], report: Report) -> None:
    """Flood ours and the peer so many times each, in turns, with kernels alone in between."""
    mine, others, costs = list[Flood](), list[Flood](), list[Cost]()
    for number in range(max(rounds)):
        if number < rounds[0]:
            costs.append(alone(ours, jobs))
            mine.append(flood(ours, jobs))
        if number < rounds[1]:
            others.append(flood(peer, jobs))
    report.section(f"{jobs} posted at once, {rounds[0]} times, the peer {rounds[1]} times")
    report.row(Row("all answered", [f.answered for f in mine], [f.answered for f in others],
                   most=targets.FLOOD_ANSWERED))  # fmt: skip
    walls, busy = [f.wall for f in mine], [f.cpu for f in mine]
    wall, memory, kernels = (
        (targets.FLOOD_WALL, targets.FLOOD_MEMORY, targets.FLOOD_KERNELS)
        if jobs >= FULL
        else (None, None, None)
    )
    report.row(Row("all ended", walls, [f.wall for f in others], wall))
    report.row(Row("  processor time", busy, [f.cpu for f in others]))
    report.row(Row("peak memory", [f.memory for f in mine], [f.memory for f in others],
                   memory, unit=GB))  # fmt: skip
    report.row(Row("  processes then", [f.processes for f in mine],
                   [f.processes for f in others], unit=(1.0, "")))  # fmt: skip
    shares = [cost.cpu / cost.cores for cost in costs]
    report.row(Row("all ended / kernels' CPU by cores", walls, shares, kernels))
    report.row(Row("  the same in wall time", walls, [cost.wall for cost in costs]))
    report.row(Row("  in processor time", busy, [cost.cpu for cost in costs]))
    report.right("our results", [fault for f in mine for fault in f.faults])
    lost = [fault for f in others for fault in f.faults]
    print(f"the peer's results: {len(lost)} not right{': ' + lost[0] if lost else ''}")


def flood(side: Side, jobs: int) -> Flood:
    """Post `jobs` jobs at the same moment to a server that has had one, and wait for all."""
    with side.running() as door:
        side.finish(side.post(door))  # what is imported late, and profiles
        side.drain()
        watch, before = Watch(side.census), side.census.cpu()
        watch.start()
        try:
            names, answered, began = _post(side, jobs)
            wall = _wait(side, names) - began
        finally:
            watch.stop()
        side.drain()
        cpu = side.census.cpu() - before
        faults = [fault for name in names if (fault := side.fault(name))]
        if len(set(names)) != jobs:
            faults.append(f"{jobs} posted, {len(set(names))} jobs")
        print(f"{side.name}: {jobs} in {wall:.1f} s, answered in {answered:.2f} s, "
              f"{watch.memory / 1e9:.2f} GB, {watch.looks} looks", flush=True)  # fmt: skip
        return Flood(answered, wall, cpu, watch.memory, watch.processes, faults)


def _post(side: Side, jobs: int) -> tuple[list[str], float, float]:
    """Return the jobs, the seconds until the last was answered, and when it began."""
    gate = threading.Barrier(jobs + 1)

    def one() -> str:
        door = side.door()
        door.open()
        gate.wait()
        name = side.post(door)
        door.close()
        return name

    with ThreadPoolExecutor(jobs) as pool:
        posted = [pool.submit(one) for _ in range(jobs)]
        gate.wait()
        began = time.perf_counter()
        names = [future.result() for future in posted]
        return names, time.perf_counter() - began, began


def _wait(side: Side, names: Sequence[str]) -> float:
    """Return when the last job ended; one whose process is gone never does."""
    left = set(names)
    changed = at_work = time.perf_counter()
    while left and time.perf_counter() - at_work < LOST:
        time.sleep(LOOK)
        if len(still := side.unfinished(left)) < len(left):
            left, changed = still, time.perf_counter()
        if time.perf_counter() - at_work > LOST / 10 and side.busy():
            at_work = time.perf_counter()
    return changed
