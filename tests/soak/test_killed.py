"""SIGKILL at random moments, under load: dispatcher, runner, kernel, submit, all together."""

from __future__ import annotations

import random
import subprocess
from collections import Counter

from ..processes import kill, until
from .evidence import LOST, SUCCEEDED, Ending, Evidence
from .moments import draw
from .scene import CELLS, LINES, Scene

CHARACTERS = CELLS * LINES * len("<0.00>\n") - 20
BIG = 12 << 20
"""An output that makes writing the result, and publishing it, last."""
NEVER_CLAIMED: tuple[Ending, ...] = (LOST, ("failed", "RunnerMissing"))
"""A runner killed before it had an attempt: nothing ran, which both reasons say."""


def test_the_dispatcher(scene: Scene, rng: random.Random, met: Counter[str]) -> None:
    """Three jobs with slots for two; whoever waits starts the next dispatcher."""
    scene.cli.capacity = "cpu=2,memory=64Gi"
    phases = ["submitted", "claimed", "kernel", "printing", "ended", "publishing", "publishing"]
    names = scene.submit(3, big=rng.choice([0, BIG]))
    waiting = scene.cli.start("wait", *names)
    for name in rng.sample(names, 2):
        moment = draw(rng, phases, CHARACTERS)
        if not moment.wait(scene.directory(name), scene.cli.workspace):
            met["too late"] += 1
        for dispatcher in scene.cli.dispatchers():
            kill(dispatcher)
            met[moment.phase] += 1
    assert waiting.wait(timeout=120) == 0
    scene.settle()


def test_two_dispatchers_together(scene: Scene, rng: random.Random, met: Counter[str]) -> None:
    """In place of a killed one, several at the same instant: one serves, each job runs once."""
    names = scene.submit(3)
    dispatcher = until(lambda: next(iter(scene.cli.dispatchers()), None), "a dispatcher")
    command, environment = _without_lock(dispatcher.cmdline()), dispatcher.environ()
    moment = draw(rng, ["submitted", "claimed", "printing", "ended"], CHARACTERS)
    moment.wait(scene.directory(rng.choice(names)), scene.cli.workspace)
    kill(dispatcher)
    count = rng.randint(2, 4)
    together = [
        subprocess.Popen(command, env=environment, cwd="/", stderr=subprocess.DEVNULL)
        for _ in range(count)
    ]
    # Whoever looks at the jobs may have started the one that stays.
    until(lambda: sum(p.poll() is None for p in together) <= 1, "all but one to leave")
    # A process that one of them is about to start looks like itself for an instant.
    until(lambda: len(scene.cli.dispatchers()) <= 1, "one dispatcher at most")
    met[moment.phase] += 1
    scene.settle()
    for process in together:
        assert process.poll() in (None, 0)
        process.kill()
        process.wait()


def _without_lock(command: list[str]) -> list[str]:
    """Return a dispatcher's command line without the descriptor that its starter handed over."""
    if "--lock" not in command:
        return command
    at = command.index("--lock")
    return command[:at] + command[at + 2 :]


def test_the_runner(scene: Scene, rng: random.Random, met: Counter[str]) -> None:
    phases = ["submitted", "claimed", "kernel", "answered", "printing", "printing", "ended"]
    victim, _ = scene.submit(2, big=rng.choice([0, BIG]))
    moment = draw(rng, [*phases, "result"], CHARACTERS)
    moment.wait(scene.directory(victim), scene.cli.workspace)
    runner = next(iter(scene.runners(victim)), None)
    if runner is None and not scene.look(victim).claimed:
        until(lambda: scene.runners(victim) or scene.look(victim).claimed, "a runner")
        runner = next(iter(scene.runners(victim)), None)
    if runner is None:
        met["too late"] += 1
    else:
        kill(runner)
        seen = scene.must_keep(victim)
        scene.expect([victim], *([seen.when_killed] if seen.claimed else NEVER_CLAIMED))
        if seen.claimed and not seen.concluded:
            scene.witness.is_dead(victim)
        met[moment.phase] += 1
    ended = scene.settle()[victim]
    met[str(ended["reason"] or ended["state"])] += 1


def test_the_kernel(scene: Scene, rng: random.Random, met: Counter[str]) -> None:
    victim, _ = scene.submit(2)
    moment = draw(rng, ["kernel", "answered", "printing", "printing", "ended"], CHARACTERS)
    moment.wait(scene.directory(victim), scene.cli.workspace)
    kernel = scene.kernel(victim)
    before = scene.must_keep(victim)
    if kernel is None:
        met["too late"] += 1
    else:
        kill(kernel)
        met[moment.phase] += 1
        until(lambda: scene.look(victim).concluded, "the outcome")
        scene.expect([victim], *_after_the_kernel(before, scene.look(victim)))
    ended = scene.settle()[victim]
    met[str(ended["reason"] or ended["state"])] += 1


def _after_the_kernel(before: Evidence, after: Evidence) -> set[Ending]:
    """The right endings of a job whose kernel was killed after `before`."""
    if before.ended is not None:
        return {before.ended}
    if not before.answered and not after.answered:
        return {("failed", "NoKernel"), ("failed", "KernelDied")}
    if after.cells_ended == after.cells_total:
        return {SUCCEEDED, ("failed", "KernelDied")}
    return {("failed", "KernelDied")}


def test_all_together(scene: Scene, rng: random.Random, met: Counter[str]) -> None:
    """Dispatcher, runners, kernels and a submission under way, in any order."""
    names = scene.submit(3, big=rng.choice([0, BIG]))
    scene.write("late")
    submitting = scene.cli.start("submit", "late.ipynb", "--idempotency-key", "late")
    phases = ["submitted", "claimed", "printing", "printing", "ended", "publishing"]
    moment = draw(rng, phases, CHARACTERS)
    moment.wait(scene.directory(rng.choice(names)), scene.cli.workspace)
    submitting.kill()
    submitting.wait()
    with scene.witness.hold():
        scene.kill_all(rng.sample(["dispatcher", "runner", "kernel"], 3))
        late = [path.name for path in scene.cli.exchange.glob("late-*")]
        for name in [*names, *late]:
            seen = scene.must_keep(name)
            right = [seen.when_killed] if seen.claimed else [SUCCEEDED, *NEVER_CLAIMED]
            scene.expect([name], *right)
            if seen.claimed:
                scene.witness.is_dead(name)
    met[moment.phase] += 1
    again = scene.cli.submit("late.ipynb", "--idempotency-key", "late")
    assert late in ([], [again])
    if not late:
        scene.expect([again], SUCCEEDED)
    for job in scene.settle().values():
        met[str(job["reason"] or job["state"])] += 1
    for draft in scene.cli.exchange.glob(".new-*"):
        assert not (draft / "attempt-1").exists()
