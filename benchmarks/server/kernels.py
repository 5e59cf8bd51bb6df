"""What kernels cost that execute the same cells with nothing around them.

`python -m benchmarks.server.kernels COUNT` prints it: a process of its own, whose only children are
the kernels, so that the system's account of its children is theirs.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from .server import CELLS, MeasuredServer

START_TIMEOUT = 120.0
ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class KernelCost:
    """Processor time of the kernels and what all took, in seconds, on so many cores."""

    cpu: float
    wall: float
    cores: int


def measure_kernels(server: MeasuredServer, count: int) -> KernelCost:
    """Measure it with a server's interpreter and folders."""
    command = [str(server.python), "-m", "benchmarks.server.kernels", str(count)]
    ran = subprocess.run(
        command, cwd=ROOT, env=server.environment, capture_output=True, text=True, check=True
    )
    cost = KernelCost(**json.loads(ran.stdout))
    print(f"{count} kernels alone: {cost.cpu:.1f} s of CPU, {cost.wall:.1f} s", flush=True)
    return cost


def _run(_: int) -> None:
    """Start a kernel, execute the cells, ask it to leave: as whoever executes notebooks does."""
    from jupyter_client.manager import start_new_kernel

    manager, client = start_new_kernel(startup_timeout=START_TIMEOUT, kernel_name="python3")
    for cell in CELLS:
        reply = client.execute_interactive(cell, timeout=START_TIMEOUT, output_hook=lambda _: None)
        assert reply["content"]["status"] == "ok", reply
    client.stop_channels()
    manager.shutdown_kernel()


def main(count: int) -> None:
    """Run so many, one for each processor at a time, and print the cost as JSON."""
    cores = len(os.sched_getaffinity(0))
    began = time.perf_counter()
    with ThreadPoolExecutor(cores) as pool:
        list(pool.map(_run, range(count)))
    wall = time.perf_counter() - began
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    print(json.dumps({"cpu": used.ru_utime + used.ru_stime, "wall": wall, "cores": cores}))


if __name__ == "__main__":
    main(int(sys.argv[1]))
