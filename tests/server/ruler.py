"""For how long an event loop answers nobody, and how much of that was the machine's doing.

On a busy machine any process stands still now and then. So each thing is tried some times, for a
loop that is blocked is blocked every time. And what the kernel says that it gave to others is
taken off, as is what the same loop shows while it is idle. JUPYTER_TO_JOB_STRICT=1 holds each of
the tries to the letter: on a machine that does nothing else.

What the kernel says is read by a process beside this one: every file that a thread reads is a wait
for Python's lock where others are busy, and a loop that did that would measure itself.
"""

from __future__ import annotations

import asyncio
import logging
import os
import subprocess
import sys
import time
from bisect import bisect_left, bisect_right
from collections.abc import Awaitable, Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

LIMIT = 0.05
TRIES = 5
STEP = 0.005
STRICT = os.environ.get("JUPYTER_TO_JOB_STRICT") == "1"
log = logging.getLogger(__name__)

_SAMPLES = """\
import os, sys, time
parent = os.getppid()
folder, seen, total = f"/proc/{parent}/task", {}, 0
while os.getppid() == parent:
    at = time.monotonic()
    for thread in os.listdir(folder) if os.path.isdir(folder) else ():
        try:
            with open(f"{folder}/{thread}/schedstat") as file:
                waited = int(file.read().split()[1])
        except OSError:  # a thread that ended just now
            continue
        total += waited - seen.get(thread, waited)
        seen[thread] = waited
    print(at, total / 1e9, flush=True)
    time.sleep(0.002)
"""
"""When, and for how long threads of this process could have run by then, and others did: seconds.

One of the threads may be what holds Python's lock meanwhile. 0.0 where the kernel does not tell.
"""
Samples = Sequence[tuple[float, float]]


def kept_waiting(samples: Samples, began: float, end: float) -> float:
    """Return for how long threads were kept waiting between two times, from samples around them.

    All threads together, and up to a sample more at either side: what is left of a stall was surely
    the server's.
    """
    first = max(0, bisect_right(samples, (began, float("inf"))) - 1)
    return samples[bisect_left(samples, (end,))][1] - samples[first][1]


class Ruler:
    """Measures the loop that it is used in; `samples` is what the process beside this one says."""

    def __init__(self, process: subprocess.Popen[bytes], samples: Path) -> None:
        self._process = process
        self._samples = samples

    async def hold(self, make: Callable[[int], Awaitable[Any]], what: str) -> None:
        """Hold what `make` starts to the limit, in one of some tries."""
        seen = []
        for number in range(TRIES):
            idle = 0.0 if STRICT else await self.longest(asyncio.sleep(0.5))
            seen.append(await self.longest(make(number)) - idle)
            if seen[-1] < LIMIT and not STRICT:
                break
        log.info("%s: %s ms", what, [round(1000 * lag) for lag in seen])
        assert (max(seen) if STRICT else min(seen)) < LIMIT, (what, seen)

    async def longest(self, work: Awaitable[Any]) -> float:
        """Do it, and return for how long the loop answered nobody meanwhile, in seconds."""
        times: list[tuple[float, float]] = []
        over = False

        async def probe() -> None:
            while not over:
                before = time.monotonic()
                await asyncio.sleep(STEP)
                times.append((before, time.monotonic()))

        probing = asyncio.ensure_future(probe())
        await asyncio.sleep(0.05)
        times.clear()
        try:
            await work
        finally:
            over = True
            await probing
        samples = [(0.0, 0.0), (times[-1][1], 0.0)] if STRICT else await self._until(times[-1][1])
        return max(end - began - STEP - kept_waiting(samples, began, end) for began, end in times)

    async def _until(self, end: float) -> Samples:
        """Return the samples once they go as far as this."""
        while True:
            assert self._process.poll() is None, "what looks at the kernel's figures is gone"
            lines = self._samples.read_text().splitlines()[:-1]  # the last may be half a one
            samples = [(float(at), float(total)) for at, total in map(str.split, lines)]
            if samples and samples[-1][0] >= end:
                return samples
            await asyncio.sleep(STEP)


@pytest.fixture
def ruler(tmp_path: Path) -> Iterator[Ruler]:
    samples = tmp_path / "samples"
    with samples.open("w") as file:
        process = subprocess.Popen([sys.executable, "-c", "" if STRICT else _SAMPLES], stdout=file)
    yield Ruler(process, samples)
    process.kill()
    process.wait()
