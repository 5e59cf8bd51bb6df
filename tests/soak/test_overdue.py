"""Runners and kernels that stop moving: each run ends past its time limit, and its slot is free."""

from __future__ import annotations

import contextlib
import random
from collections import Counter

import psutil

from ..processes import until
from .evidence import SUCCEEDED
from .moments import Moment
from .scene import Scene
from .test_killed import CHARACTERS

LIMIT = "6s"
PAUSE = 0.3
"""Seconds after each line: a run takes nearly twice its limit."""
JOBS = 3
OVERDUE = ("failed", "DeadlineExceeded")


def test_stopped_past_the_limit(scene: Scene, rng: random.Random, met: Counter[str]) -> None:
    """Every slot has a run in which runner, kernel or both are stopped while a cell prints.

    Some are stopped again whenever they are woken. A job that waits for a slot comes to its turn.
    """
    overdue = [_submit(scene, number) for number in range(JOBS)]
    later = scene.cli.submit(scene.write("later").name)
    scene.expect([later], SUCCEEDED)
    scene.witness.start()
    stubborn: list[psutil.Process] = []
    for name in overdue:
        moment = Moment("printing", rng.randint(1, CHARACTERS // 4), rng.uniform(0, 0.1))
        moment.wait(scene.directory(name), scene.cli.workspace)
        kind = rng.choice(["runner", "runner", "kernel", "both"])
        stopped = scene.runners(name) if kind != "kernel" else []
        kernel = scene.kernel(name)
        if kind != "runner" and kernel is not None:
            stopped.append(kernel)
        if not stopped:  # a busy machine: it was past its limit when this looked
            met["too late"] += 1
            continue
        _stop(stopped)
        scene.must_keep(name)
        if rng.random() < 0.5:
            stubborn += stopped
            kind += ", again and again"
        met[kind] += 1

    def is_over() -> bool:
        _stop(stubborn)
        return all(scene.look(name).concluded for name in overdue)

    until(is_over, "the end of every run past its limit")
    for job in scene.settle().values():
        met[str(job["reason"] or job["state"])] += 1


def _submit(scene: Scene, number: int) -> str:
    path = scene.write(f"overdue{number}", pause=PAUSE)
    name = scene.cli.submit(path.name, "--max-runtime", LIMIT)
    scene.expect([name], OVERDUE)
    return name


def _stop(stopped: list[psutil.Process]) -> None:
    for process in stopped:
        with contextlib.suppress(psutil.Error):
            process.suspend()
