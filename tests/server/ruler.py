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
from bisect import bisect_left
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

LIMIT = 0.05
TRIES = 5
STEP = 0.005
STRICT = os.environ.get("JUPYTER_TO_JOB_STRICT") == "1"
log = logging.getLogger(__name__)

_SAMPLES = """\
import glob, sys, time
seen, total = {}, 0
while True:
    for path in glob.glob(f"/proc/{sys.argv[1]}/task/*/schedstat"):
        try:
            with open(path) as file:
                waited = int(file.read().split()[1])
        except OSError:  # a thread that ended just now
            continue
        total += waited - seen.get(path, waited)
        seen[path] = waited
    print(time.monotonic(), total / 1e9, flush=True)
    time.sleep(0.002)
"""
"""When, and for how long threads of a process could have run by then, and others did: seconds.

One of the threads may be what holds Python's lock meanwhile. 0.0 where the kernel does not tell.
"""


class Ruler:
    """Measures the loop that it is used in; `samples` is what the process beside this one says."""

    def __init__(self, samples: Path) -> None:
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
        await work
        over = True
        await probing
        kept = await self._kept_waiting(times[-1][1])
        return max(
            end - before - STEP - (0.0 if STRICT else kept(end) - kept(before))
            for before, end in times
        )

    async def _kept_waiting(self, until: float) -> Callable[[float], float]:
        """Return how long threads had been kept waiting by a time, once that is known."""
        while True:
            lines = self._samples.read_text().splitlines()[:-1]  # the last may be a half one
            samples = [tuple(map(float, line.split())) for line in lines]
            if samples and samples[-1][0] >= until:
                return lambda at: samples[bisect_left(samples, (at,))][1]
            await asyncio.sleep(STEP)


@pytest.fixture
def ruler(tmp_path: Path) -> Iterator[Ruler]:
    samples = tmp_path / "samples"
    with samples.open("w") as file:
        process = subprocess.Popen([sys.executable, "-c", _SAMPLES, str(os.getpid())], stdout=file)
    yield Ruler(samples)
    process.kill()
    process.wait()
