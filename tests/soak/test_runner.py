"""The plain runner, `job_runner run --input --output`: a dead kernel, a stop, a kill.

What counts as printed is what a side file holds, which each cell writes after it has printed. The
contract's times are held in the soak, which has the machine for itself; the share of it that CI
runs beside other work holds order and completeness, and that it ends.
"""

from __future__ import annotations

import itertools
import os
import random
import re
import shutil
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import psutil
import pytest

from job_runner.protocol import layout

from .. import notebooks
from ..processes import BOUND, gone, until
from ..runner.jobs import RUNNER
from .evidence import LOST, SUCCEEDED, Evidence, look, outcome
from .moments import draw

CELLS, LINES = 3, 12
NOTICED, STOPPED = 0.2, 1.0
"""Seconds from the death of a kernel to the end of its run; from SIGTERM to the runner's exit."""
_LINE = re.compile(r"<(\d+)\.(\d+)>")
_COUNTS = """\
import itertools, time
for n in {lines}:
    print(f"<{cell}.{{n}}>", flush=True)
    with open("side.txt", "a") as side:
        side.write(f"<{cell}.{{n}}>\\n")
    {pause}
"""
_PAUSES = {
    "sleeping": "time.sleep({seconds})",
    "busy": "until = time.monotonic() + {seconds}\n    while time.monotonic() < until: pass",
}
_BIG = 'from IPython.display import display\ndisplay({"text/plain": "x" * (12 << 20)}, raw=True)\n'
"""An output that makes writing the result last."""


@dataclass
class Run:
    """A plain run in a folder of its own; `process` is the runner, or what it was started with."""

    folder: Path
    process: subprocess.Popen[bytes]

    @property
    def job(self) -> Path:
        return self.folder / ".out.ipynb.job"

    @property
    def result(self) -> Path:
        return self.folder / "out.ipynb"

    def look(self) -> Evidence:
        return look(self.job)

    def side(self) -> list[tuple[int, int]]:
        """What the cells have printed for certain: (cell, line)."""
        path = self.folder / "side.txt"
        return lines(path.read_text()) if path.exists() else []

    def kernel(self) -> psutil.Process:
        """The kernel, found as the runner's child: in a namespace its number is another."""
        return until(self._kernel, "a kernel")

    def _kernel(self) -> psutil.Process | None:
        for child in psutil.Process(self.process.pid).children(recursive=True):
            if "ipykernel_launcher" in " ".join(child.cmdline()):
                return child
        return None

    def check(self, printed: list[tuple[int, int]]) -> None:
        """The result is valid and holds all that was printed, in order, and nothing twice."""
        found = lines(notebooks.printed(self.result))
        assert found[: len(printed)] == printed
        assert found[:1] in ([], [(0, 0)])
        for (cell, n), following in itertools.pairwise(found):
            assert following == (cell, n + 1) or (n + 1, following) == (LINES, (cell + 1, 0))


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., Run]]:
    """Starts runs of notebooks, given as the sources of their cells."""
    runs: list[Run] = []

    def begin(*sources: str, before: tuple[str, ...] = ()) -> Run:
        notebooks.write(tmp_path / "in.ipynb", *sources)
        command = [*before, *RUNNER, "run", "--input", "in.ipynb", "--output", "out.ipynb"]
        with (tmp_path / "log").open("ab") as log:
            process = subprocess.Popen(command, cwd=tmp_path, stderr=log, start_new_session=True)
        runs.append(Run(tmp_path, process))
        return runs[-1]

    yield begin
    for run in runs:
        if run.process.poll() is None:
            run.process.kill()
        run.process.wait()


def counting(cell: int, pause: float, doing: str = "sleeping", *, on: bool = False) -> str:
    """A cell that prints numbered lines; `on`: without end."""
    numbers = "itertools.count()" if on else f"range({LINES})"
    return _COUNTS.format(cell=cell, lines=numbers, pause=_PAUSES[doing].format(seconds=pause))


def lines(text: str) -> list[tuple[int, int]]:
    return [(int(cell), int(n)) for cell, n in _LINE.findall(text)]


def test_a_kernel_dies(
    start: Callable[..., Run], rng: random.Random, met: Counter[str], in_full: bool
) -> None:
    doing = rng.choice(list(_PAUSES))
    run = start(counting(0, rng.uniform(0.02, 0.1), doing, on=True))
    wanted = rng.randint(1, 20)
    until(lambda: len(run.side()) >= wanted, "some lines")
    kernel = run.kernel()
    printed = run.side()
    # What a kernel has just handed to its socket's thread dies with it: nobody could have it.
    time.sleep(rng.uniform(1.0, 1.1))
    printed = max(printed, lines(run.look().printed))
    died = time.time()
    kernel.kill()
    assert run.process.wait(timeout=BOUND) == 4
    run.check(printed)
    # By the runner's own clock: when it had recorded how the run ended, all output included.
    ended = notebooks.read(run.result).metadata.papermill.end_time
    assert "KernelDied" in notebooks.banner(run.result)
    met[doing] += 1
    _within(datetime.fromisoformat(ended).timestamp() - died, NOTICED, in_full, met)


def test_told_to_stop(
    start: Callable[..., Run], rng: random.Random, met: Counter[str], in_full: bool
) -> None:
    run = start(_printing_on(rng, met))
    _within(_stop(run, psutil.Process(run.process.pid), rng), STOPPED, in_full, met)


def test_told_to_stop_as_pid_1(
    start: Callable[..., Run], rng: random.Random, met: Counter[str], in_full: bool
) -> None:
    unshare = shutil.which("unshare")
    if os.geteuid() != 0 or unshare is None:
        pytest.skip("needs root and unshare to be PID 1 of a namespace")
    inside = (unshare, "--fork", "--pid", "--mount-proc", "--kill-child")
    run = start(_printing_on(rng, met), before=inside)
    outer = psutil.Process(run.process.pid)
    runner = until(lambda: next(iter(outer.children()), None), "PID 1")
    _within(_stop(run, runner, rng), STOPPED, in_full, met)


def _printing_on(rng: random.Random, met: Counter[str]) -> str:
    """A cell without end: from a flood to one that says one thing and is silent."""
    pause = rng.choice([0.001, 0.02, 0.2, 5])
    met[f"a line each {pause:g} s"] += 1
    return counting(0, pause, on=True)


def _stop(run: Run, runner: psutil.Process, rng: random.Random) -> float:
    """Send SIGTERM, check what is left, and return the seconds until the runner was gone."""
    until(lambda: len(run.side()) > 0, "a line")
    time.sleep(rng.uniform(0, 0.5))
    printed = run.side()
    began = time.monotonic()
    runner.terminate()
    assert run.process.wait(timeout=BOUND) == 143
    took = time.monotonic() - began
    run.check(printed)
    assert "Terminated" in notebooks.banner(run.result)
    return took


def _within(took: float, bound: float, in_full: bool, met: Counter[str]) -> None:
    """Hold a time of the contract in the soak; the table tells the longest of all."""
    met["longest, ms"] = max(met["longest, ms"], round(took * 1000))
    assert took < (bound if in_full else BOUND)


@pytest.mark.often
def test_killed(start: Callable[..., Run], rng: random.Random, met: Counter[str]) -> None:
    """SIGKILL at any moment: `finish` makes a valid notebook with all that was acknowledged.

    A reader of the journal saw it, or the cell had printed it a second before: both must be there.
    """
    sources = [counting(cell, 0.02) for cell in range(CELLS)]
    run = start(rng.choice(["", _BIG]) + sources[0], *sources[1:])
    phases = ["claimed", "kernel", "answered", "printing", "printing", "ended", "result"]
    moment = draw(rng, phases, CELLS * LINES * len("<0.00>\n") - 20)
    reached = until(
        lambda: run.process.poll() is not None or moment.reached(run.job, run.folder), str(moment)
    )
    assert reached
    time.sleep(moment.jitter)
    acknowledged = lines(run.look().printed)
    run.process.send_signal(signal.SIGKILL)
    run.process.wait()
    if not (run.job / layout.REQUEST).exists():  # it had ended, and was removing that
        met["too late"] += 1
        run.check(acknowledged)
        assert notebooks.banner(run.result) == ""
        return
    seen = run.look()
    assert _finish(run) == 0
    run.check(max(acknowledged, lines(seen.printed)))
    ending = outcome(run.job)
    assert (ending["state"], ending["reason"]) == seen.when_killed
    met[moment.phase] += 1
    met[str(ending["reason"] or ending["state"])] += 1
    assert bool(notebooks.banner(run.result)) == (seen.when_killed != SUCCEEDED)
    assert seen.when_killed in (SUCCEEDED, LOST)
    assert seen.sockets is None or not Path(seen.sockets).exists()
    assert list(run.job.rglob("*.tmp")) == []
    if seen.kernel is not None and psutil.pid_exists(seen.kernel):
        kernel = psutil.Process(seen.kernel)
        until(lambda: gone(kernel), "the kernel ends with its runner")


def _finish(run: Run) -> int:
    command: list[Any] = [*RUNNER, "finish", str(run.job)]
    done = subprocess.run(command, timeout=BOUND, check=False)
    assert (run.job / "attempt-1" / layout.OUTCOME).exists()
    return done.returncode
