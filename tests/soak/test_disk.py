"""A full disk, in every place where something is written: nothing is lost, and the job says so."""

from __future__ import annotations

import contextlib
import os
import random
import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from ..processes import kill, until
from .evidence import SUCCEEDED
from .moments import draw
from .scene import CELLS, LINES, Scene, digest
from .test_killed import CHARACTERS
from .test_submitting import _jobs_of

SIZE = 48 << 20
BIG = 8 << 20
CHUNK = 16 << 10
DISK_FULL = ("failed", "DiskFull")


@dataclass
class SmallDisk:
    """A file system of its own, of `SIZE` bytes."""

    path: Path

    @property
    def free(self) -> int:
        found = os.statvfs(self.path)
        return found.f_bavail * found.f_frsize

    def fill(self, leave: int) -> None:
        """Take all space but `leave` bytes, while others take some, too."""
        with (self.path / "ballast").open("ab") as ballast:
            while (take := self.free - leave) > 0:
                end = ballast.seek(0, os.SEEK_END)
                with contextlib.suppress(OSError):  # somebody was faster
                    os.posix_fallocate(ballast.fileno(), end, take)

    def empty(self) -> None:
        (self.path / "ballast").unlink()


@pytest.fixture
def small(tmp_path: Path) -> Iterator[SmallDisk]:
    path = tmp_path / "small"
    path.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={SIZE},mode=0700", "soak", str(path)]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True).returncode != 0:
        pytest.skip("a small disk can be mounted by root only")
    yield SmallDisk(path)
    subprocess.run(["umount", "--lazy", str(path)], check=True)


@pytest.fixture
def small_exchange(small: SmallDisk, scene: Scene) -> SmallDisk:
    """The exchange is on a small disk, with one older job delivered."""
    scene.cli.exchange = small.path / "exchange"
    _older(scene)
    return small


@pytest.fixture
def small_workspace(small: SmallDisk, scene: Scene) -> SmallDisk:
    """The workspace is on a small disk, with one older result in it."""
    scene.cli.workspace = small.path / "workspace"
    scene.cli.workspace.mkdir()
    _older(scene)
    return small


def _older(scene: Scene) -> None:
    path = scene.write("older", pause=0)
    name = scene.cli.json("submit", path.name, "--wait")["name"]
    scene.expect([name], SUCCEEDED)


def test_full_during_the_journal(
    small_exchange: SmallDisk,
    scene: Scene,
    rng: random.Random,
    met: Counter[str],
    tmp_path: Path,
) -> None:
    """A job that goes on printing; what fits is left, and whatever is freed is taken again."""
    older = _digests(scene)
    gate = tmp_path / "gate"
    victim = _submit_chatty(scene, gate)
    moment = draw(rng, ["kernel", "answered", "printing", "printing"], CHUNK * LINES)
    moment.wait(scene.directory(victim), scene.cli.workspace)
    small_exchange.fill(leave=rng.choice([0, 4096, 65536]))
    gate.touch()
    job = until(lambda: _ended(scene, victim), "the job's end", bound=120)
    seen = scene.must_keep(victim)
    met[f"{job['reason'] or job['state']} while full"] += 1
    assert job["state"] == "failed" and "full" in job["message"], job
    small_exchange.empty()
    endings = {DISK_FULL} if seen.ended is None else {seen.ended}
    scene.expect([victim], *endings)
    scene.settle()
    assert older.items() <= _digests(scene).items()


def test_full_during_the_result(
    small_exchange: SmallDisk,
    scene: Scene,
    rng: random.Random,
    met: Counter[str],
    tmp_path: Path,
) -> None:
    """The run has ended and said how; its result and outcome have no space until there is some."""
    older = _digests(scene)
    gate = tmp_path / "gate"
    (victim,) = scene.submit(1, big=BIG, gate=gate)
    until(lambda: scene.look(victim).cells_ended == CELLS - 1, "the last cell")
    gate.touch()
    time.sleep(rng.uniform(0, 0.2))
    small_exchange.fill(leave=rng.randint(256 << 10, BIG // 2))  # the journal's end still fits
    seen = until(lambda: _said(scene, victim), "the last record")

    def decided() -> str | None:
        """Take what the spool gives back, too; else the result finds its space there."""
        small_exchange.fill(leave=0)
        if "tried again" in _dispatcher_log(scene):
            return "in time"
        return "too late" if scene.look(victim).concluded else None

    when = "too late" if seen.concluded else until(decided, "a try that failed, or a result")
    met[when] += 1
    if when == "in time":
        job = scene.cli.json("show", victim)
        assert (job["state"], job["delivery"]["state"]) == ("succeeded", "pending")
        assert "disk is full" in job["delivery"]["message"]
    small_exchange.empty()
    scene.settle()
    assert older.items() <= _digests(scene).items()


def test_full_during_delivery(
    small_workspace: SmallDisk, scene: Scene, rng: random.Random, met: Counter[str]
) -> None:
    """Held, with the reason, nothing half written; taken up by `deliver` or the next dispatcher."""
    older = _digests(scene)
    names = scene.submit(2, big=rng.choice([0, BIG]))
    moment = draw(rng, ["claimed", "printing", "ended", "publishing"], CHARACTERS)
    moment.wait(scene.directory(names[0]), scene.cli.workspace)
    small_workspace.fill(leave=rng.choice([0, 4096]))
    until(lambda: all(_decided(scene, n) for n in names), "decided deliveries")
    held = [n for n in names if scene.cli.json("show", n)["delivery"]["state"] == "held"]
    met["held"] += len(held)
    for name in held:
        assert "space" in scene.cli.json("show", name)["delivery"]["message"]
        assert scene.cli.results(name) == []
    assert list(scene.cli.workspace.rglob(".*")) == []
    small_workspace.empty()
    if rng.random() < 0.5:
        assert not held or scene.cli.run("deliver", *held).returncode == 0
    else:
        for dispatcher in scene.cli.dispatchers():
            kill(dispatcher)
        names += scene.submit(1, stem="later")
        until(lambda: all(scene.look(n).delivered for n in names), "the next dispatcher delivers")
    scene.settle()
    assert older.items() <= _digests(scene).items()


def test_full_during_submission(
    small_exchange: SmallDisk, scene: Scene, rng: random.Random, met: Counter[str]
) -> None:
    """Either a whole job or a clear word; with space again the same key gives one job."""
    older = _digests(scene)
    source = scene.write("late", pause=0)
    (scene.cli.workspace / "input.bin").write_bytes(rng.randbytes(256 << 10))
    small_exchange.fill(leave=rng.choice([0, 4096, 16384, 131072]))
    given = ("submit", source.name, "-i", "input.bin", "--idempotency-key", "k")
    ran = scene.cli.run(*given)
    assert ran.returncode in (4, 5), ran.stderr
    assert "space" in ran.stderr and "Traceback" not in ran.stderr and ran.stdout == ""
    assert _jobs_of(scene.cli, source) == [] and not list(scene.cli.exchange.glob(".new-*"))
    met[f"exit {ran.returncode}"] += 1
    small_exchange.empty()
    name = scene.cli.submit(*given[1:])
    scene.expect([name], SUCCEEDED)
    scene.settle()
    assert older.items() <= _digests(scene).items()


def _submit_chatty(scene: Scene, gate: Path) -> str:
    """Submit a job that prints `CHUNK` bytes beside each line, and for longer than the others."""
    (name,) = scene.submit(1, stem="chatty", pause=0.05, beside="#" * CHUNK, gate=gate)
    return name


def _digests(scene: Scene) -> dict[Path, str]:
    """Return the digests of all notebooks in the workspace: sources and results."""
    return {path: digest(path) for path in scene.cli.workspace.rglob("*.ipynb")}


def _ended(scene: Scene, name: str) -> dict[str, Any] | None:
    job: dict[str, Any] = scene.cli.json("show", name)
    return job if job["state"] in ("failed", "succeeded") else None


def _dispatcher_log(scene: Scene) -> str:
    logs = (scene.cli.exchange / ".dispatcher").rglob("log")
    return "".join(log.read_text() for log in logs)


def _said(scene: Scene, name: str) -> Any:
    seen = scene.look(name)
    return seen if seen.ended or seen.concluded else None


def _decided(scene: Scene, name: str) -> bool:
    return scene.cli.json("show", name)["delivery"]["state"] in ("held", "delivered")
