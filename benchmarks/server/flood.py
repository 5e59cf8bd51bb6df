"""Many jobs posted at the same moment: answers, results, wall time, and memory at its peak."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from . import targets
from .kernels import KernelCost, measure_kernels
from .ours import OurServer
from .peer import PeerServer
from .processes import PeakSampler
from .report import GB, Report, Row
from .server import MeasuredServer

FULL_FLOOD = 50
"""Jobs from which on the targets hold: with fewer, starting and ending are most of it."""
LOST_TIMEOUT = 30.0
"""Seconds without a process at work after which what has not ended never will."""
POLL_INTERVAL = 0.02


@dataclass(frozen=True)
class Flood:
    """One flood's figures, in seconds and bytes: `answered` is when the last answer came.

    `cpu` is the processor time of all: by it and the kernels' one can tell on a busy machine what
    the wall time would be on an idle one.
    """

    answered: float
    wall: float
    cpu: float
    memory: int
    processes: int
    faults: list[str]


def measure_floods(
    ours: OurServer, peer: PeerServer, jobs: int, rounds: Sequence[int], report: Report
) -> None:
    """Flood ours and the peer so many times each, in turns, with kernels alone in between."""
    our_floods, peer_floods, costs = list[Flood](), list[Flood](), list[KernelCost]()
    for number in range(max(rounds)):
        if number < rounds[0]:
            costs.append(measure_kernels(ours, jobs))
            our_floods.append(flood(ours, jobs))
        if number < rounds[1]:
            peer_floods.append(flood(peer, jobs))
    report.section(f"{jobs} posted at once, {rounds[0]} times, the peer {rounds[1]} times")
    report.add(Row("all answered", [f.answered for f in our_floods],
                   [f.answered for f in peer_floods], limit=targets.FLOOD_ANSWERED))  # fmt: skip
    walls, cpu_times = [f.wall for f in our_floods], [f.cpu for f in our_floods]
    wall, memory, kernels = (
        (targets.FLOOD_WALL, targets.FLOOD_MEMORY, targets.FLOOD_KERNELS)
        if jobs >= FULL_FLOOD
        else (None, None, None)
    )
    report.add(Row("all ended", walls, [f.wall for f in peer_floods], wall))
    report.add(Row("  processor time", cpu_times, [f.cpu for f in peer_floods]))
    report.add(Row("peak memory", [f.memory for f in our_floods], [f.memory for f in peer_floods],
                   memory, unit=GB))  # fmt: skip
    report.add(Row("  processes then", [f.processes for f in our_floods],
                   [f.processes for f in peer_floods], unit=(1.0, "")))  # fmt: skip
    shares = [cost.cpu / cost.cores for cost in costs]
    report.add(Row("all ended / kernels' CPU by cores", walls, shares, kernels))
    report.add(Row("  the same in wall time", walls, [cost.wall for cost in costs]))
    report.add(Row("  in processor time", cpu_times, [cost.cpu for cost in costs]))
    report.add_check("our results", [fault for f in our_floods for fault in f.faults])
    peer_faults = [fault for f in peer_floods for fault in f.faults]
    example = f": {peer_faults[0]}" if peer_faults else ""
    print(f"the peer's results: {len(peer_faults)} not right{example}")


def flood(server: MeasuredServer, jobs: int) -> Flood:
    """Post `jobs` jobs at the same moment to a server that has had one, and wait for all."""
    with server.running() as client:
        server.wait_until_ended(server.submit(client))  # what is imported late, and profiles
        server.wait_until_idle()
        sampler, cpu_before = PeakSampler(server.processes), server.processes.cpu()
        sampler.start()
        try:
            names, answered, began = _submit_together(server, jobs)
            wall = _wait(server, names) - began
        finally:
            sampler.stop()
        server.wait_until_idle()
        cpu = server.processes.cpu() - cpu_before
        faults = [fault for name in names if (fault := server.check_result(name))]
        if len(set(names)) != jobs:
            faults.append(f"{jobs} posted, {len(set(names))} jobs")
        print(f"{server.name}: {jobs} in {wall:.1f} s, answered in {answered:.2f} s, "
              f"{sampler.memory / 1e9:.2f} GB, {sampler.samples} samples", flush=True)  # fmt: skip
        return Flood(answered, wall, cpu, sampler.memory, sampler.processes, faults)


def _submit_together(server: MeasuredServer, jobs: int) -> tuple[list[str], float, float]:
    """Return the jobs, the seconds until the last was answered, and when it began."""
    gate = threading.Barrier(jobs + 1)

    def submit_one() -> str:
        client = server.client()
        client.connect()
        gate.wait()
        name = server.submit(client)
        client.close()
        return name

    with ThreadPoolExecutor(jobs) as pool:
        posted = [pool.submit(submit_one) for _ in range(jobs)]
        gate.wait()
        began = time.perf_counter()
        names = [future.result() for future in posted]
        return names, time.perf_counter() - began, began


def _wait(server: MeasuredServer, names: Sequence[str]) -> float:
    """Return when the last job ended; one whose process is gone never does."""
    unfinished = set(names)
    changed = at_work = time.perf_counter()
    while unfinished and time.perf_counter() - at_work < LOST_TIMEOUT:
        time.sleep(POLL_INTERVAL)
        if len(remaining := server.unfinished(unfinished)) < len(unfinished):
            unfinished, changed = remaining, time.perf_counter()
        if time.perf_counter() - at_work > LOST_TIMEOUT / 10 and server.is_busy():
            at_work = time.perf_counter()
    return changed
