"""The submitting process: killed at any moment of it, many at once, and with one key many times."""

from __future__ import annotations

import json
import os
import random
import subprocess
import time
from collections import Counter
from pathlib import Path

import pytest

from job_runner.protocol import documents, layout

from .. import notebooks
from ..local.cli import Cli
from ..processes import kill, until
from .evidence import SUCCEEDED
from .scene import Scene, digest

BYTES = 4 << 20


def test_submit(scene: Scene, rng: random.Random, met: Counter[str]) -> None:
    """Submissions with inputs, killed while other jobs run: no job, or a whole one that runs."""
    cli = scene.cli
    scene.submit(2)
    (cli.workspace / "input.bin").write_bytes(rng.randbytes(BYTES))
    sources = [scene.write(f"victim{n}", pause=0) for n in range(3)]
    for source in sources:
        process = _submit(cli, source)
        phase = rng.choice(["starting", "recording", "recorded"])
        _wait_for(phase, process, cli, source)
        time.sleep(rng.uniform(0, {"starting": 0.5, "recording": 0.01, "recorded": 0.1}[phase]))
        process.kill()
        process.wait()
        met[phase] += 1
    for source in sources:
        found = _jobs_of(cli, source)
        assert len(found) <= 1
        met["whole job" if found else "no job"] += 1
        for job in found:
            _check_whole(cli, job, source)
        if not found or rng.random() < 0.5:  # the others are taken up without a word
            out, err = (again := _submit(cli, source)).communicate(timeout=60)
            assert again.returncode == 0, err
            assert [job.name for job in found] in ([], [out.strip()])
        scene.expect([job.name for job in _jobs_of(cli, source)], SUCCEEDED)
    scene.settle()
    _check_sweep(scene)


def _wait_for(phase: str, process: subprocess.Popen[str], cli: Cli, source: Path) -> None:
    """Wait until a submission makes its job, or has made it; it may be faster than we look."""
    drafts = set(cli.exchange.glob(".new-*"))
    while process.poll() is None and phase != "starting":
        if _jobs_of(cli, source):
            return
        if phase == "recording" and set(cli.exchange.glob(".new-*")) - drafts:
            return
        time.sleep(0.001)


def _submit(cli: Cli, source: Path) -> subprocess.Popen[str]:
    key = ("--idempotency-key", source.stem)
    return cli.start("submit", source.name, "-i", "input.bin", *key)


def _jobs_of(cli: Cli, source: Path) -> list[Path]:
    return sorted(cli.exchange.glob(f"{source.stem}-*"))


def _check_whole(cli: Cli, job: Path, source: Path) -> None:
    request = documents.read_document(job / layout.REQUEST)
    assert request is not None and request["name"] == job.name
    assert (job / layout.SNAPSHOT).read_bytes() == source.read_bytes()
    given = job / layout.INPUTS / "input.bin"
    assert digest(given) == digest(cli.workspace / "input.bin")


def _check_sweep(scene: Scene) -> None:
    """What killed submissions left goes with a dispatcher that comes an hour later."""
    drafts = list(scene.cli.exchange.glob(".new-*"))
    if not drafts:
        return
    for draft in drafts:
        os.utime(draft, (0, 0))
    for dispatcher in scene.cli.dispatchers():
        kill(dispatcher)
    scene.cli.submit(next(iter(scene.sources)).name)
    until(lambda: not any(draft.exists() for draft in drafts), "the sweep")


@pytest.mark.heavy
def test_twenty_at_once(scene: Scene, rng: random.Random, met: Counter[str]) -> None:
    """Nothing ran before; each of twenty processes finds or starts the one dispatcher."""
    cli = scene.cli
    notebooks.write(cli.workspace / "a.ipynb", "print('x')")
    submits = [cli.start("submit", "a.ipynb") for _ in range(20)]
    names = [process.communicate(timeout=240)[0].strip() for process in submits]
    assert len(set(names)) == 20
    until(lambda: len(cli.dispatchers()) == 1, "one dispatcher")
    kept = rng.choice(names)
    dropped = [name for name in names if name != kept]
    assert cli.run("delete", *dropped).returncode == 0  # 50 at once all run; here it is the start
    assert cli.json("wait", kept)["state"] == "succeeded"
    assert [job["name"] for job in cli.json("list", "--all")] == [kept]
    assert len(cli.results(kept)) == 1


@pytest.mark.heavy
def test_one_key_twenty_times(scene: Scene, rng: random.Random, met: Counter[str]) -> None:
    cli = scene.cli
    scene.write("a", pause=0)
    key = ("--idempotency-key", f"key {rng.random()}")
    submits = [cli.start("submit", "a.ipynb", *key) for _ in range(20)]
    said = [(*process.communicate(timeout=240), process.returncode) for process in submits]
    assert {code for _, _, code in said} == {0}, {err for _, err, _ in said}
    (name,) = {out.strip() for out, _, _ in said}
    assert [job["name"] for job in cli.json("list", "--all")] == [name]
    scene.expect([name], SUCCEEDED)
    scene.settle()


@pytest.mark.timeout(600)
def test_fifty_at_once(scene: Scene, met: Counter[str], in_full: bool) -> None:
    """Each delivered once with its own parameter; the dispatcher stays small. CI runs 15."""
    count = 50 if in_full else 15
    cli = scene.cli
    cli.capacity = "cpu=4,memory=64Gi"
    notebooks.write(cli.workspace / "a.ipynb", notebooks.parameters("n = -1"), "print(n)")
    submits = [cli.start("submit", "a.ipynb", "-p", "n", str(n)) for n in range(count)]
    names = []
    for process in submits:
        out, err = process.communicate(timeout=300)
        assert process.returncode == 0, err
        names.append(out.strip())
    assert len(set(names)) == count
    # Of two the younger is a child on its way to become a runner.
    dispatcher = min(cli.dispatchers(), key=lambda process: process.create_time())
    waiting = cli.start("wait", *names, "--json")
    out, err = waiting.communicate(timeout=500)
    peak = _peak_rss(dispatcher.pid)
    assert waiting.returncode == 0, err
    jobs = json.loads(out)
    assert [job["name"] for job in jobs] == names
    printed = [notebooks.printed(cli.result(job)) for job in jobs]
    assert printed == [f"{n}\n" for n in range(count)]
    assert len(list(cli.workspace.iterdir())) == count + 1
    met[f"jobs, dispatcher {peak / 1e6:.1f} MB"] += count
    assert peak < 80_000_000, f"the dispatcher used {peak / 1e6:.1f} MB"


def _peak_rss(pid: int) -> int:
    """Return the largest resident size that a process ever had, in bytes."""
    status = Path(f"/proc/{pid}/status").read_text()
    (line,) = [line for line in status.splitlines() if line.startswith("VmHWM:")]
    return int(line.split()[1]) * 1024
