"""Measures the gateway's process: event streams beside running jobs, and pages of the list.

Everything is done for a crowd and for a quarter of it, which shows how it grows. Processor time
depends less on what else the machine does than seconds of answers, but is higher on a busy one.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from ..machine import print_machine
from . import targets
from .crowd import Clients, at_work
from .process import GatewayProcess
from .record import Crowd, fill
from .restart import Restart, measure_restart

INDEX_DELAY = 3.0
"""Seconds after which the index takes a directory that changed: see `exchange.stamps.RACY`."""
WARM_UP = 5.0
"""Seconds from the first append to the measured time: all streams have their first events."""


@dataclass(frozen=True)
class Figures:
    """What was measured. `busy_cpu` and `idle_cpu` are shares of a core, `page*` seconds, of which
    `page_cpu` are processor time; `memory` is bytes, `events` and `appends` are in a second.

    `cpu` is the share at the full rate of appends: clients may not reach it on a busy machine.
    """

    cpu: float
    busy_cpu: float
    idle_cpu: float
    memory: int
    events: float
    appends: float
    page_cpu: float
    page: float
    first_page: float
    restart: Restart


def main() -> int:
    """Measure, print, and return 1 if a target is missed."""
    parser = argparse.ArgumentParser(prog="benchmarks.cluster", description=__doc__)
    parser.add_argument("--streams", type=int, default=50, help="event streams")
    parser.add_argument("--owners", type=int, default=50, help="users who have streams and jobs")
    parser.add_argument("--running", type=int, default=50, help="jobs that run and print")
    parser.add_argument("--kept", type=int, default=2000, help="jobs that were delivered")
    parser.add_argument("--interval", type=float, default=1.0, help="seconds between two appends")
    parser.add_argument("--seconds", type=float, default=30.0, help="how long to measure")
    parser.add_argument("--pages", type=int, default=50, help="pages of the list that are timed")
    parser.add_argument("--json", type=Path, help="write the figures here, too")
    options = parser.parse_args()
    print_machine()
    whole = Crowd(options.streams, options.running, options.kept, options.owners)
    results = {}
    for crowd in (whole.quarter(), whole):
        with tempfile.TemporaryDirectory(prefix="bench-cluster-") as folder:
            results[crowd] = asyncio.run(measure(Path(folder), crowd, options))
        _show(crowd, results[crowd])
    if options.json:
        rows = [{**asdict(crowd), **asdict(result)} for crowd, result in results.items()]
        options.json.write_text(json.dumps(rows, indent=2) + "\n")
    missed = _missed(results[whole])
    print("\nmissed: " + "; ".join(missed) if missed else "\nall targets are met")
    return 1 if missed else 0


async def measure(folder: Path, crowd: Crowd, options: argparse.Namespace) -> Figures:
    """Fill an exchange, start a gateway on it, and measure."""
    jobs = fill(folder / "exchange", crowd)
    await asyncio.sleep(INDEX_DELAY)
    gateway = GatewayProcess(folder / "exchange", jobs)
    clients = Clients(gateway.port)
    try:
        first_page = await clients.page(crowd.owner(0))
        for number in range(crowd.owners):  # which brings the index up to date
            await clients.page(crowd.owner(number))
        await asyncio.sleep(INDEX_DELAY)
        await clients.page(crowd.owner(0))
        before = gateway.cpu_seconds()
        pages = [await clients.page(crowd.owner(n)) for n in range(options.pages)]
        page_cpu = (gateway.cpu_seconds() - before) / options.pages
        async with at_work(*(clients.follow(crowd.owner(n)) for n in range(crowd.streams))):
            await asyncio.sleep(WARM_UP)
            idle_cpu = await _share_of_core(gateway, options.seconds)
            async with at_work(*(clients.run_job(job, options.interval) for job in jobs)):
                await asyncio.sleep(WARM_UP)
                clients.events = clients.appends = 0
                busy_cpu = await _share_of_core(gateway, options.seconds)
                events, appends = clients.events, clients.appends
        memory = gateway.memory()
        seconds = options.seconds
        append_cpu = max(0.0, busy_cpu - idle_cpu) * seconds / max(1, appends)
        return Figures(
            cpu=idle_cpu + append_cpu * len(jobs) / options.interval,
            busy_cpu=busy_cpu,
            idle_cpu=idle_cpu,
            memory=memory,
            events=events / seconds,
            appends=appends / seconds,
            page_cpu=page_cpu,
            page=statistics.median(pages),
            first_page=first_page,
            restart=await measure_restart(gateway, clients, crowd, jobs, options.interval),
        )
    finally:
        gateway.kill()


async def _share_of_core(gateway: GatewayProcess, seconds: float) -> float:
    before, began = gateway.cpu_seconds(), time.monotonic()
    await asyncio.sleep(seconds)
    return (gateway.cpu_seconds() - before) / (time.monotonic() - began)


def _show(crowd: Crowd, result: Figures) -> None:
    print(f"\n{crowd.streams} event streams, {crowd.running} running jobs, {crowd.kept} kept, "
          f"{crowd.owners} owners")  # fmt: skip
    print(f"  controller, of a core         {result.cpu:8.1%}   measured: {result.busy_cpu:.1%} at "
          f"{result.appends:.0f} appends and {result.events:.0f} events a second")  # fmt: skip
    print(f"  controller, nothing prints    {result.idle_cpu:8.1%}")
    print(f"  its memory                    {result.memory / 1e6:8.0f} MB")
    print(f"  a page, processor time        {result.page_cpu * 1e3:8.1f} ms  answered in "
          f"{result.page * 1e3:.1f} ms; the first, without an index: {result.first_page:.2f} s"
          )  # fmt: skip
    restart = result.restart
    print(f"  settled after SIGKILL         {restart.settled:8.2f} s   {restart.cpu:.2f} s of it "
          f"processor time; health after {restart.answered:.2f} s, then within "
          f"{restart.health:.2f} s; a page after it {restart.page:.2f} s", flush=True)  # fmt: skip


def _missed(result: Figures) -> list[str]:
    """Return which targets the full crowd missed."""
    held = {
        "of a core": (result.cpu, targets.CPU),
        "bytes of memory": (result.memory, targets.MEMORY),
        "seconds of processor time for a page": (result.page_cpu, targets.PAGE),
        "seconds to settle after a restart": (result.restart.settled, targets.SETTLED),
        "seconds for an answer of the health": (result.restart.health, targets.HEALTH),
    }
    return [f"{figure:.3g} {what}" for what, (figure, most) in held.items() if figure > most]


if __name__ == "__main__":
    sys.exit(main())
