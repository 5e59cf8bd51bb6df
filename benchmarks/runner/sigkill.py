"""SIGKILL of the runner at random moments: is there a notebook, and how much of what it printed?"""

from __future__ import annotations

import contextlib
import random
import shutil
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

from .measure import SOURCE, RunFolders, kill_tree, start
from .peers import RESULT, Peer
from .result_checks import Output, find_fault

NAME = "runner-killed"
_CELLS = 40
_LINES = 10
_LINE_INTERVAL = 0.005
_SAFE_AFTER = 1.0
"""Seconds after which a printed line has to survive everything."""
_PRINTED_LOG = "witness"
_FINISH_TIMEOUT = 60.0

_CELL = """\
import os, time
witness = os.open('{witness}', os.O_WRONLY | os.O_CREAT | os.O_APPEND)
for number in range({first}, {last}):
    print('line', number, flush=True)
    os.write(witness, f'{{time.time()!r}}\\n'.encode())
    time.sleep({every})
"""


@dataclass(frozen=True)
class KilledRun:
    """`kept` of the `printed` lines were in the result of a run killed after `moment` seconds."""

    moment: float
    printed: int
    kept: int
    wrong: str


def cells() -> list[str]:
    return [
        _CELL.format(
            witness=_PRINTED_LOG, first=n * _LINES, last=(n + 1) * _LINES, every=_LINE_INTERVAL
        )
        for n in range(_CELLS)
    ]


def kill_runners(
    folders: RunFolders, peer: Peer, times: int, chance: random.Random
) -> list[KilledRun]:
    """Run undisturbed to learn how long it takes, then kill at random moments within that."""
    folder = folders.fresh(cells())
    began = time.monotonic()
    start(peer.command(SOURCE), folder, folders.environment(peer.environment)).wait()
    lasts = time.monotonic() - began
    shutil.rmtree(folder)
    return [_kill(folders, peer, chance.uniform(0, lasts)) for _ in range(times)]


def _kill(folders: RunFolders, peer: Peer, moment: float) -> KilledRun:
    folder = folders.fresh(cells())
    environment = folders.environment(peer.environment)
    process = start(peer.command(SOURCE), folder, environment)
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(moment)  # one that is quicker this time is complete, and checked all the same
    killed = time.time()
    kill_tree(process.pid)
    process.wait()
    finish = peer.finish(folder)
    if finish is not None:
        start(finish, folder, environment).wait(_FINISH_TIMEOUT)
    killed_run = _killed_run(folder, moment, killed)
    shutil.rmtree(folder)
    return killed_run


def _killed_run(folder: Path, moment: float, killed: float) -> KilledRun:
    witness = folder / _PRINTED_LOG
    # The kernel dies in the middle of things, too: its last line may be torn.
    said = witness.read_text().split("\n")[:-1] if witness.exists() else []
    due = sum(float(line) <= killed - _SAFE_AFTER for line in said)
    kept = 0

    def check(found: list[list[Output]]) -> str:
        nonlocal kept
        text = "".join(text for outputs in found for kind, text in outputs if kind == "stdout")
        lines = text.splitlines()
        kept = len(lines)
        if lines != [f"line {number}" for number in range(kept)]:
            return "lines out of order, or torn"
        return "" if kept >= due else f"{kept} of {due} lines that were safe"

    wrong = find_fault(folder / RESULT, check)
    if wrong == "no file" and not due:
        wrong = ""  # it was killed before anything had come out
    return KilledRun(moment, len(said), kept, wrong)
